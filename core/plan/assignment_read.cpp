#include <algorithm>
#include <cmath>

#include "core/plan/manifest.h"
#include "core/plan/manifest_operators.h"

namespace planish {

namespace {

FieldValue readField(const YamlReader &reader)
{
    if (!reader.present())
        return std::monostate();
    const YamlNode &node = *reader.node();
    if (node.isSequence()) {
        const std::vector<YamlReader> items = reader.items();
        const bool texts = !items.empty() && items[0].present() && items[0].node()->kind == YamlNode::Kind::Scalar &&
                           kindOf(*items[0].node()) == ScalarKind::Text;
        if (texts)
            return reader.texts();
        std::vector<double> numbers;
        for (const YamlReader &item : items)
            numbers.push_back(item.present() ? item.number() : std::nan(""));
        return numbers;
    }
    if (node.isMap()) {
        reader.fail("is a map", "expected a number, a text or a list");
        return std::monostate();
    }
    switch (kindOf(node)) {
    case ScalarKind::Boolean: return reader.booleanOr(false);
    case ScalarKind::Integer: return reader.integer();
    case ScalarKind::Text: return reader.text();
    default: return reader.number();
    }
}

/// Parameters must be those of the method's row, so that a misspelt one never passes as a default.
void checkParams(const YamlReader &params, const std::string &method)
{
    const MethodRow *row = findMethod(method);
    if (!row)
        return;
    std::string known;
    for (const ParamRow &param : row->params)
        known += (known.empty() ? "" : ", ") + param.name;
    for (const auto &[name, reader] : params.entries()) {
        const bool found = std::any_of(row->params.begin(), row->params.end(), [&](const ParamRow &param) { return param.name == name; });
        if (!found)
            reader.fail("unknown parameter of " + method, known.empty() ? "expected no parameters" : "expected one of " + known);
    }
}

FittedMember readMember(const YamlReader &entry, std::uint64_t &seed)
{
    FittedMember member;
    member.method = entry["method"].text();
    const auto keys = publicMethodKeys();
    if (!entry.errors().first && std::find(keys.begin(), keys.end(), member.method) == keys.end())
        entry["method"].fail("unknown method " + member.method, "expected a method key of planish-cli methods");
    checkParams(entry["params"], member.method);
    member.params = readFields(entry["params"]);
    member.fitted = readFields(entry["fitted"]);
    if (entry["variant"].present())
        member.params["variant"] = entry["variant"].text();
    seed = entry["seed"].unsignedOr(0);
    return member;
}

void readMethod(const YamlReader &entry, Assignment &assignment)
{
    std::uint64_t seed = 0;
    if (entry["chain"].present()) {
        for (const char *name : {"method", "variant", "params", "fitted"}) {
            if (entry[name].given())
                entry[name].fail("stands beside chain", "expected either chain or method");
        }
        for (const YamlReader &member : entry["chain"].items()) {
            member.onlyKeys({"method", "variant", "params", "fitted", "seed"});
            assignment.chain.push_back(readMember(member, seed));
        }
    } else {
        assignment.chain.push_back(readMember(entry, seed));
    }
    assignment.candidate.seed = seed;
    for (const FittedMember &member : assignment.chain)
        assignment.candidate.chain.push_back({member.method, {}});
    assignment.candidate.name = chainText(assignment.candidate.chain);
}

QuantSpec readSpec(const YamlReader &reader, Role role)
{
    auto spec = parseQuantSpec(reader.textOr("none"), role);
    if (!spec) {
        reader.fail(spec.error().what, spec.error().expected);
        return {};
    }
    return *spec;
}

void readQuantizer(const YamlReader &entry, Candidate &candidate)
{
    entry.onlyKeys({"activation", "weight", "dialect", "packed_layout", "kv"});
    candidate.act = readSpec(entry["activation"], Role::Activation);
    candidate.weight = readSpec(entry["weight"], Role::Weight);
    entry["dialect"].textOr("");
    entry["packed_layout"].textOr("");
    if (entry["kv"].present())
        candidate.kv = readSpec(entry["kv"], Role::Activation);
}

std::optional<Equivalence> readEquivalence(const YamlReader &entry)
{
    if (!entry.present())
        return std::nullopt;
    entry.onlyKeys({"dtype", "relative_frobenius", "max_abs", "max_rel", "floor", "rows", "stored_dtype", "stored_dtype_relative_frobenius"});
    Equivalence e;
    e.relativeFrobenius = entry["relative_frobenius"].number();
    e.maxAbs = entry["max_abs"].numberOr(0);
    e.maxRel = entry["max_rel"].numberOr(0);
    e.floor = entry["floor"].numberOr(0);
    e.rows = entry["rows"].integerOr(0);
    e.storedDtype = entry["stored_dtype"].textOr("");
    e.storedRelativeFrobenius = entry["stored_dtype_relative_frobenius"].numberOr(0);
    e.passed = true;
    return e;
}

Conditioning readConditioning(const YamlReader &entry)
{
    entry.onlyKeys({"kappa", "kappa_non_diagonal", "sigma_min", "sigma_max", "scale_min", "scale_max", "inverse_residual", "orthogonality_residual",
                    "kappa_is_bound"});
    Conditioning c;
    c.kappa = entry["kappa"].numberOr(1);
    c.kappaNonDiagonal = entry["kappa_non_diagonal"].numberOr(1);
    c.sigmaMin = entry["sigma_min"].numberOr(1);
    c.sigmaMax = entry["sigma_max"].numberOr(1);
    c.scaleMin = entry["scale_min"].numberOr(1);
    c.scaleMax = entry["scale_max"].numberOr(1);
    c.inverseResidual = entry["inverse_residual"].numberOr(0);
    c.orthogonalityResidual = entry["orthogonality_residual"].numberOr(0);
    c.kappaIsBound = entry["kappa_is_bound"].booleanOr(false);
    return c;
}

void readOutput(const YamlReader &entry, Assignment &assignment)
{
    entry.onlyKeys({"held_out", "identity_held_out", "joint", "uncertainty", "token_dominated", "sealed", "identity_sealed", "per_edge"});
    if (entry["held_out"].present())
        assignment.alone = readOutputBlock(entry["held_out"]);
    if (entry["identity_held_out"].present())
        assignment.identity = readOutputBlock(entry["identity_held_out"]);
    if (entry["joint"].present())
        assignment.joint = readOutputBlock(entry["joint"]);
    if (entry["sealed"].present())
        readOutputBlock(entry["sealed"]);
    const YamlReader u = entry["uncertainty"];
    if (u.present()) {
        u.onlyKeys({"unit", "units", "standard_error", "low", "high"});
        assignment.uncertainty = Uncertainty{u["unit"].textOr(""), u["units"].integerOr(0), u["standard_error"].numberOr(0), u["low"].numberOr(0),
                                             u["high"].numberOr(0), {}};
    }
}

void readExtras(const YamlReader &entry, Assignment &assignment, Rewrite &rewrite)
{
    assignment.candidate.name = entry["x-candidate"].textOr(assignment.candidate.name);
    assignment.status = entry["x-status"].textOr("ok");
    assignment.reason = entry["x-reason"].textOr("");
    assignment.notes = entry["x-notes"].texts();
    const YamlReader ledger = entry["x-ledger"];
    Ledger &l = assignment.ledger;
    l.onlineFlopsPerToken = ledger["online_flops_per_token"].numberOr(0);
    l.onlineBytesPerToken = ledger["online_bytes_per_token"].numberOr(0);
    l.launches = ledger["launches"].numberOr(0);
    l.metadataBytes = ledger["metadata_bytes"].numberOr(0);
    l.weightBits = ledger["weight_bits"].numberOr(l.weightBits);
    l.exceptionColumns = ledger["exception_columns"].numberOr(0);
    assignment.weightElements = ledger["weight_elements"].integerOr(0);
    assignment.channels = ledger["channels"].integerOr(0);
    if (entry["x-specs_decide"].booleanOr(false))
        rewrite.specs = SpecPair{assignment.candidate.act, assignment.candidate.weight, assignment.candidate.kv};
}

/// fused_into is a list of full names, or {producer, consumers} in manifests of other writers.
std::vector<std::string> readFusedInto(const YamlReader &entry)
{
    if (!entry.isMap())
        return entry.texts();
    entry.onlyKeys({"producer", "consumers"});
    std::vector<std::string> names = {entry["producer"].textOr("")};
    for (const std::string &name : entry["consumers"].texts())
        names.push_back(name);
    return names;
}

void checkWidths(const YamlReader &entry, const Rewrite &rewrite)
{
    if (!rewrite.exceptions)
        return;
    const auto *fixed = std::get_if<StaticExceptions>(&rewrite.exceptions->rule);
    const std::size_t channels = rewrite.input.operators.empty() ? 0 : channelsOf(rewrite.input.operators.back());
    for (std::size_t i = 0; fixed && i < fixed->columns.size(); ++i) {
        if (fixed->columns[i] < 0 || (channels && static_cast<std::size_t>(fixed->columns[i]) >= channels))
            entry["exceptions"].fail("column " + std::to_string(fixed->columns[i]) + " does not exist", "expected columns of X'");
    }
}

/// Counts the operators left online; a shift among them is told apart.
void readOnline(const YamlReader &list, std::size_t &count, bool &shiftOnline)
{
    for (const YamlReader &entry : list.items()) {
        entry.onlyKeys({"operator", "place", "kernel", "factors", "factor_shapes", "reshape"});
        const bool shift = entry["operator"].text() == "shift";
        shiftOnline = shiftOnline || shift;
        count += shift ? 0 : 1;
    }
}

void readFindings(const YamlReader &list)
{
    for (const YamlReader &finding : list.items())
        finding.onlyKeys({"id", "kind", "where", "rule", "evidence", "note", "value", "sharing", "stability", "interventions"});
}

} // namespace

Fields readFields(const YamlReader &map)
{
    Fields fields;
    for (const auto &[name, reader] : map.entries())
        fields[name] = readField(reader);
    return fields;
}

OutputBlock readOutputBlock(const YamlReader &map)
{
    map.onlyKeys({"relative_frobenius", "sqnr_db", "mse", "cosine", "max_abs", "rows", "top_rows_share", "token_dominated", "worst_token",
                  "worst_token_absolute", "worst_channel", "worst_channel_absolute", "per_consumer"});
    OutputBlock o;
    o.relativeFrobenius = map["relative_frobenius"].number();
    o.sqnrDb = map["sqnr_db"].numberOr(0);
    o.mse = map["mse"].numberOr(0);
    o.cosine = map["cosine"].numberOr(0);
    o.maxAbs = map["max_abs"].numberOr(0);
    map["rows"].onlyKeys({"rms", "median", "p95", "max"});
    o.rows = {map["rows"]["rms"].numberOr(0), map["rows"]["median"].numberOr(0), map["rows"]["p95"].numberOr(0), map["rows"]["max"].numberOr(0)};
    o.topRowsShare = map["top_rows_share"].numberOr(0);
    o.tokenDominated = map["token_dominated"].booleanOr(false);
    for (const YamlReader &consumer : map["per_consumer"].items()) {
        consumer.onlyKeys({"name", "relative_frobenius"});
        o.perConsumer.push_back({consumer["name"].text(), consumer["relative_frobenius"].numberOr(0)});
    }
    return o;
}

bool methodMayBeNegative(const std::vector<FittedMember> &chain)
{
    return std::any_of(chain.begin(), chain.end(), [](const FittedMember &member) {
        const auto gain = member.params.find("gain");
        const auto *word = gain == member.params.end() ? nullptr : std::get_if<std::string>(&gain->second);
        // quarot and spinquant absorb by default, so a manifest without the parameter may hold negative gains too.
        const bool absorbs = word ? *word == "absorb" : member.method == "quarot" || member.method == "spinquant";
        return member.method == "gamma_migration" || absorbs;
    });
}

Assignment readAssignment(const YamlReader &entry, SideReader &side, const ModelInfo &)
{
    Assignment assignment;
    const YamlReader id = entry[entry["stream"].given() ? "stream" : "edge"];
    const std::string name = id.text();
    entry.errors().scope = name;
    entry.onlyKeys({"edge", "stream", "method", "variant", "params", "fitted", "seed", "chain", "axis", "ties", "producer", "consumers",
                    "other_readers", "operators", "output_operators", "exceptions", "low_rank", "clips", "replaced", "fused_into", "online",
                    "quantizer", "equivalence", "function_change", "conditioning", "output", "phases", "dead_channels", "findings", "training",
                    "writers", "readers", "head", "mean_removed"});
    (entry["stream"].given() ? assignment.stream.value : assignment.edge.value) = name;
    readMethod(entry, assignment);
    if (const std::string axis = entry["axis"].textOr("channel"); axis != "channel")
        entry["axis"].fail("unknown axis " + axis, "expected channel");
    assignment.ties = entry["ties"].textOr("none");
    const YamlReader producer = entry["producer"];
    producer.onlyKeys({"name", "kind", "offset"});
    assignment.producerName = producer["name"].textOr("");
    assignment.producerKind = producer["kind"].textOr("unknown");
    assignment.producerOffset = producer["offset"].booleanOr(false);
    assignment.consumers = entry[entry["stream"].given() ? "readers" : "consumers"].texts();
    auto rewrite = std::make_shared<Rewrite>();
    rewrite->input = readTransform(entry["operators"], side,
                                   methodMayBeNegative(assignment.chain) ? NegativeFactors::Allowed : NegativeFactors::Refused);
    readRewriteSlots(entry, side, assignment, *rewrite);
    checkWidths(entry, *rewrite);
    std::size_t online = 0;
    bool shiftOnline = false;
    readOnline(entry["online"], online, shiftOnline);
    if (online > rewrite->input.operators.size())
        entry["online"].fail("names more operators than the edge has", "expected a suffix of operators");
    assignment.placement.fusedInto = readFusedInto(entry["fused_into"]);
    readQuantizer(entry["quantizer"], assignment.candidate);
    assignment.equivalence = readEquivalence(entry["equivalence"]);
    assignment.functionChange = entry["function_change"].optionalNumber();
    rewrite->changesFunction = assignment.functionChange.has_value();
    assignment.conditioning = readConditioning(entry["conditioning"]);
    readOutput(entry["output"], assignment);
    entry["dead_channels"].onlyKeys({"rule", "count"});
    assignment.deadChannels = entry["dead_channels"]["count"].integerOr(0);
    readFindings(entry["findings"]);
    readExtras(entry, assignment, *rewrite);
    if (!assignment.chain.empty() && assignment.chain.size() == 1)
        rewrite->fitted = assignment.chain[0].fitted;
    assignment.rewrite = std::move(rewrite);
    assignment.placement.fusedOperators = assignment.rewrite->input.operators.size() - std::min(online, assignment.rewrite->input.operators.size());
    assignment.placement.shiftFused = !assignment.rewrite->input.shift.empty() && !shiftOnline;
    completePlacement(assignment);
    entry.errors().scope.clear();
    return assignment;
}

} // namespace planish
