#include <algorithm>

#include "core/plan/manifest.h"
#include "core/plan/manifest_operators.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char *kPrecisions[] = {"stored", "fp16", "bf16", "quantized"};

const char *precisionText(Precision precision)
{
    return kPrecisions[static_cast<int>(precision)];
}

Precision readPrecision(const YamlReader &reader, Precision fallback)
{
    const std::string word = reader.textOr(precisionText(fallback));
    for (int i = 0; i < 4; ++i) {
        if (word == kPrecisions[i])
            return static_cast<Precision>(i);
    }
    reader.fail("unknown precision " + word, "expected stored, fp16, bf16 or quantized");
    return fallback;
}

Json exceptionsJson(const Exceptions &exceptions)
{
    Json entry;
    if (const auto *fixed = std::get_if<StaticExceptions>(&exceptions.rule)) {
        entry["mode"] = "static";
        entry["columns"] = fixed->columns;
    } else {
        const auto &rule = std::get<DynamicExceptions>(exceptions.rule);
        entry["mode"] = "dynamic";
        entry["threshold"] = rule.threshold;
        entry["comparator"] = rule.comparator == Comparator::Greater ? "gt" : "ge";
        entry["unit"] = rule.unit == ExceptionUnit::All ? "all" : "request";
    }
    entry["x_precision"] = precisionText(exceptions.activation);
    entry["w_precision"] = precisionText(exceptions.weight);
    entry["step_ignores"] = exceptions.stepIgnores == StepIgnores::Elements ? "elements" : "columns";
    return Json::array({std::move(entry)});
}

std::optional<Exceptions> readExceptions(const YamlReader &list)
{
    const std::vector<YamlReader> items = list.items();
    if (items.empty())
        return std::nullopt;
    if (items.size() > 1)
        list.fail("holds more than one rule", "expected at most one exception rule");
    const YamlReader &entry = items[0];
    entry.onlyKeys({"mode", "columns", "threshold", "comparator", "unit", "x_precision", "w_precision", "step_ignores", "statistic"});
    Exceptions exceptions;
    const std::string mode = entry["mode"].text();
    if (mode == "static") {
        StaticExceptions fixed;
        for (const YamlReader &column : entry["columns"].items())
            fixed.columns.push_back(column.integer());
        exceptions.rule = std::move(fixed);
    } else if (mode == "dynamic") {
        DynamicExceptions rule;
        rule.threshold = entry["threshold"].number();
        rule.comparator = entry["comparator"].textOr("ge") == "gt" ? Comparator::Greater : Comparator::GreaterEqual;
        rule.unit = entry["unit"].textOr("request") == "all" ? ExceptionUnit::All : ExceptionUnit::Request;
        exceptions.rule = rule;
    } else {
        entry["mode"].fail("unknown mode " + mode, "expected static or dynamic");
    }
    exceptions.activation = readPrecision(entry["x_precision"], Precision::Stored);
    exceptions.weight = readPrecision(entry["w_precision"], Precision::Stored);
    exceptions.stepIgnores = entry["step_ignores"].textOr("columns") == "elements" ? StepIgnores::Elements : StepIgnores::Columns;
    return exceptions;
}

/// Bounds as one tensor: [n] upper bounds, or [2, n] lower above upper.
Json clipJson(const Clip &clip, const Assignment &assignment, const std::string &key, SideTensors &side)
{
    Json entry = {{"target", clip.target == Target::Weight ? "weight" : "activation"},
                  {"bound", clip.kind == Clip::Kind::Multiplier ? "multiplier" : "absolute"}};
    if (clip.target == Target::Weight && clip.consumer < assignment.consumers.size())
        entry["consumer"] = assignment.consumers[clip.consumer];
    if (clip.clampsValues)
        entry["clamps_values"] = true;
    const bool one = clip.kind == Clip::Kind::AbsoluteBound || clip.lo.size() != clip.hi.size();
    std::vector<double> values = one ? std::vector<double>() : clip.lo;
    values.insert(values.end(), clip.hi.begin(), clip.hi.end());
    const std::uint64_t n = clip.hi.size();
    entry["tensor"] = side.add(key + ".clip", values, one ? std::vector<std::uint64_t>{n} : std::vector<std::uint64_t>{2, n});
    return entry;
}

Clip readClip(const YamlReader &entry, SideReader &side, const Assignment &assignment)
{
    entry.onlyKeys({"target", "bound", "consumer", "clamps_values", "shape", "tensor"});
    Clip clip;
    const std::string target = entry["target"].text(), bound = entry["bound"].text();
    if (target != "weight" && target != "activation")
        entry["target"].fail("unknown target " + target, "expected weight or activation");
    if (bound != "multiplier" && bound != "absolute")
        entry["bound"].fail("unknown bound " + bound, "expected absolute or multiplier");
    clip.target = target == "weight" ? Target::Weight : Target::Activation;
    clip.clampsValues = entry["clamps_values"].booleanOr(false);
    if (entry["consumer"].present()) {
        const auto found = std::find(assignment.consumers.begin(), assignment.consumers.end(), entry["consumer"].text());
        if (found == assignment.consumers.end())
            entry["consumer"].fail("is no consumer of this edge", "expected one of consumers");
        clip.consumer = static_cast<std::size_t>(found - assignment.consumers.begin());
    }
    const SideReader::Array array = side.read(entry["tensor"]);
    const bool pairs = array.shape.size() == 2 && array.shape[0] == 2;
    if (array.shape.size() != 1 && !pairs)
        entry["tensor"].fail("has an unexpected shape", "expected [n] or [2, n]");
    const auto half = array.values.begin() + static_cast<std::ptrdiff_t>(pairs ? array.size() / 2 : 0);
    clip.lo.assign(array.values.begin(), half);
    clip.hi.assign(half, array.values.end());
    clip.kind = bound == "multiplier" ? Clip::Kind::Multiplier : pairs ? Clip::Kind::AbsoluteRange : Clip::Kind::AbsoluteBound;
    return clip;
}

Json lowRankJson(const LowRank &lowRank, const std::string &key, SideTensors &side)
{
    Json tensors = Json::array();
    for (std::size_t i = 0; i < lowRank.left.size(); ++i)
        tensors.push_back({{"left", side.add(key + ".left", lowRank.left[i])}, {"right", side.add(key + ".right", lowRank.right[i])}});
    return {{"rank", lowRank.rank}, {"branch", lowRank.stacked ? "stacked" : "per_consumer"}, {"precision", precisionText(lowRank.precision)},
            {"tensors", std::move(tensors)}};
}

std::optional<LowRank> readLowRank(const YamlReader &entry, SideReader &side)
{
    if (!entry.present())
        return std::nullopt;
    entry.onlyKeys({"rank", "branch", "precision", "tensors"});
    LowRank lowRank;
    lowRank.rank = entry["rank"].unsignedOr(0);
    lowRank.stacked = entry["branch"].textOr("per_consumer") == "stacked";
    lowRank.precision = readPrecision(entry["precision"], Precision::Fp16);
    for (const YamlReader &pair : entry["tensors"].items()) {
        pair.onlyKeys({"left", "right"});
        lowRank.left.push_back(side.matrix(pair["left"]));
        lowRank.right.push_back(side.matrix(pair["right"]));
        if (!entry.errors().first && (lowRank.left.back().cols() != lowRank.rank || lowRank.right.back().rows() != lowRank.rank))
            pair.fail("has another rank", "expected left [N, rank] and right [rank, K]");
    }
    return lowRank;
}

Json otherReadersJson(const std::vector<OtherReaderRewrite> &readers, const std::string &key, SideTensors &side)
{
    Json list = Json::array();
    for (const OtherReaderRewrite &reader : readers) {
        if (!reader.multiply.empty())
            list.push_back({{"reader", reader.reader}, {"operator", "multiply"},
                            {"tensor", side.add(key + ".multiply", reader.multiply, {reader.multiply.size()})}});
        if (!reader.addToBias.empty())
            list.push_back({{"reader", reader.reader}, {"operator", "bias"}, {"bias_of", reader.biasOf},
                            {"tensor", side.add(key + ".add_to_bias", reader.addToBias, {reader.addToBias.size()})}});
    }
    return list;
}

std::vector<OtherReaderRewrite> readOtherReaders(const YamlReader &list, SideReader &side)
{
    std::vector<OtherReaderRewrite> readers;
    for (const YamlReader &entry : list.items()) {
        entry.onlyKeys({"reader", "operator", "bias_of", "tensor"});
        const std::string name = entry["reader"].text(), word = entry["operator"].text();
        if (word != "multiply" && word != "bias")
            entry["operator"].fail("unknown operator " + word, "expected multiply or bias");
        auto found = std::find_if(readers.begin(), readers.end(), [&](const OtherReaderRewrite &reader) { return reader.reader == name; });
        if (found == readers.end())
            found = readers.insert(readers.end(), OtherReaderRewrite{name, {}, {}, {}});
        (word == "multiply" ? found->multiply : found->addToBias) = side.vector(entry["tensor"]);
        if (entry["bias_of"].present() && entry["bias_of"].node()->text != "")
            found->biasOf = entry["bias_of"].text();
    }
    return readers;
}

TrainingRecord readTraining(const YamlReader &entry)
{
    entry.onlyKeys({"optimizer", "betas", "lr", "schedule", "steps", "batch_rows", "ste", "detached", "objective", "init", "inputs", "validation",
                    "best_step", "start_objective", "final_objective", "seconds", "label"});
    TrainingRecord record;
    record.optimizer = entry["optimizer"].textOr("");
    for (const YamlReader &beta : entry["betas"].items())
        record.betas.push_back(beta.number());
    record.lr = entry["lr"].numberOr(0);
    record.schedule = entry["schedule"].textOr("");
    record.steps = entry["steps"].integerOr(0);
    record.batchRows = entry["batch_rows"].integerOr(0);
    record.ste = entry["ste"].booleanOr(false);
    record.detached = entry["detached"].booleanOr(false);
    record.objective = entry["objective"].textOr("");
    record.init = entry["init"].textOr("");
    for (const YamlReader &point : entry["validation"].items())
        record.curve.push_back(point.numberOr(0));
    record.bestStep = entry["best_step"].integerOr(0);
    record.startObjective = entry["start_objective"].numberOr(0);
    record.finalObjective = entry["final_objective"].numberOr(0);
    record.seconds = entry["seconds"].numberOr(0);
    return record;
}

} // namespace

nlohmann::ordered_json trainingJson(const TrainingRecord &r)
{
    Json json = {{"optimizer", r.optimizer}, {"betas", r.betas},       {"lr", r.lr},         {"schedule", r.schedule},   {"steps", r.steps},
                 {"batch_rows", r.batchRows}, {"ste", r.ste},          {"detached", r.detached}, {"objective", r.objective}, {"init", r.init},
                 {"inputs", "fp"},           {"validation", r.curve},  {"best_step", r.bestStep}, {"start_objective", r.startObjective},
                 {"final_objective", r.finalObjective}, {"seconds", r.seconds}};
    return json;
}

void writeRewriteSlots(const Assignment &assignment, const std::string &key, nlohmann::ordered_json &entry, SideTensors &side)
{
    const Rewrite identity;
    const Rewrite &rewrite = assignment.rewrite ? *assignment.rewrite : identity;
    if (rewrite.output)
        entry["output_operators"] = transformJson(*rewrite.output, key + ".output", side);
    if (!rewrite.otherReaders.empty())
        entry["other_readers"] = otherReadersJson(rewrite.otherReaders, key, side);
    entry["exceptions"] = rewrite.exceptions ? exceptionsJson(*rewrite.exceptions) : Json::array();
    if (rewrite.lowRank)
        entry["low_rank"] = lowRankJson(*rewrite.lowRank, key, side);
    if (!rewrite.clips.empty()) {
        entry["clips"] = Json::array();
        for (const Clip &clip : rewrite.clips)
            entry["clips"].push_back(clipJson(clip, assignment, key, side));
    }
    Json replaced = Json::array();
    for (std::size_t i = 0; i < rewrite.replaced.size(); ++i) {
        if (rewrite.replaced[i])
            replaced.push_back({{"consumer", i < assignment.consumers.size() ? assignment.consumers[i] : std::to_string(i)},
                                {"tensor", side.add(key + ".replaced", *rewrite.replaced[i])}});
    }
    if (!replaced.empty())
        entry["replaced"] = std::move(replaced);
    if (rewrite.training) {
        entry["training"] = trainingJson(*rewrite.training);
        const bool rotation = !rewrite.input.isIdentity() && !isDiagonal(rewrite.input.operators.empty() ? Operator{} : rewrite.input.operators.back());
        if (rotation && !assignment.edge.value.empty())
            entry["training"]["label"] = "edge-local proxy";
    }
}

void readRewriteSlots(const YamlReader &entry, SideReader &side, const Assignment &assignment, Rewrite &rewrite)
{
    if (entry["output_operators"].present() && !entry["output_operators"].items().empty())
        rewrite.output = readTransform(entry["output_operators"], side, NegativeFactors::Refused);
    rewrite.otherReaders = readOtherReaders(entry["other_readers"], side);
    rewrite.exceptions = readExceptions(entry["exceptions"]);
    rewrite.lowRank = readLowRank(entry["low_rank"], side);
    for (const YamlReader &clip : entry["clips"].items())
        rewrite.clips.push_back(readClip(clip, side, assignment));
    for (const YamlReader &item : entry["replaced"].items()) {
        item.onlyKeys({"consumer", "tensor"});
        const auto found = std::find(assignment.consumers.begin(), assignment.consumers.end(), item["consumer"].text());
        if (found == assignment.consumers.end()) {
            item["consumer"].fail("is no consumer of this edge", "expected one of consumers");
            break;
        }
        rewrite.replaced.resize(assignment.consumers.size());
        rewrite.replaced[static_cast<std::size_t>(found - assignment.consumers.begin())] = side.matrix(item["tensor"]);
    }
    if (entry["training"].present())
        rewrite.training = readTraining(entry["training"]);
}

} // namespace planish
