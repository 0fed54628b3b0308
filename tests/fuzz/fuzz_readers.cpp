// Feeds damaged copies of good files to one reader. Fails on a crash, an answer that takes more than 5 s, an error that names no file,
// and memory beyond a bound.
//   fuzz_readers READER CORPUS... [--mutants N | --seconds S] [--seed N] [--slowest S]
// READER: hdf5 | weights | safetensors | plan | candidates | scores | config. Each line of the report is one finding; the damaged
// file of a finding is kept beside it.
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "core/evaluate/compare.h"
#include "core/evaluate/sensitivity.h"
#include "core/io/checkpoint.h"
#include "core/io/dump.h"
#include "core/io/model_config.h"
#include "core/plan/plan.h"
#include "tests/fuzz/mutation.h"

using namespace planish;

namespace {

using Clock = std::chrono::steady_clock;
using Errors = std::vector<Error>;
constexpr long kMostKilobytes = 1536L * 1024;

template <class T> void note(const Expected<T> &result, Errors &errors)
{
    if (!result)
        errors.push_back(result.error());
}

void readDump(const std::string &file, Errors &errors)
{
    const auto dump = openDump(file, {});
    note(dump, errors);
    if (!dump)
        return;
    for (const DumpEdge &edge : (*dump)->info().edges) {
        constexpr std::uint64_t kMostRead = std::uint64_t{64} << 20;
        if (edge.rows == 0 || edge.channels > kMostRead / 8)
            continue;
        const std::vector<std::int64_t> rows{0, static_cast<std::int64_t>(edge.rows) - 1};
        note((*dump)->readRows(edge, rows), errors);
    }
}

void readWeights(const std::string &file, Errors &errors)
{
    const auto weights = openCheckpoint(file);
    note(weights, errors);
    if (!weights)
        return;
    for (const StoredTensor &tensor : (*weights)->info().tensors)
        note((*weights)->readRaw(tensor), errors);
}

using Reader = std::function<void(const std::string &, Errors &)>;

/// A reader and the name its file must have.
const std::map<std::string, std::pair<std::string, Reader>> &readers()
{
    static const std::map<std::string, std::pair<std::string, Reader>> all{
        {"hdf5", {"mutant.h5", readDump}},
        {"weights", {"mutant.h5", readWeights}},
        {"safetensors", {"mutant.safetensors", readWeights}},
        {"plan", {"mutant.yaml", [](const std::string &file, Errors &errors) { note(readPlan(file), errors); }}},
        {"candidates", {"mutant.yaml", [](const std::string &file, Errors &errors) { note(readCandidatesFile(file), errors); }}},
        {"scores", {"mutant.csv", [](const std::string &file, Errors &errors) { note(readScores(file), errors); }}},
        {"config", {"config.json", [](const std::string &file, Errors &errors) { note(readModelConfig(file), errors); }}},
    };
    return all;
}

std::string contents(const std::filesystem::path &file)
{
    std::ifstream in(file, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
}

struct Task {
    std::string reader;
    std::vector<std::filesystem::path> corpus;
    std::size_t mutants = 300, seed = 1;
    double seconds = 0.0; ///< instead of a number of mutants
    double slowest = 5.0; ///< seconds one file may take
};

class Fuzzer {
public:
    explicit Fuzzer(Task task) : m_task(std::move(task)), m_reader(readers().at(m_task.reader))
    {
        m_folder = std::filesystem::temp_directory_path() / ("planish-fuzz-" + m_task.reader + "-" + std::to_string(::getpid()));
        std::filesystem::create_directories(m_folder);
        for (const std::filesystem::path &good : m_task.corpus)
            copyCompanions(good.parent_path());
    }

    int run()
    {
        const Clock::time_point start = Clock::now();
        std::size_t done = 0;
        const auto more = [&] {
            return m_task.seconds > 0.0 ? std::chrono::duration<double>(Clock::now() - start).count() < m_task.seconds
                                        : done < m_task.mutants;
        };
        for (; more(); ++done)
            one(m_task.corpus[done % m_task.corpus.size()], m_task.seed + done);
        rusage used{};
        ::getrusage(RUSAGE_SELF, &used);
#if !defined(__SANITIZE_ADDRESS__)
        if (used.ru_maxrss > kMostKilobytes)
            finding("memory grew to " + std::to_string(used.ru_maxrss / 1024) + " MiB", "");
#endif
        std::printf("%s: %zu mutants of %zu files, %zu refused, slowest %.2f s, memory %ld MiB, %zu findings\n",
                    m_task.reader.c_str(), done, m_task.corpus.size(), m_refused, m_slowest, used.ru_maxrss / 1024, m_findings);
        // The last mutant of a crash stays for whoever looks; after a clean run nothing does.
        if (m_findings == 0)
            std::filesystem::remove_all(m_folder);
        return m_findings == 0 && done > 0 ? 0 : 1;
    }

private:
    /// The file of matrices that a plan names lies beside it.
    void copyCompanions(const std::filesystem::path &from)
    {
        for (const auto &entry : std::filesystem::directory_iterator(from))
            if (m_task.reader == "plan" && entry.path().extension() == ".safetensors")
                std::filesystem::copy_file(entry.path(), m_folder / entry.path().filename(),
                                           std::filesystem::copy_options::overwrite_existing);
    }

    void one(const std::filesystem::path &good, std::size_t seed)
    {
        const std::filesystem::path file = m_folder / m_reader.first;
        std::ofstream(file, std::ios::binary | std::ios::trunc) << mutant(goodBytes(good), seed, good.filename().string());
        Errors errors;
        const Clock::time_point start = Clock::now();
        m_reader.second(file.string(), errors);
        const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
        m_slowest = std::max(m_slowest, seconds);
        m_refused += errors.empty() ? 0 : 1;
        const std::string which = good.filename().string() + " seed " + std::to_string(seed);
        if (seconds > m_task.slowest)
            finding(which + " took " + std::to_string(seconds) + " s", which);
        for (const Error &error : errors)
            if (error.subject.empty() || error.what.empty())
                finding(which + " gives an error without a place: " + toText(error), which);
    }

    const std::string &goodBytes(const std::filesystem::path &file)
    {
        const auto found = m_good.find(file);
        return found != m_good.end() ? found->second : m_good.emplace(file, contents(file)).first->second;
    }

    void finding(const std::string &text, const std::string &keep)
    {
        std::printf("FINDING %s\n", text.c_str());
        ++m_findings;
        if (!keep.empty())
            std::filesystem::copy_file(m_folder / m_reader.first, m_folder / (keep + ".mutant"),
                                       std::filesystem::copy_options::overwrite_existing);
    }

    Task m_task;
    const std::pair<std::string, Reader> &m_reader;
    std::filesystem::path m_folder;
    std::map<std::filesystem::path, std::string> m_good;
    std::size_t m_refused = 0, m_findings = 0;
    double m_slowest = 0.0;
};

void addCorpus(const std::filesystem::path &from, std::vector<std::filesystem::path> &corpus)
{
    if (!std::filesystem::is_directory(from))
        return corpus.push_back(from);
    for (const auto &entry : std::filesystem::directory_iterator(from))
        if (entry.is_regular_file())
            corpus.push_back(entry.path());
}

} // namespace

int main(int argc, char **argv)
{
    Task task;
    task.reader = argc > 1 ? argv[1] : "";
    for (int i = 2; i < argc; ++i) {
        const bool value = i + 1 < argc;
        if (value && std::strcmp(argv[i], "--mutants") == 0)
            task.mutants = std::strtoul(argv[++i], nullptr, 10);
        else if (value && std::strcmp(argv[i], "--seconds") == 0)
            task.seconds = std::strtod(argv[++i], nullptr);
        else if (value && std::strcmp(argv[i], "--seed") == 0)
            task.seed = std::strtoul(argv[++i], nullptr, 10);
        else if (value && std::strcmp(argv[i], "--slowest") == 0)
            task.slowest = std::strtod(argv[++i], nullptr);
        else
            addCorpus(argv[i], task.corpus);
    }
    if (task.reader == "plan")
        std::erase_if(task.corpus, [](const std::filesystem::path &file) { return file.extension() == ".safetensors"; });
    std::sort(task.corpus.begin(), task.corpus.end());
    if (!readers().contains(task.reader) || task.corpus.empty()) {
        std::fputs("usage: fuzz_readers READER CORPUS... [--mutants N | --seconds S] [--seed N] [--slowest S]\n", stderr);
        return 2;
    }
    return Fuzzer(std::move(task)).run();
}
