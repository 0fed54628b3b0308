#include <algorithm>
#include <chrono>
#include <filesystem>

#include "core/io/file_key.h"
#include "core/plan/basis.h"
#include "core/plan/checkpoint_copy.h"
#include "core/plan/hashes.h"
#include "core/plan/plan_weights.h"
#include "core/plan/receipt.h"

namespace planish {

namespace {

constexpr const char *kPlanKey = "planish.plan";
constexpr const char *kBasisInKey = "planish.basis_in";
constexpr const char *kBasisOutKey = "planish.basis_out";

tl::unexpected<Error> alreadyApplied(const std::string &checkpoint, const std::string &how)
{
    return refusal(checkpoint, "a plan was already applied to this checkpoint (" + how + ")", "expected the original basis", "basis_already_applied");
}

/// The hash over what will be written: rewritten and created tensors in ascending order of their names.
Expected<std::string> basisAfter(const FoldedCheckpoint &folded, std::stop_token stop)
{
    std::vector<const OutputTensor *> changed;
    for (const OutputTensor &tensor : folded.tensors()) {
        if (tensor.counted)
            changed.push_back(&tensor);
    }
    std::sort(changed.begin(), changed.end(), [](const OutputTensor *a, const OutputTensor *b) { return a->slot.name < b->slot.name; });
    BasisHasher hasher;
    for (const OutputTensor *tensor : changed) {
        if (stop.stop_requested())
            return cancelled(tensor->slot.name);
        auto bytes = folded.bytesOf(*tensor);
        if (!bytes)
            return tl::make_unexpected(bytes.error());
        hasher.add(tensor->slot.name, tensor->slot.type, tensor->slot.shape, *bytes);
    }
    return hasher.text();
}

Expected<std::string> checkedBasis(const std::string &planFile, const Plan &plan, const FoldMap &map, const std::string &checkpointIn)
{
    auto hash = basisOf(map, BasisNames::OfSource);
    if (!hash)
        return hash;
    const std::string own = std::filesystem::is_directory(checkpointIn) ? folderOf(std::filesystem::path(checkpointIn).string() + "/")
                                                                       : folderOf(checkpointIn);
    const std::vector<std::string> known = knownOutputs({folderOf(planFile), own, folderOf(own)});
    if (!map.changed().empty() && std::find(known.begin(), known.end(), *hash) != known.end())
        return alreadyApplied(checkpointIn, "its basis is the output of a receipt");
    if (auto same = checkBasis(plan, map, checkpointIn); !same)
        return tl::make_unexpected(same.error());
    return hash;
}

Expected<void> checkAssignments(const Plan &plan)
{
    for (const Assignment &assignment : plan.assignments) {
        if (!assignment.stream.value.empty() || (assignment.rewrite && assignment.rewrite->output))
            return refusal(assignment.edge.value.empty() ? assignment.stream.value : assignment.edge.value,
                           "this version folds edges, not residual streams", "expected a plan without streams", "residual_basis");
    }
    return {};
}

} // namespace

Expected<ApplyResult> applyPlan(const std::string &planFile, const Plan &plan, const std::string &checkpointIn, const std::string &out,
                                StoreAs store, const FamilyList &families, std::stop_token stop, const ProgressSink &progress)
{
    const auto start = std::chrono::steady_clock::now();
    if (auto edges = checkAssignments(plan); !edges)
        return tl::make_unexpected(edges.error());
    auto checkpoint = openCheckpoint(checkpointIn);
    if (!checkpoint)
        return tl::make_unexpected(checkpoint.error());
    const CheckpointInfo &info = (*checkpoint)->info();
    if (info.metadata.contains(kPlanKey))
        return alreadyApplied(checkpointIn, "its metadata names " + std::string(kPlanKey));
    if (info.kind == "hdf5")
        return dataError(checkpointIn, "this version writes safetensors checkpoints only", "expected a safetensors file or folder");
    auto weights = resolveForPlan(plan, *checkpoint, families);
    if (!weights)
        return tl::make_unexpected(weights.error());
    auto map = FoldMap::build(plan, *weights);
    if (!map)
        return tl::make_unexpected(map.error());
    auto basisIn = checkedBasis(planFile, plan, *map, checkpointIn);
    if (!basisIn)
        return tl::make_unexpected(basisIn.error());
    auto folded = FoldedCheckpoint::build(*map, store);
    if (!folded)
        return tl::make_unexpected(folded.error());
    CopyRequest request{&info, &*folded, out, {}};
    if (auto room = checkOutput(request); !room)
        return tl::make_unexpected(room.error());
    auto basisOut = basisAfter(*folded, stop);
    if (!basisOut)
        return tl::make_unexpected(basisOut.error());
    auto planHash = sha256OfFile(planFile);
    if (!planHash)
        return tl::make_unexpected(planHash.error());
    request.metadata = {{kBasisInKey, *basisIn}, {kPlanKey, *planHash}, {kBasisOutKey, *basisOut}};
    if (auto copied = copyCheckpoint(request, stop, progress); !copied)
        return tl::make_unexpected(copied.error());
    ApplyResult result{out, 0, 0, *basisIn, *basisOut, 0};
    std::vector<std::string> rewritten;
    for (const OutputTensor &tensor : folded->tensors()) {
        if (!tensor.source || tensor.counted)
            rewritten.push_back(tensor.slot.name);
    }
    result.tensorsRewritten = static_cast<std::int64_t>(rewritten.size());
    result.tensorsCopied = static_cast<std::int64_t>(folded->tensors().size() - rewritten.size());
    result.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (auto receipt = writeReceipt(planFile, *planHash, result, rewritten); !receipt)
        return tl::make_unexpected(receipt.error());
    return result;
}

} // namespace planish
