#include "core/io/chunk_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace planish {

namespace {

/// Calls `run(offset in the chunk, offset in the block, elements)` for every contiguous run both share.
template <class Run> void forEachRun(const ChunkPlace &place, const Run &run)
{
    const std::size_t rank = place.shape.size();
    std::vector<std::uint64_t> low(rank);
    std::vector<std::uint64_t> high(rank);
    for (std::size_t axis = 0; axis < rank; ++axis) {
        low[axis] = axis == 0 ? std::max(place.origin[0], place.begin) : place.origin[axis];
        high[axis] = std::min(place.origin[axis] + place.chunk[axis], axis == 0 ? place.end : place.shape[axis]);
        if (low[axis] >= high[axis])
            return;
    }
    std::vector<std::uint64_t> at = low;
    const std::size_t last = rank - 1;
    while (true) {
        std::uint64_t inChunk = 0;
        std::uint64_t inBlock = 0;
        for (std::size_t axis = 0; axis < rank; ++axis) {
            inChunk = inChunk * place.chunk[axis] + (at[axis] - place.origin[axis]);
            inBlock =
                inBlock * (axis == 0 ? place.end - place.begin : place.shape[axis]) + (at[axis] - (axis == 0 ? place.begin : 0));
        }
        run(static_cast<std::size_t>(inChunk), static_cast<std::size_t>(inBlock),
            static_cast<std::size_t>(high[last] - low[last]));
        std::size_t axis = last;
        while (axis > 0 && ++at[axis - 1] >= high[axis - 1]) {
            at[axis - 1] = low[axis - 1];
            --axis;
        }
        if (axis == 0)
            return;
    }
}

} // namespace

bool reachesBeyond(const std::vector<std::uint64_t> &origin, const std::vector<std::uint64_t> &chunk,
                   const std::vector<std::uint64_t> &shape)
{
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
        if (origin[axis] + chunk[axis] > shape[axis])
            return true;
    return false;
}

void copyChunk(const ChunkPlace &place, std::span<const std::byte> values, std::span<std::byte> out)
{
    const std::size_t size = place.elementBytes;
    forEachRun(place, [&](std::size_t from, std::size_t to, std::size_t count) {
        std::memcpy(out.data() + to * size, values.data() + from * size, count * size);
    });
}

void fillChunk(const ChunkPlace &place, std::span<const std::byte> element, std::span<std::byte> out)
{
    const std::size_t size = place.elementBytes;
    forEachRun(place, [&](std::size_t, std::size_t to, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
            std::memcpy(out.data() + (to + i) * size, element.data(), size);
    });
}

ChunkOrigins::ChunkOrigins(const std::vector<std::uint64_t> &shape, const std::vector<std::uint64_t> &chunk, std::uint64_t begin,
                           std::uint64_t end)
    : m_shape(shape), m_chunk(chunk), m_origin(shape.size(), 0), m_end(end)
{
    m_origin[0] = begin / chunk[0] * chunk[0];
    m_done = begin >= end || std::find(shape.begin(), shape.end(), std::uint64_t{0}) != shape.end();
}

std::optional<std::vector<std::uint64_t>> ChunkOrigins::next()
{
    if (m_done)
        return std::nullopt;
    std::vector<std::uint64_t> origin = m_origin;
    std::size_t axis = m_shape.size();
    while (axis > 1) {
        --axis;
        m_origin[axis] += m_chunk[axis];
        if (m_origin[axis] < m_shape[axis])
            return origin;
        m_origin[axis] = 0;
    }
    m_origin[0] += m_chunk[0];
    m_done = m_origin[0] >= m_end;
    return origin;
}

} // namespace planish
