// The words of a QuantSpec's options and what they mean; shared by the parser and the canonical print.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/number_grid.h"

namespace planish {

struct DialectWord {
    std::string_view word;
    Dialect dialect;
    ToolDialect tool;
};

/// First word of a dialect is the canonical one; `s-half` and `a-raw` are the spellings of diagonal.md 2.2.
inline constexpr std::array<DialectWord, 20> kDialects = {{{"narrow", Dialect::Narrow, ToolDialect::None},
                                                           {"mixed", Dialect::Mixed, ToolDialect::None},
                                                           {"half", Dialect::Half, ToolDialect::None},
                                                           {"offset", Dialect::Offset, ToolDialect::None},
                                                           {"signed", Dialect::Signed, ToolDialect::None},
                                                           {"zero", Dialect::Zero, ToolDialect::None},
                                                           {"raw", Dialect::Raw, ToolDialect::None},
                                                           {"free", Dialect::Free, ToolDialect::None},
                                                           {"bitsandbytes", Dialect::Narrow, ToolDialect::BitsAndBytes},
                                                           {"compressed_tensors", Dialect::Half, ToolDialect::CompressedTensors},
                                                           {"llm_awq", Dialect::Raw, ToolDialect::LlmAwq},
                                                           {"omniquant", Dialect::Free, ToolDialect::OmniQuant},
                                                           {"s-narrow", Dialect::Narrow, ToolDialect::None},
                                                           {"s-mixed", Dialect::Mixed, ToolDialect::None},
                                                           {"s-half", Dialect::Half, ToolDialect::None},
                                                           {"s-offset", Dialect::Offset, ToolDialect::None},
                                                           {"s-signed", Dialect::Signed, ToolDialect::None},
                                                           {"a-zero", Dialect::Zero, ToolDialect::None},
                                                           {"a-raw", Dialect::Raw, ToolDialect::None},
                                                           {"a-free", Dialect::Free, ToolDialect::None}}};
inline constexpr std::array<std::pair<std::string_view, MxRule>, 5> kRules = {{{"floor", MxRule::Floor},
                                                                               {"even", MxRule::Even},
                                                                               {"even_elem", MxRule::EvenElem},
                                                                               {"ceil", MxRule::Ceil},
                                                                               {"fourthirds", MxRule::FourThirds}}};
inline constexpr std::array<std::pair<std::string_view, StepType>, 4> kStepTypes = {
    {{"f64", StepType::F64}, {"f32", StepType::F32}, {"f16", StepType::F16}, {"bf16", StepType::Bf16}}};
inline constexpr std::array<std::pair<std::string_view, TailRule>, 3> kTails = {
    {{"short", TailRule::Short}, {"pad", TailRule::Pad}, {"reject", TailRule::Reject}}};

template <class Value, std::size_t N>
std::vector<std::string> wordsOf(const std::array<std::pair<std::string_view, Value>, N> &table)
{
    std::vector<std::string> words;
    for (const auto &[word, value] : table)
        words.emplace_back(word);
    return words;
}

template <class Value, std::size_t N>
std::string_view wordOf(const std::array<std::pair<std::string_view, Value>, N> &table, Value value)
{
    return std::ranges::find(table, value, &std::pair<std::string_view, Value>::second)->first;
}

} // namespace planish
