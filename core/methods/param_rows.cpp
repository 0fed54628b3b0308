#include "core/methods/param_rows.h"

#include <utility>

namespace planish {

ParamRow realParam(std::string name, double min, double max, double step, std::string defaultValue, std::string help,
                   std::vector<std::string> words)
{
    return {.name = std::move(name),
            .type = ParamType::Real,
            .min = min,
            .max = max,
            .step = step,
            .values = std::move(words),
            .defaultValue = std::move(defaultValue),
            .help = std::move(help),
            .aliases = {}};
}

ParamRow integerParam(std::string name, std::int64_t min, std::int64_t max, std::string defaultValue, std::string help,
                      std::vector<std::string> words)
{
    return {.name = std::move(name),
            .type = ParamType::Integer,
            .min = static_cast<double>(min),
            .max = static_cast<double>(max),
            .step = 1,
            .values = std::move(words),
            .defaultValue = std::move(defaultValue),
            .help = std::move(help),
            .aliases = {}};
}

ParamRow enumParam(std::string name, std::vector<std::string> values, std::string help, std::vector<std::string> aliases)
{
    std::string first = values.front();
    return {.name = std::move(name),
            .type = ParamType::Enum,
            .min = 0,
            .max = 0,
            .step = 0,
            .values = std::move(values),
            .defaultValue = std::move(first),
            .help = std::move(help),
            .aliases = std::move(aliases)};
}

ParamRow listParam(std::string name, std::string defaultValue, std::string help)
{
    return {.name = std::move(name),
            .type = ParamType::List,
            .min = 0,
            .max = 0,
            .step = 0,
            .values = {},
            .defaultValue = std::move(defaultValue),
            .help = std::move(help),
            .aliases = {}};
}

ParamRow tiesParam()
{
    return enumParam("ties", {"auto", "none"},
                     "auto: channels the model ties (repeated key-value heads, RoPE pairs) share one factor; none: free factors, "
                     "charged as online");
}

ParamRow searchRowsParam()
{
    return enumParam("search_rows", {"auto", "fit", "validation"},
                     "rows a search is scored on: all calibration rows, or their inner validation part; auto follows the method");
}

ParamRow seedsParam()
{
    return integerParam("seeds", 1, 256, "1", "best of seed, seed+1, … by output error on the search rows");
}

ParamRow gainParam(const std::string &defaultValue)
{
    ParamRow row = enumParam(
        "gain", {"keep", "absorb"},
        "absorb: the norm gain goes into the weights first, as a rotation fused into the stream ships; keep: the gain stays, the "
        "rotation is online");
    row.defaultValue = defaultValue;
    return row;
}

} // namespace planish
