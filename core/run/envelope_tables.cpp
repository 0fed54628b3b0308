// JSON of the tables: methods, formats, backends; and the small envelopes that need no file of their own.
#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "core/methods/method_table.h"
#include "core/io/file_key.h"
#include "core/quant/format_table.h"
#include "core/run/envelope.h"
#include "kernels/backend_list.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

std::string_view nameOf(Need need)
{
    switch (need) {
    case Need::Activations:
        return "X";
    case Need::Weights:
        return "W";
    case Need::Specs:
        return "specs";
    case Need::Norm:
        return "norm";
    case Need::AllLayers:
        return "all_layers";
    }
    return "";
}

std::string_view nameOf(ParamType type)
{
    switch (type) {
    case ParamType::Real:
        return "real";
    case ParamType::Integer:
        return "integer";
    case ParamType::Enum:
        return "enum";
    case ParamType::List:
        return "list";
    }
    return "";
}

Json paramJson(const ParamRow &row)
{
    Json json{{"name", row.name}, {"type", nameOf(row.type)}};
    if (row.type == ParamType::Real || row.type == ParamType::Integer) {
        json["min"] = row.min;
        json["max"] = row.max;
        json["step"] = row.step;
    }
    json["default"] = row.defaultValue;
    json["values"] = row.values;
    json["help"] = row.help;
    return json;
}

void escapeInto(std::string &out, const Json &value)
{
    out += value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string numberText(double value)
{
    if (!std::isfinite(value))
        return "null";
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", value);
    return text;
}

void writeInto(std::string &out, const Json &value)
{
    if (value.is_object()) {
        out += '{';
        bool first = true;
        for (const auto &[key, each] : value.items()) {
            if (!first)
                out += ',';
            first = false;
            escapeInto(out, Json(key));
            out += ':';
            writeInto(out, each);
        }
        out += '}';
    } else if (value.is_array()) {
        out += '[';
        for (std::size_t i = 0; i < value.size(); ++i) {
            if (i)
                out += ',';
            writeInto(out, value[i]);
        }
        out += ']';
    } else if (value.is_number_float()) {
        out += numberText(value.get<double>());
    } else {
        escapeInto(out, value);
    }
}

} // namespace

std::string dumpJson(const Json &object)
{
    std::string out;
    writeInto(out, object);
    return out;
}

Json methodsJson()
{
    Json methods = Json::array();
    for (const MethodRow &row : methodTable()) {
        Json needs = Json::array();
        for (Need need : row.needs)
            needs.push_back(nameOf(need));
        Json params = Json::array();
        for (const ParamRow &param : row.params)
            params.push_back(paramJson(param));
        methods.push_back({{"key", row.key},
                           {"label", row.label},
                           {"source", row.source},
                           {"needs", needs},
                           {"changes_function", row.changesFunction},
                           {"learned", row.learned},
                           {"params", params}});
    }
    Json absent = Json::array();
    for (std::string_view key : publicMethodKeys()) {
        if (!findMethod(key))
            absent.push_back(key);
    }
    return {{"schema", "planish.methods/1"}, {"methods", methods}, {"not_built", absent}};
}

Json formatsJson()
{
    Json formats = Json::array();
    for (const FormatRow &row : formatTable())
        formats.push_back({{"key", row.key},
                           {"label", row.label},
                           {"bits", row.bits},
                           {"block", row.block},
                           {"scale_bits", row.scaleBits},
                           {"activation_sharings", row.activationSharings},
                           {"weight_sharings", row.weightSharings},
                           {"activation_default", row.activationDefault},
                           {"weight_default", row.weightDefault},
                           {"options", row.options}});
    return {{"schema", "planish.formats/1"}, {"formats", formats}};
}

Json backendsJson()
{
    Json backends = Json::array();
    for (const BackendInfo &info : listBackends())
        backends.push_back({{"key", info.key}, {"label", info.label}, {"usable", info.usable}, {"reason", info.reason}});
    return {{"schema", "planish.backends/1"}, {"backends", backends}};
}

Json quantizationJson(const QuantizationResult &r)
{
    return {{"schema", "planish.quantization/1"},
            {"file", r.file},
            {"tensor", r.tensor},
            {"rows", {r.rowBegin, r.rowEnd}},
            {"columns", r.columns},
            {"spec", r.spec},
            {"relative_frobenius", r.relativeFrobenius},
            {"squared_error", r.squaredError},
            {"zeroed_fraction", r.zeroedFraction},
            {"saturated_fraction", r.saturatedFraction},
            {"sum_codes", r.sumCodes},
            {"sum_abs_codes", r.sumAbsCodes},
            {"scale_checksum", r.scaleChecksum},
            {"scale_count", r.scaleCount},
            {"sum_zero_points", r.sumZeroPoints},
            {"tensor_scale", r.tensorScale},
            {"near_ties", r.nearTies}};
}

Json toJson(const QuantizationResult &result) { return quantizationJson(result); }

Json filesJson(const std::vector<std::string> &files)
{
    Json list = Json::array();
    for (const std::string &file : files) {
        auto hash = sha256OfFile(file);
        std::error_code code;
        const std::uintmax_t bytes = std::filesystem::file_size(file, code);
        list.push_back(Json{{"file", file}, {"bytes", code ? 0 : bytes}, {"sha256", hash ? Json(*hash) : Json(nullptr)}});
    }
    return {{"schema", "planish.files/1"}, {"files", list}};
}

} // namespace planish
