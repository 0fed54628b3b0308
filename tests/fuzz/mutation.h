// Damaged copies of a good file, the same for the same seed on every machine.
#pragma once

#include <cstddef>
#include <string>

namespace planish {

/// `good` with one to eight changes: bits, bytes, extreme numbers, cut ends, lines and blocks taken out, doubled or moved.
std::string mutant(const std::string &good, std::size_t seed, const std::string &name);

} // namespace planish
