// The greedy block rotation of DuQuant: which step matrix, which extreme element, which prefix is kept. rotation.md 4.1 and 4.2.
#pragma once

#include <cstdint>
#include <vector>

#include "core/transform/random_stream.h"
#include "kernels/matrix_view.h"

namespace planish {

enum class DuquantVariant { Planish, Paper, Official };
enum class DuquantQ { Random, Identity };
enum class DuquantQSide { Right, Left };

struct GreedyOptions {
    DuquantVariant variant = DuquantVariant::Planish;
    DuquantQ q = DuquantQ::Random;
    DuquantQSide side = DuquantQSide::Right;
    std::size_t block = 64;
    std::int64_t steps = 256;
};

struct GreedyResult {
    std::vector<MatrixD> rotations;        ///< one shared by all blocks, or one per block (paper)
    std::vector<std::int32_t> assignment;  ///< block of channels -> rotation
    std::vector<std::int64_t> bestStep;    ///< length of the kept prefix, per rotation
    std::vector<double> peaks;             ///< peak after 0, 1, … steps of the first rotation
};

/// Rt of 4.1, [B, B]: last row uniform, then rows and columns 0 and B-1 swapped, so that the first row is uniform.
MatrixD duquantBase(std::size_t block);

/// Searches on x [tokens, K], K a multiple of the block. Deterministic; `stream` gives Q where it is random.
GreedyResult greedyRotation(ConstViewD x, const GreedyOptions &options, RandomStream &stream);

} // namespace planish
