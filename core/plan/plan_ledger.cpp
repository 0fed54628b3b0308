#include "core/plan/plan_ledger.h"

#include <algorithm>
#include <map>

#include "core/evaluate/ledger.h"
#include "core/plan/plan_edge.h"
#include "core/transform/hadamard_orders.h"

namespace planish {

namespace {

constexpr double kTileBytesPerChannel = 4; // one token of the tile, held in fp32 (rotation.md 2.8: accumulate in fp32)
constexpr double kStoredBytes = 2;         // activations travel in 16 bit
constexpr double kGiga = 1e9, kTera = 1e12, kMicro = 1e6;

struct Shape {
    double channels = 0, outputs = 0;
};

Shape shapeOf(const Assignment &a, const ModelInfo &model)
{
    const auto channels = static_cast<double>(a.channels > 0 ? static_cast<std::size_t>(a.channels) : channelsOf(a, model));
    return {channels, channels > 0 ? static_cast<double>(a.weightElements) / channels : 0};
}

std::vector<OnChip> onChip(const Assignment &a, const Shape &shape, std::int64_t sramKib)
{
    std::vector<OnChip> fits;
    for (const Operator &op : a.placement.online) {
        OnChip fit{nameOf(op), factorBytes(op), kTileBytesPerChannel * shape.channels, true};
        fit.fits = fit.factorBytes + fit.tileBytes <= static_cast<double>(sramKib) * 1024;
        fits.push_back(std::move(fit));
    }
    return fits;
}

/// Columns kept in high precision: stored with the ledger, or told by its bytes in plans that do not say it.
double exceptionColumns(const Assignment &a)
{
    if (a.rewrite && a.rewrite->exceptions) {
        if (const auto *fixed = std::get_if<StaticExceptions>(&a.rewrite->exceptions->rule))
            return static_cast<double>(fixed->columns.size());
    }
    return a.ledger.exceptionColumns;
}

PhaseCost phaseOf(const Assignment &a, const Shape &shape, const std::vector<OnChip> &fits, std::int64_t tokens)
{
    PhaseCost cost{.tokens = tokens};
    const auto count = static_cast<double>(tokens);
    cost.flops = a.ledger.onlineFlopsPerToken * count;
    cost.launches = a.ledger.launches;
    for (const OnChip &fit : fits) {
        // Too large for one pass: written out and read again, in a second launch.
        cost.bytes += (fit.fits ? 2 : 4) * kStoredBytes * shape.channels * count;
        cost.launches += fit.fits ? 0 : 1;
    }
    const double columns = exceptionColumns(a);
    if (columns > 0)
        cost.bytes += kStoredBytes * columns * (count + shape.outputs); // the weight columns are gathered once a call
    return cost;
}

TimeEstimate timeOf(const Assignment &a, const Shape &shape, const PhaseCost &cost, const MachineProfile &machine)
{
    const auto tokens = static_cast<double>(cost.tokens);
    const double bandwidth = machine.memoryGbPerS * kGiga;
    const bool lowBit = !a.candidate.act.isNone() && !a.candidate.weight.isNone();
    const double rate = (lowBit ? machine.lowBitTflopPerS : machine.tflopPerS) * kTera;
    TimeEstimate time;
    time.transform = cost.flops / (machine.tflopPerS * kTera) * kMicro + cost.launches * machine.launchUs;
    if (!a.candidate.act.isNone()) {
        const double bits = storedBits(a.candidate.act, 1, static_cast<std::size_t>(std::max(shape.channels, 1.0)));
        time.quantize = shape.channels * tokens * (kStoredBytes + bits / 8) / bandwidth * kMicro + machine.launchUs;
    }
    const double weightBytes = a.ledger.weightBits * static_cast<double>(a.weightElements) / 8;
    time.gemm = (2 * shape.channels * shape.outputs * tokens / rate + weightBytes / bandwidth) * kMicro + machine.launchUs;
    time.epilogue = shape.outputs * tokens * kStoredBytes / bandwidth * kMicro;
    time.traffic = cost.bytes / bandwidth * kMicro;
    return time;
}

double communicated(const std::vector<ShardChoice> &shards)
{
    for (const ShardChoice &choice : shards) {
        if (choice.choice == "communication")
            return choice.bytesPerToken;
    }
    return 0;
}

void addNotes(const Assignment &a, EdgeLedger &entry)
{
    for (const FittedMember &member : a.chain) {
        if (member.method == "llm_int8")
            entry.notes.push_back("llm_int8 saves memory; it is not a speed method");
    }
    if (partsOf(a.edge).site.starts_with("k_") && !a.placement.online.empty())
        entry.notes.push_back(
            "charged once per key, when it is written to the cache; the cached history is not transformed again");
    for (const OnChip &fit : entry.online) {
        if (!fit.fits)
            entry.notes.push_back(fit.op + " does not fit on chip: two passes are charged");
    }
}

EdgeLedger edgeLedger(const Assignment &a, const Plan &plan, const MachineProfile *machine)
{
    const Shape shape = shapeOf(a, plan.source.modelInfo);
    EdgeLedger entry{.edge = a.edge, .layer = partsOf(a.edge).layer};
    entry.online = onChip(a, shape, plan.ledgerOptions.sramKib);
    entry.prefill = phaseOf(a, shape, entry.online, plan.ledgerOptions.prefillTokens);
    entry.decode = phaseOf(a, shape, entry.online, plan.ledgerOptions.batch);
    entry.metadataBytes = a.ledger.metadataBytes;
    entry.weightBits = a.ledger.weightBits;
    entry.weightBytes = a.ledger.weightBits * static_cast<double>(a.weightElements) / 8;
    entry.shards = shardChoices(a, plan.tensorParallel);
    if (machine) {
        for (PhaseCost *phase : {&entry.prefill, &entry.decode}) {
            phase->time = timeOf(a, shape, *phase, *machine);
            if (machine->linkGbPerS > 0)
                phase->time->communication =
                    communicated(entry.shards) * static_cast<double>(phase->tokens) / (machine->linkGbPerS * kGiga) * kMicro;
        }
    }
    addNotes(a, entry);
    return entry;
}

void addToLayers(const EdgeLedger &entry, std::map<std::int64_t, LayerLedger> &layers)
{
    LayerLedger &layer = layers.try_emplace(entry.layer, LayerLedger{.layer = entry.layer}).first->second;
    layer.prefill += entry.prefill;
    layer.decode += entry.decode;
    layer.metadataBytes += entry.metadataBytes;
    layer.weightBytes += entry.weightBytes;
}

/// Channels an operator mixes; the whole width where it is not blocked.
double mixedWidth(const Operator &op)
{
    if (isDiagonal(op))
        return 1;
    if (const auto *hadamard = std::get_if<HadamardOp>(&op.value))
        return static_cast<double>(hadamard->block);
    if (const auto *blocks = std::get_if<BlockDenseOp>(&op.value))
        return static_cast<double>(blocks->block);
    return static_cast<double>(channelsOf(op));
}

} // namespace

TimeEstimate &TimeEstimate::operator+=(const TimeEstimate &other)
{
    transform += other.transform;
    quantize += other.quantize;
    gemm += other.gemm;
    epilogue += other.epilogue;
    traffic += other.traffic;
    communication += other.communication;
    return *this;
}

PhaseCost &PhaseCost::operator+=(const PhaseCost &other)
{
    tokens = other.tokens;
    flops += other.flops;
    bytes += other.bytes;
    launches += other.launches;
    if (other.time) {
        if (!time)
            time.emplace();
        *time += *other.time;
    }
    return *this;
}

std::vector<ShardChoice> shardChoices(const Assignment &assignment, int devices)
{
    const std::string site = partsOf(assignment.edge).site;
    std::vector<ShardChoice> choices;
    if (devices <= 1 || (site != "mlp_down" && site != "attn_out"))
        return choices;
    for (const Operator &op : assignment.placement.online) {
        const auto channels = static_cast<std::int64_t>(channelsOf(op));
        const auto width = static_cast<std::int64_t>(mixedWidth(op));
        if (channels % devices != 0) {
            choices.push_back({"refuse",
                               std::to_string(channels) + " channels do not divide over " + std::to_string(devices) + " devices",
                               true, 0});
            continue;
        }
        const std::int64_t shard = channels / devices;
        if (width <= shard && shard % width == 0)
            continue;
        const std::string name = nameOf(op);
        const auto buildable = possibleBlocks(static_cast<std::size_t>(shard));
        const bool local = std::find(buildable.begin(), buildable.end(), static_cast<std::size_t>(shard)) != buildable.end();
        choices.push_back({"rank_local",
                           local ? "one Hadamard of " + std::to_string(shard) + " per device in place of " + name +
                                       "; a spike spreads over " + std::to_string(shard) +
                                       " channels, so its peak is at most sqrt(" + std::to_string(devices) + ") higher"
                                 : "no Hadamard of order " + std::to_string(shard) + " can be built",
                           local, 0});
        // Every device gathers the shards of the others and keeps its own part of the result.
        const double sent = kStoredBytes * 2 * static_cast<double>(channels) * (devices - 1) / devices;
        choices.push_back({"communication", "an all-to-all before and after " + name, true, sent});
        const bool permutes = std::holds_alternative<PermuteOp>(op.value);
        choices.push_back({"resharding",
                           permutes ? "the producer's rows move with it, offline" : "only a permutation can be resharded offline",
                           permutes, 0});
        choices.push_back(
            {"shard_aligned", "fit the factor again with a block that divides " + std::to_string(shard), width > 1, 0});
        choices.push_back({"refuse", "keep the edge as identity on " + std::to_string(devices) + " devices", true, 0});
    }
    return choices;
}

PlanLedger ledgerOf(const Plan &plan, const MachineProfile *machine)
{
    PlanLedger ledger;
    ledger.prefill.tokens = plan.ledgerOptions.prefillTokens;
    ledger.decode.tokens = plan.ledgerOptions.batch;
    ledger.machine = machine ? machine->name : std::string();
    std::map<std::int64_t, LayerLedger> layers;
    double bits = 0, elements = 0;
    for (const Assignment &a : plan.assignments) {
        EdgeLedger entry = edgeLedger(a, plan, machine);
        ledger.prefill += entry.prefill;
        ledger.decode += entry.decode;
        ledger.metadataBytes += entry.metadataBytes;
        ledger.weightBytes += entry.weightBytes;
        ledger.tensorsRewritten += static_cast<std::int64_t>(a.placement.fusedInto.size());
        ledger.onlineOperators += static_cast<std::int64_t>(a.placement.online.size());
        bits += a.ledger.weightBits * static_cast<double>(a.weightElements);
        elements += static_cast<double>(a.weightElements);
        addToLayers(entry, layers);
        ledger.edges.push_back(std::move(entry));
    }
    for (auto &[number, layer] : layers)
        ledger.layers.push_back(std::move(layer));
    if (elements > 0)
        ledger.weightBits = bits / elements;
    if (ledger.prefill.tokens > 0) {
        ledger.onlineFlopsPerToken = ledger.prefill.flops / static_cast<double>(ledger.prefill.tokens);
        ledger.onlineBytesPerToken = ledger.prefill.bytes / static_cast<double>(ledger.prefill.tokens);
    }
    return ledger;
}

} // namespace planish
