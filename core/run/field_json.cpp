#include "core/run/field_json.h"

#include <algorithm>
#include <cmath>

namespace planish {

using Json = nlohmann::ordered_json;

nlohmann::ordered_json fieldJson(const FieldValue &value)
{
    return std::visit(
        [](const auto &item) -> Json {
            using Item = std::decay_t<decltype(item)>;
            if constexpr (std::is_same_v<Item, std::monostate>)
                return nullptr;
            else if constexpr (std::is_same_v<Item, double>)
                return std::isfinite(item) ? Json(item) : Json(nullptr);
            else
                return item;
        },
        value);
}

nlohmann::ordered_json fieldsJson(const Fields &fields)
{
    Json json = Json::object();
    for (const auto &[name, value] : fields)
        json[name] = fieldJson(value);
    return json;
}

FieldValue fieldFromJson(const nlohmann::ordered_json &json)
{
    if (json.is_boolean())
        return json.get<bool>();
    if (json.is_number_integer())
        return json.get<std::int64_t>();
    if (json.is_number())
        return json.get<double>();
    if (json.is_string())
        return json.get<std::string>();
    if (json.is_array() && !json.empty() && std::ranges::all_of(json, [](const Json &item) { return item.is_number(); }))
        return json.get<std::vector<double>>();
    if (json.is_array() && std::ranges::all_of(json, [](const Json &item) { return item.is_string(); }))
        return json.get<std::vector<std::string>>();
    return std::monostate{};
}

Fields fieldsFromJson(const nlohmann::ordered_json &json)
{
    Fields fields;
    for (const auto &[name, value] : json.items())
        fields[name] = fieldFromJson(value);
    return fields;
}

} // namespace planish
