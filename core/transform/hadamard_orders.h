// Which Hadamard a width gets: Sylvester, Paley I/II, Williamson, products, block fallback. rotation.md 2.3 and 2.4.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/io/error.h"
#include "core/transform/operator.h"

namespace planish {

enum class HadamardTable { Planish, Quarot, CompressedTensors, File };

/// A +-1 matrix of order m and how it was built; refused for orders no construction reaches.
struct BaseMatrix {
    std::size_t order = 1;
    std::string construction;
    Matrix<std::int8_t> table; ///< empty for order 1
};
Expected<BaseMatrix> buildBase(std::size_t order);

/// Full-width Hadamard operator of K channels by the rule of 2.3 (no signs), block fallback included; refusal lists possible blocks.
Expected<Operator> hadamardFor(std::size_t channels, HadamardTable table = HadamardTable::Planish, const std::string &tableFile = {});
/// Block-diagonal Hadamard of `block` (divides K, buildable).
Expected<Operator> blockHadamardFor(std::size_t channels, std::size_t block);
/// Largest power of two <= 128 that divides K.
std::size_t autoBlock(std::size_t channels);
/// Blocks that divide K and can be built, ascending, at least 2.
std::vector<std::size_t> possibleBlocks(std::size_t channels);
/// Start-up self test: entries +-1 and H H^T = m I for every order the table can build up to 300.
Expected<void> selfTestHadamard();

} // namespace planish
