#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/names/family.h"
#include "core/names/name_pattern.h"
#include "core/names/resolve_parts.h"

namespace planish {

namespace {

namespace fs = std::filesystem;

Expected<std::vector<std::string>> yamlFiles(const std::string &folder)
{
    std::error_code fault;
    std::vector<std::string> files;
    for (fs::directory_iterator at(folder, fault), end; !fault && at != end; at.increment(fault))
        if (at->path().extension() == ".yaml")
            files.push_back(at->path().string());
    if (fault)
        return dataError(folder, "cannot be read: " + fault.message(), "a folder of family files was expected");
    std::sort(files.begin(), files.end()); // the order of a folder differs between machines
    return files;
}

bool anyNameFits(const Family &family, const std::vector<std::string> &names)
{
    for (const std::string &name : names)
        for (const std::string &prefix : family.prefixes) {
            if (!std::string_view(name).starts_with(prefix))
                continue;
            const std::string_view rest = std::string_view(name).substr(prefix.size());
            for (const std::string &pattern : family.anyOf)
                if (matchPattern(pattern, rest) || matchPattern(pattern, name))
                    return true;
        }
    return false;
}

/// How many of the names the family's patterns explain.
std::size_t namesExplained(const Family &family, const std::vector<std::string> &names)
{
    std::size_t count = 0;
    for (const std::string &name : names)
        count += !dumpNameOf(family, name).empty();
    return count;
}

} // namespace

Expected<FamilyList> FamilyList::load(const std::string &resourceDir, const std::string &extraDir)
{
    FamilyList list;
    std::vector<std::string> folders{(fs::path(resourceDir) / "families").string()};
    if (!extraDir.empty())
        folders.push_back(extraDir);
    for (const std::string &folder : folders) {
        const auto files = yamlFiles(folder);
        if (!files)
            return tl::make_unexpected(files.error());
        for (const std::string &file : *files) {
            auto family = readFamily(file);
            if (!family)
                return tl::make_unexpected(family.error());
            const auto same = [&](const auto &other) { return other->key == family->key; };
            list.m_families.erase(std::remove_if(list.m_families.begin(), list.m_families.end(), same), list.m_families.end());
            list.m_families.push_back(std::make_shared<const Family>(std::move(*family)));
        }
    }
    return list;
}

std::shared_ptr<const Family> FamilyList::find(std::string_view key) const
{
    for (const auto &family : m_families)
        if (family->key == key)
            return family;
    for (const auto &family : m_families)
        if (std::find(family->aliases.begin(), family->aliases.end(), key) != family->aliases.end())
            return family;
    return nullptr;
}

std::shared_ptr<const Family> FamilyList::match(const std::string &dumpFamily, const std::vector<std::string> &architectures,
                                                const std::vector<std::string> &tensorNames) const
{
    if (!dumpFamily.empty())
        if (auto family = find(dumpFamily))
            return family;
    for (const std::string &architecture : architectures)
        for (const auto &family : m_families)
            if (std::find(family->architectures.begin(), family->architectures.end(), architecture) !=
                family->architectures.end())
                return family;
    // By names alone the family that explains most of them; two that explain the same say nothing about the model.
    std::shared_ptr<const Family> fit;
    std::size_t best = 0;
    for (const auto &family : m_families) {
        const std::size_t explained = anyNameFits(*family, tensorNames) ? namesExplained(*family, tensorNames) : 0;
        if (explained == best)
            fit = nullptr;
        if (explained > best) {
            best = explained;
            fit = family;
        }
    }
    return fit;
}

std::string resourceFolder()
{
    if (const char *stated = std::getenv("PLANISH_RESOURCES"))
        return stated;
    std::error_code fault;
    const fs::path program = fs::read_symlink("/proc/self/exe", fault);
    if (!fault)
        for (const char *beside : {"../share/planish", "../resources"}) {
            const fs::path folder = (program.parent_path() / beside).lexically_normal();
            if (fs::is_directory(folder / "families", fault))
                return folder.string();
        }
#ifdef PLANISH_SOURCE_RESOURCES
    return PLANISH_SOURCE_RESOURCES;
#else
    return "resources";
#endif
}

} // namespace planish
