// JSON of `params` and `fitted` values, and of them back. Used by evaluations, comparisons and the state of compare.
#pragma once

#include <nlohmann/json.hpp>

#include "core/transform/rewrite.h"

namespace planish {

nlohmann::ordered_json fieldJson(const FieldValue &value);
nlohmann::ordered_json fieldsJson(const Fields &fields);
/// The value a JSON field stands for; anything else than the types of FieldValue gives an empty value.
FieldValue fieldFromJson(const nlohmann::ordered_json &json);
Fields fieldsFromJson(const nlohmann::ordered_json &json);

} // namespace planish
