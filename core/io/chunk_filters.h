// Inside core/io only: one function per filter, undoing it from a span into a span. Each gives the number of bytes written and never
// writes beyond `to`; damaged data are an error with an empty subject.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/io/error.h"

struct libdeflate_decompressor;

namespace planish {

using Bytes = std::span<const std::byte>;
using Room = std::span<std::byte>;

/// Error of a chunk; the caller adds which one.
tl::unexpected<Error> chunkError(std::string what, std::string expected);
/// "the gzip chunk expands to more than its declared 1024 bytes"
tl::unexpected<Error> tooLong(const char *filter, std::size_t declared);

Expected<std::size_t> undoDeflate(libdeflate_decompressor &deflate, Bytes from, Room to);
Expected<std::size_t> undoLzf(Bytes from, Room to);
Expected<std::size_t> undoLz4(Bytes from, Room to);
Expected<std::size_t> undoZstd(Bytes from, Room to);
Expected<std::size_t> undoBlosc(Bytes from, Room to);
/// `values`: the filter's client data; [2] element size, [3] elements of a block, [4] compressor.
Expected<std::size_t> undoBitshuffle(Bytes from, std::span<const unsigned> values, Room to);
/// `elementBytes` of the shuffled elements; from and to must not overlap and have the same size.
void undoShuffle(Bytes from, std::size_t elementBytes, Room to);
/// The bytes without their checksum.
Expected<Bytes> undoFletcher32(Bytes from);

/// n elements, a multiple of 8, stored as bit planes: plane b * 8 + i holds bit i of byte b, element j in bit j % 8 of byte j / 8.
void joinBitPlanes(const std::byte *planes, std::size_t n, std::size_t elementBytes, std::byte *out);

} // namespace planish
