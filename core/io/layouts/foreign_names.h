// What the path of a foreign dataset says: layer, site, whether it is an output, whether it is a weight.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace planish {

struct PlaceInName {
    std::int64_t layer = -1;
    std::string site;         ///< of dump-format.md; empty when the name does not say
    bool output = false;      ///< ".output": what a module gives, not what it reads
    bool moduleInput = false; ///< ".input": what a module reads, rows first by the family's convention
    std::string rest;         ///< what follows the layer, joined by dots
};

/// Lower-case parts between '/', '.' and quotes.
std::vector<std::string> nameParts(std::string_view path);
PlaceInName placeInName(std::string_view path);
/// "/a/b" -> "b", "/a/b" -> "/a" ("" at the root).
std::string_view leafOf(std::string_view path);
std::string_view parentOf(std::string_view path);
/// True for names weights have: under /weights, ".weight", "kernel", "k_proj" (without ".input"), "w".
bool namesWeight(std::string_view path);
/// Dump name of a PyTorch weight: "layers.2.k_proj"; the dotted path without ".weight" when no layer is in it.
std::string weightNameOf(std::string_view path);
/// A number at the end ("sample_12"): its value and the text before it; -1 without one.
struct NumberedName {
    std::string stem;
    std::int64_t number = -1;
};
NumberedName numberedName(std::string_view name);

} // namespace planish
