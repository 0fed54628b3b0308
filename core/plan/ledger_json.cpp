// The ledger as the manifest and `plan --json` carry it: prefill and decode apart, per layer and in total.
#include "core/plan/plan_ledger.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

Json timeJson(const TimeEstimate &time)
{
    return {{"transform", time.transform}, {"quantize", time.quantize}, {"gemm", time.gemm},
            {"epilogue", time.epilogue},   {"traffic", time.traffic},   {"communication", time.communication},
            {"total", time.total()}};
}

Json phaseJson(const PhaseCost &cost)
{
    Json json = {
        {"tokens", cost.tokens}, {"online_flops", cost.flops}, {"online_bytes", cost.bytes}, {"launches", cost.launches}};
    if (cost.time)
        json["estimate_us"] = timeJson(*cost.time);
    return json;
}

Json totalJson(const PlanLedger &ledger, const PhaseCost PlanLedger::*total, const PhaseCost LayerLedger::*layer)
{
    Json json = phaseJson(ledger.*total), layers = Json::array();
    json["metadata_bytes"] = ledger.metadataBytes;
    for (const LayerLedger &each : ledger.layers) {
        Json entry = {{"layer", each.layer}};
        entry.update(phaseJson(each.*layer));
        entry.erase("tokens");
        entry["metadata_bytes"] = each.metadataBytes;
        entry["weight_bytes"] = each.weightBytes;
        layers.push_back(std::move(entry));
    }
    json["layers"] = std::move(layers);
    return json;
}

Json edgeJson(const EdgeLedger &entry)
{
    Json online = Json::array(), shards = Json::array();
    for (const OnChip &fit : entry.online)
        online.push_back(
            {{"operator", fit.op}, {"factor_bytes", fit.factorBytes}, {"tile_bytes", fit.tileBytes}, {"fits_sram", fit.fits}});
    for (const ShardChoice &choice : entry.shards)
        shards.push_back({{"choice", choice.choice},
                          {"possible", choice.possible},
                          {"bytes_per_token", choice.bytesPerToken},
                          {"sentence", choice.sentence}});
    return {{"edge", entry.edge.value},
            {"online", std::move(online)},
            {"tensor_parallel", std::move(shards)},
            {"notes", entry.notes}};
}

} // namespace

nlohmann::ordered_json ledgerJson(const PlanLedger &ledger)
{
    Json json = {{"prefill", totalJson(ledger, &PlanLedger::prefill, &LayerLedger::prefill)},
                 {"decode", totalJson(ledger, &PlanLedger::decode, &LayerLedger::decode)},
                 {"weight_bytes", ledger.weightBytes},
                 {"weight_bits", ledger.weightBits ? Json(*ledger.weightBits) : Json(nullptr)},
                 {"online_flops_per_token", ledger.onlineFlopsPerToken},
                 {"online_bytes_per_token", ledger.onlineBytesPerToken},
                 {"conversion",
                  {{"tensors_rewritten", ledger.tensorsRewritten},
                   {"online_operators", ledger.onlineOperators},
                   {"files", ledger.files}}}};
    Json edges = Json::array();
    for (const EdgeLedger &entry : ledger.edges) {
        if (!entry.online.empty() || !entry.shards.empty() || !entry.notes.empty())
            edges.push_back(edgeJson(entry));
    }
    if (!edges.empty())
        json["edges"] = std::move(edges);
    if (!ledger.machine.empty())
        json["machine"] = {{"name", ledger.machine},
                           {"claim", "derived from a typed-in profile; an estimate, nothing was timed"}};
    return json;
}

} // namespace planish
