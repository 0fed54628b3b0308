#include "core/run/run_python.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "core/io/atomic_file.h"
#include "core/names/family.h"

namespace planish {

namespace {

namespace fs = std::filesystem;

/// Files of one resource folder with this ending, by name.
std::vector<fs::path> filesIn(const fs::path &folder, const std::string &ending)
{
    std::vector<fs::path> files;
    std::error_code code;
    for (fs::directory_iterator it(folder, code), end; !code && it != end; it.increment(code)) {
        if (it->path().extension() == ending)
            files.push_back(it->path());
    }
    std::sort(files.begin(), files.end());
    return files;
}

Expected<void> copyFiles(const std::vector<fs::path> &files, const fs::path &to, std::vector<std::string> &written)
{
    std::error_code code;
    fs::create_directories(to, code);
    if (code)
        return writeError(to.string(), code.value());
    for (const fs::path &file : files) {
        std::ifstream in(file, std::ios::binary);
        const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
        if (!in)
            return dataError(file.string(), "cannot be read", "expected a complete installation");
        const std::string path = (to / file.filename()).string();
        if (auto done = writeFileAtomically(path, text); !done)
            return done;
        written.push_back(path);
    }
    return {};
}

} // namespace

Expected<std::vector<std::string>> writePythonBridge(const std::string &folder)
{
    const fs::path resources(resourceFolder());
    const auto scripts = filesIn(resources / "python", ".py");
    const auto families = filesIn(resources / "families", ".yaml");
    if (scripts.empty() || families.empty())
        return dataError((resources / "python").string(), "holds no bridge", "expected a complete installation");
    std::vector<std::string> written;
    if (auto done = copyFiles(scripts, folder, written); !done)
        return tl::make_unexpected(done.error());
    if (auto done = copyFiles(families, fs::path(folder) / "families", written); !done)
        return tl::make_unexpected(done.error());
    return written;
}

} // namespace planish
