#include "core/plan/freeze.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/plan/basis.h"
#include "core/plan/fold_map.h"
#include "core/plan/hashes.h"
#include "core/plan/manifest.h"

namespace planish {

namespace {

std::string cpuName()
{
    std::ifstream in("/proc/cpuinfo");
    for (std::string line; std::getline(in, line);) {
        if (line.starts_with("model name") && line.find(':') != std::string::npos)
            return line.substr(line.find(':') + 2);
    }
    return "x86-64";
}

Expected<SourceFile> sourceOf(const std::string &file)
{
    auto hash = sha256OfFile(file);
    if (!hash)
        return tl::make_unexpected(hash.error());
    return SourceFile{std::filesystem::path(file).filename().string(), *hash};
}

Expected<void> freezeSource(Plan &plan, const Opened &opened)
{
    const DumpInfo &dump = opened.dump->info();
    auto file = sourceOf(dump.file);
    if (!file)
        return tl::make_unexpected(file.error());
    plan.source.dump = *file;
    plan.source.model = dump.model.model;
    plan.source.modelRevision = dump.model.revision;
    plan.source.family = opened.graph.family ? opened.graph.family->key : dump.model.family;
    plan.source.modelInfo = opened.graph.model;
    const auto &checkpoint = opened.weights->checkpoint();
    if (!checkpoint)
        return {};
    for (const std::string &shard : checkpoint->info().files) {
        auto hashed = sourceOf(shard);
        if (!hashed)
            return tl::make_unexpected(hashed.error());
        plan.source.checkpoint.push_back(*hashed);
    }
    const std::filesystem::path path(checkpoint->info().path);
    const std::filesystem::path folder = std::filesystem::is_directory(path) ? path : path.parent_path();
    std::error_code code;
    if (std::filesystem::is_regular_file(folder / "config.json", code)) {
        auto config = sourceOf((folder / "config.json").string());
        if (!config)
            return tl::make_unexpected(config.error());
        plan.source.configSha256 = config->sha256;
    }
    return {};
}

std::vector<std::string> idsOf(const Split &split, const std::vector<std::int32_t> &units)
{
    std::vector<std::string> ids;
    for (std::int32_t unit : units)
        ids.push_back(split.units[static_cast<std::size_t>(unit)].id);
    return ids;
}

std::string hashOf(const Split &split, const std::vector<std::int32_t> &units, const TokenTable &tokens)
{
    std::vector<std::int64_t> rows;
    for (std::int32_t unit : units) {
        const auto &members = split.units[static_cast<std::size_t>(unit)].tokens;
        rows.insert(rows.end(), members.begin(), members.end());
    }
    std::sort(rows.begin(), rows.end());
    return rowsSha256(tokens, rows);
}

std::vector<std::string> phasesOf(const Split &split, const TokenTable &tokens)
{
    std::set<std::uint8_t> seen;
    for (const Unit &unit : split.units) {
        for (std::int64_t token : unit.tokens)
            seen.insert(static_cast<std::size_t>(token) < tokens.phase.size() ? tokens.phase[static_cast<std::size_t>(token)] : 0);
    }
    std::vector<std::string> names;
    for (std::uint8_t phase : seen)
        names.push_back(phase ? "decode" : "prefill");
    return names;
}

void freezeCalibration(PlanCalibration &calibration, const EdgeDataFacts &facts, const TokenTable &tokens, const RowRequest &request)
{
    const Split &split = facts.split;
    calibration.requests = idsOf(split, split.calibration);
    calibration.heldOut = idsOf(split, split.heldOut);
    calibration.sealed = idsOf(split, split.sealed);
    calibration.rows = facts.rows.calibration;
    calibration.heldOutRows = facts.rows.heldOut;
    calibration.sealedRows = facts.rows.sealed;
    calibration.validationRows = facts.rows.validation;
    calibration.availableRows = facts.rows.available;
    calibration.splitSeed = split.seed;
    calibration.masked = tokens.hasMask && std::any_of(tokens.mask.begin(), tokens.mask.end(), [](std::uint8_t mask) { return mask == 0; });
    calibration.bosExcluded = std::find(request.skipPositions.begin(), request.skipPositions.end(), 0) != request.skipPositions.end();
    calibration.unit = split.unit == SplitUnit::Block ? "block" : "request";
    calibration.phases = phasesOf(split, tokens);
    calibration.skippedPositions = request.skipPositions;
    calibration.rowsSha256["calibration"] = hashOf(split, split.calibration, tokens);
    calibration.rowsSha256["held_out"] = hashOf(split, split.heldOut, tokens);
    calibration.rowsSha256["sealed"] = hashOf(split, split.sealed, tokens);
    calibration.request = request;
}

std::int64_t deadChannelsOf(const Evaluation &evaluation)
{
    std::int64_t count = 0;
    for (const auto &[name, clamps] : evaluation.clamps)
        count += name.find("dead") != std::string::npos ? clamps : 0;
    return count;
}

} // namespace

std::string rangedName(const TensorName &name, const RowRangeOf &rows)
{
    if (rows.begin == 0 && rows.end < 0)
        return name.value;
    return name.value + "[" + std::to_string(rows.begin) + ":" + std::to_string(rows.end) + "]";
}

Assignment assignmentOf(const EdgeChoice &choice, const PlanOptions &options)
{
    const Evaluation &evaluation = choice.evaluations[choice.chosen];
    const auto candidate = std::find_if(options.candidates.begin(), options.candidates.end(),
                                        [&](const Candidate &each) { return each.name == evaluation.candidate; });
    Assignment a;
    a.edge = choice.edge->id;
    if (candidate != options.candidates.end())
        a.candidate = *candidate;
    a.candidate.seed = evaluation.seed;
    a.candidate.act = evaluation.act;
    a.candidate.weight = evaluation.weight;
    a.candidate.kv = evaluation.kv;
    a.chain = evaluation.chain;
    if (a.chain.empty())
        a.chain.push_back({"none", {}, {}});
    a.rewrite = evaluation.rewrite ? evaluation.rewrite : std::make_shared<const Rewrite>();
    if (evaluation.placement)
        a.placement = *evaluation.placement;
    a.producerKind = kindOf(choice.edge->producer);
    a.producerName = nameOf(choice.edge->producer);
    if (const auto *norm = std::get_if<NormProducer>(&choice.edge->producer))
        a.producerOffset = norm->offset != 0;
    if (const auto *linear = std::get_if<LinearProducer>(&choice.edge->producer))
        a.producerName = rangedName(linear->tensor, linear->rows);
    if (const auto *product = std::get_if<ElementwiseProducer>(&choice.edge->producer))
        a.producerName = rangedName(product->up, product->upRows);
    for (const Consumer &consumer : choice.edge->consumers)
        a.consumers.push_back(rangedName(consumer.tensor, consumer.rows));
    a.ties = choice.edge->ties.key;
    a.equivalence = evaluation.equivalence;
    a.functionChange = evaluation.functionChange;
    if (evaluation.conditioning)
        a.conditioning = *evaluation.conditioning;
    a.alone = evaluation.output;
    a.identity = choice.evaluations.front().output;
    a.uncertainty = evaluation.uncertainty;
    a.ledger = evaluation.ledger;
    a.deadChannels = deadChannelsOf(evaluation);
    a.weightElements = choice.weightElements;
    a.channels = static_cast<std::int64_t>(choice.edge->channels);
    a.notes = evaluation.notes;
    completePlacement(a);
    return a;
}

Expected<void> freezePlan(Plan &plan, const Opened &opened, const EdgeDataFacts &facts, const PlanOptions &options)
{
    plan.cpu = cpuName();
    if (auto source = freezeSource(plan, opened); !source)
        return source;
    freezeCalibration(plan.calibration, facts, opened.dump->info().tokens, options.evaluate.rows);
    auto map = FoldMap::build(plan, opened.weights);
    if (!map)
        return tl::make_unexpected(map.error());
    auto basis = basisOf(*map, BasisNames::OfSource);
    if (!basis)
        return tl::make_unexpected(basis.error());
    plan.basisIn = *basis;
    return {};
}

} // namespace planish
