// "Did you mean": the names closest to a wrong one, by edit distance, for messages.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planish {

/// At most `count` of `names`, nearest first; equal distances keep the order of `names`.
std::vector<std::string> nearestNames(std::string_view wanted, const std::vector<std::string> &names, std::size_t count = 3);
/// "a, b or c" of the nearest names; empty when there are none.
std::string nearestText(std::string_view wanted, const std::vector<std::string> &names, std::size_t count = 3);

} // namespace planish
