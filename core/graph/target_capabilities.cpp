#include "core/graph/target_capabilities.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include <yaml-cpp/yaml.h>

#include "core/graph/legality.h"

namespace planish {

namespace {

constexpr std::array<std::pair<std::string_view, Fidelity>, 4> kFidelities{{{"exact", Fidelity::Exact},
                                                                            {"recomputed", Fidelity::Recomputed},
                                                                            {"format_only", Fidelity::FormatOnly},
                                                                            {"unsupported", Fidelity::Unsupported}}};

struct Ordered {
    int order = 0;
    TargetCapabilities target;
};

tl::unexpected<Error> fault(const std::string &file, const std::string &key, const std::string &expected)
{
    return dataError(file, key + ": is not understood", expected);
}

Expected<void> readCarries(const YAML::Node &node, const std::string &file, TargetCapabilities &target)
{
    for (const auto &entry : node) {
        const auto part = entry.first.as<std::string>(), word = entry.second.as<std::string>();
        const auto *found =
            std::find_if(kFidelities.begin(), kFidelities.end(), [&](const auto &each) { return each.first == word; });
        if (found == kFidelities.end())
            return fault(file, "carries." + part, "exact, recomputed, format_only or unsupported was expected");
        target.carries[part] = found->second;
    }
    return {};
}

Expected<Ordered> readTarget(const std::string &file)
{
    Ordered read;
    TargetCapabilities &target = read.target;
    try {
        const YAML::Node root = YAML::LoadFile(file);
        for (const auto &entry : root) {
            const auto key = entry.first.as<std::string>();
            const YAML::Node &value = entry.second;
            if (key == "target")
                target.key = value.as<std::string>();
            else if (key == "order")
                read.order = value.as<int>();
            else if (key == "note")
                target.note = value.as<std::string>();
            else if (key == "files")
                target.files = value.as<std::vector<std::string>>();
            else if (key == "lint_only")
                target.lintOnly = value.as<bool>();
            else if (key == "online")
                target.onlineOperators = value.as<bool>();
            else if (key == "creates_bias")
                target.createsBias = value.as<bool>();
            else if (key == "max_tensor_parallel")
                target.maxTensorParallel = value.as<int>();
            else if (key != "carries")
                return fault(file, key, "a key of a target file was expected");
            else if (const auto carries = readCarries(value, file, target); !carries)
                return tl::make_unexpected(carries.error());
        }
    } catch (const YAML::Exception &exception) {
        return dataError(file, std::string("cannot be read: ") + exception.what(), "a target file was expected");
    }
    if (target.key.empty())
        return fault(file, "target", "the key of the target was expected");
    return read;
}

} // namespace

std::string_view nameOf(Fidelity fidelity)
{
    return kFidelities[static_cast<std::size_t>(fidelity)].first;
}

Fidelity TargetCapabilities::of(const std::string &part) const
{
    const auto found = carries.find(part);
    return found == carries.end() ? Fidelity::Unsupported : found->second;
}

Expected<std::vector<TargetCapabilities>> loadTargets(const std::string &resourceDir)
{
    const std::filesystem::path folder = std::filesystem::path(resourceDir) / "targets";
    std::error_code missing;
    std::vector<Ordered> read;
    for (std::filesystem::directory_iterator at(folder, missing), end; !missing && at != end; at.increment(missing)) {
        if (at->path().extension() != ".yaml")
            continue;
        auto target = readTarget(at->path().string());
        if (!target)
            return tl::make_unexpected(target.error());
        read.push_back(std::move(*target));
    }
    if (missing)
        return dataError(folder.string(), "cannot be read: " + missing.message(), "the folder of target files was expected");
    std::sort(read.begin(), read.end(), [](const Ordered &a, const Ordered &b) {
        return a.order != b.order ? a.order < b.order : a.target.key < b.target.key;
    });
    std::vector<TargetCapabilities> targets;
    for (Ordered &each : read)
        targets.push_back(std::move(each.target));
    return targets;
}

const TargetCapabilities *findTarget(const std::vector<TargetCapabilities> &targets, const std::string &key)
{
    const auto found =
        std::find_if(targets.begin(), targets.end(), [&](const TargetCapabilities &target) { return target.key == key; });
    return found == targets.end() ? nullptr : &*found;
}

std::vector<Refusal> targetFaults(const Edge &edge, const Placement &placement, int tensorParallel,
                                  const TargetCapabilities &target)
{
    constexpr auto kError = Refusal::Severity::Error;
    std::vector<Refusal> faults;
    if (placement.needsOnline() && !target.onlineOperators)
        faults.push_back(refusalOf(edge, "online", target.key, target.key + " runs no operators on activations", kError));
    else if (placement.needsOnline() && target.maxTensorParallel > 0 && tensorParallel > target.maxTensorParallel)
        faults.push_back(refusalOf(edge, "crosses_shards", target.key,
                                   target.key + " runs operators on activations on " + std::to_string(target.maxTensorParallel) +
                                       " device only, not on " + std::to_string(tensorParallel),
                                   kError));
    const auto created = std::find_if(placement.fused.begin(), placement.fused.end(),
                                      [](const FusedFactor &factor) { return factor.createsBias; });
    if (created != placement.fused.end() && !target.createsBias)
        faults.push_back(refusalOf(edge, "bias_has_no_place", target.key,
                                   target.key + " loads no bias of " + created->tensor.value + ", which the shift creates",
                                   kError));
    return faults;
}

} // namespace planish
