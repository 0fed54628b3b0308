#include <algorithm>
#include <cmath>
#include <filesystem>

#include "core/graph/target_capabilities.h"
#include "core/graph/tensor_parallel.h"
#include "core/io/file_key.h"
#include "core/plan/basis.h"
#include "core/plan/plan_edge.h"
#include "core/plan/plan_weights.h"
#include "core/plan/receipt.h"

namespace planish {

namespace fs = std::filesystem;

namespace {

constexpr auto kError = Refusal::Severity::Error;
constexpr auto kWarning = Refusal::Severity::Warning;
// plan.md "Equivalence thresholds".
constexpr double kKappaRefused = 1e4, kKappaWarned = 100, kScaleWarned = 1e4;

struct CheckContext {
    const Plan *plan = nullptr;
    const Family *family = nullptr;
    const TargetCapabilities *target = nullptr;
    std::string targetKey;
    int tensorParallel = 1;
};

CheckFinding findingOf(const Assignment &assignment, const Refusal &refusal)
{
    return {assignment.edge.value, refusal.rule, refusal.other, refusal.sentence, refusal.severity};
}

CheckFinding finding(const std::string &edge, const std::string &rule, const std::string &text, Refusal::Severity severity)
{
    return {edge, rule, {}, edge + ": " + text + " (" + rule + ")", severity};
}

/// Fold places, readers, ties, devices and target of one edge.
void checkPlacement(const CheckContext &context, const Assignment &assignment, std::vector<CheckFinding> &findings)
{
    const ModelInfo &model = context.plan->source.modelInfo;
    const Edge edge = edgeOf(assignment, model, context.family);
    PlacementContext place;
    place.family = context.family;
    place.model = &model;
    place.tensorParallel = context.tensorParallel;
    place.target = context.targetKey;
    place.capabilities = context.target;
    const Rewrite identity;
    const Rewrite &rewrite = assignment.rewrite ? *assignment.rewrite : identity;
    if (rewrite.input.isIdentity()) {
        for (const Refusal &refusal : tensorParallelFaults(edge, rewrite, {}, place))
            findings.push_back(findingOf(assignment, refusal));
        return;
    }
    const bool shiftOnline = !rewrite.input.shift.empty() && !assignment.placement.shiftFused;
    place.foldClaimed = assignment.placement.online.empty() && !shiftOnline;
    const Placement placement = planish::place(edge, rewrite, place);
    for (const Refusal &refusal : placement.refusals) {
        if (refusal.severity != Refusal::Severity::Note || place.foldClaimed)
            findings.push_back(findingOf(assignment, refusal));
    }
    if (!place.foldClaimed && placement.fusedOperators < assignment.placement.fusedOperators) {
        const Refusal reason = placement.refusals.empty() ? Refusal{"online", {}, assignment.edge.value + ": the producer cannot absorb it (online)", kError}
                                                          : placement.refusals.front();
        findings.push_back({assignment.edge.value, reason.rule, reason.other, reason.sentence, kError});
    }
}

void checkNumbers(const Assignment &assignment, std::vector<CheckFinding> &findings)
{
    const Conditioning &c = assignment.conditioning;
    const std::string &edge = assignment.edge.value;
    if (c.kappaNonDiagonal > kKappaRefused)
        findings.push_back(finding(edge, "conditioning", "the non-diagonal part has a condition number above 1e4", kError));
    else if (c.kappaNonDiagonal > kKappaWarned)
        findings.push_back(finding(edge, "conditioning", "the non-diagonal part has a condition number above 100", kWarning));
    if (c.scaleMin != 0 && std::abs(c.scaleMax / c.scaleMin) > kScaleWarned)
        findings.push_back(finding(edge, "conditioning", "the scales span more than 1e4", kWarning));
    const bool identity = !assignment.rewrite || assignment.rewrite->input.isIdentity();
    if (identity || assignment.functionChange)
        return;
    if (!assignment.equivalence) {
        findings.push_back(finding(edge, "equivalence_not_measured", "no equivalence was measured", kError));
        return;
    }
    const Equivalence &e = *assignment.equivalence;
    StoredType stored = StoredType::Bf16; // the widest threshold where the manifest does not say what it stored
    for (StoredType type : {StoredType::F16, StoredType::F32, StoredType::F64, StoredType::Bf16}) {
        if (nameOf(type) == e.storedDtype)
            stored = type;
    }
    if (!(e.relativeFrobenius <= equivalenceThreshold(StoredType::F64, c.kappaNonDiagonal)) ||
        !(e.storedRelativeFrobenius <= equivalenceThreshold(stored, c.kappaNonDiagonal)))
        findings.push_back(finding(edge, "equivalence_failed", "its stated equivalence is above the threshold", kError));
}

std::vector<CheckFinding> legalityUnder(const CheckContext &context)
{
    std::vector<CheckFinding> findings;
    for (const Assignment &assignment : context.plan->assignments)
        checkPlacement(context, assignment, findings);
    return findings;
}

std::size_t errorsIn(const std::vector<CheckFinding> &findings)
{
    return static_cast<std::size_t>(std::count_if(findings.begin(), findings.end(), [](const CheckFinding &f) { return f.severity == kError; }));
}

/// Under the plan's family, or the family that objects least among those whose names fit.
std::vector<CheckFinding> legality(CheckContext context, const FamilyList &families)
{
    const auto fitting = familiesOf(*context.plan, families);
    if (fitting.empty()) {
        std::vector<CheckFinding> findings = legalityUnder(context);
        findings.push_back({"", "consumers_not_covered", {}, "no family fits the names of this plan: readers of its edges are unchecked", kWarning});
        return findings;
    }
    std::vector<CheckFinding> best;
    for (std::size_t i = 0; i < fitting.size(); ++i) {
        context.family = fitting[i].get();
        std::vector<CheckFinding> findings = legalityUnder(context);
        if (i == 0 || errorsIn(findings) < errorsIn(best))
            best = std::move(findings);
    }
    return best;
}

/// passed | failed | unchecked of one file beside the plan.
Expected<std::string> fileState(const std::string &path, const std::string &sha256)
{
    std::error_code code;
    if (!fs::is_regular_file(path, code) || sha256.empty())
        return std::string("unchecked");
    auto hash = sha256OfFile(path);
    if (!hash)
        return hash;
    return std::string(*hash == sha256 ? "passed" : "failed");
}

std::string pathOf(const std::string &checkpoint, const std::string &folder, const std::string &name, std::size_t files)
{
    if (checkpoint.empty())
        return (fs::path(folder) / fs::path(name).filename()).string();
    return files == 1 && !fs::is_directory(checkpoint) ? checkpoint : (fs::path(checkpoint) / fs::path(name).filename()).string();
}

/// The basis is looked at only where the checkpoint is at hand, whatever the hash of the whole file says.
Expected<std::string> basisState(const Plan &plan, const std::string &path, const FamilyList &families)
{
    std::error_code code;
    if (path.empty() || plan.basisIn.empty() || !fs::exists(path, code))
        return std::string("unchecked");
    auto weights = openForPlan(plan, path, families);
    if (!weights)
        return tl::make_unexpected(weights.error());
    auto map = FoldMap::build(plan, *weights);
    return std::string(map && checkBasis(plan, *map, path) ? "passed" : "failed");
}

Expected<void> checkHashes(const std::string &planFile, const Plan &plan, const std::string &checkpoint, const FamilyList &families, CheckResult &result)
{
    const std::string folder = folderOf(planFile);
    if (!checkpoint.empty() && !fs::exists(checkpoint))
        return dataError(checkpoint, "does not exist", "expected a checkpoint");
    for (const SourceFile &file : plan.source.checkpoint) {
        auto state = fileState(pathOf(checkpoint, folder, file.file, plan.source.checkpoint.size()), file.sha256);
        if (!state)
            return tl::make_unexpected(state.error());
        result.hashes[file.file] = *state;
    }
    auto dump = fileState(pathOf({}, folder, plan.source.dump.file, 1), plan.source.dump.sha256);
    if (!dump)
        return tl::make_unexpected(dump.error());
    result.hashes[plan.source.dump.file] = *dump;
    result.hashes["side_file"] = "passed"; // readPlan refuses a plan whose arrays do not match
    const std::string single = plan.source.checkpoint.size() == 1 ? pathOf({}, folder, plan.source.checkpoint[0].file, 1) : std::string();
    auto basis = basisState(plan, checkpoint.empty() ? single : checkpoint, families);
    if (!basis)
        return tl::make_unexpected(basis.error());
    result.hashes["basis"] = *basis;
    return {};
}

/// Files that changed are findings too, so that an illegal check always has a sentence.
void reportHashes(const std::string &planFile, CheckResult &result)
{
    for (const auto &[name, state] : result.hashes) {
        if (state != "failed")
            continue;
        const char *text = name == "basis" ? "the checkpoint's tensors are not those the plan was made from (basis_mismatch)"
                                           : "the file is not the one the plan was made from (basis_mismatch)";
        result.findings.push_back({"", "basis_mismatch", name, fs::path(planFile).filename().string() + ": " + name + ": " + text, kError});
    }
}

} // namespace

Expected<CheckResult> checkPlan(const std::string &planFile, const Plan &plan, const std::string &checkpoint, int tensorParallel,
                                const std::string &target, const FamilyList &families)
{
    CheckContext context;
    context.plan = &plan;
    context.tensorParallel = std::max(tensorParallel, plan.tensorParallel);
    context.targetKey = target.empty() ? plan.target : target;
    std::vector<TargetCapabilities> targets;
    if (!context.targetKey.empty()) {
        auto loaded = loadTargets(resourceFolder());
        if (!loaded)
            return tl::make_unexpected(loaded.error());
        targets = std::move(*loaded);
        context.target = findTarget(targets, context.targetKey);
        if (!context.target)
            return usageError("--target " + context.targetKey, "unknown target", "expected a key of planish-cli targets");
    }
    CheckResult result;
    result.findings = legality(context, families);
    for (const Assignment &assignment : plan.assignments)
        checkNumbers(assignment, result.findings);
    if (auto hashes = checkHashes(planFile, plan, checkpoint, families, result); !hashes)
        return tl::make_unexpected(hashes.error());
    reportHashes(planFile, result);
    result.legal = errorsIn(result.findings) == 0;
    return result;
}

} // namespace planish
