// Rows of a matrix that lies in a file as something else: transposed, stacked over layers, split over heads or requests, packed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/io/layouts/layout.h"

namespace planish {

/// Rows [begin, end) as [rows, channels] of `data.dataset.type`, little-endian where pieces are put together, else as stored.
/// Memory: the block itself and one box of the same size.
Expected<void> readMatrixRows(BlockSource &source, const EdgeData &data, std::uint64_t begin, std::uint64_t end,
                              std::span<std::byte> out);

/// The matrix that pieces make: one type (F64 when packed), rows in the order of the pieces. Errors: widths or types that differ.
Expected<EdgeData> joinPieces(std::vector<DataPiece> pieces, std::uint64_t channels);

} // namespace planish
