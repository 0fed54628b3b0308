// An evaluation as it is kept between runs: its printed object and the error sums ranking needs. Factors are not kept.
#pragma once

#include <optional>

#include <nlohmann/json.hpp>

#include "core/evaluate/evaluation.h"

namespace planish {

nlohmann::ordered_json evaluationState(const Evaluation &evaluation);
/// Nothing when the object is not one of ours.
std::optional<Evaluation> evaluationFromState(const nlohmann::ordered_json &json, const Candidate &candidate);

} // namespace planish
