#include "core/io/chunk_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace planish {

namespace {

/// Calls `run(offset in the chunk, offset in the block, elements)` for every contiguous run both share.
template <class Run> void forEachRun(const ChunkPlace &place, const Run &run)
{
    const std::vector<std::uint64_t> &start = place.box.start;
    const std::vector<std::uint64_t> &count = place.box.count;
    const std::size_t rank = start.size();
    std::vector<std::uint64_t> low(rank);
    std::vector<std::uint64_t> high(rank);
    for (std::size_t axis = 0; axis < rank; ++axis) {
        low[axis] = std::max(place.origin[axis], start[axis]);
        high[axis] = std::min(place.origin[axis] + place.chunk[axis], start[axis] + count[axis]);
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
            inBlock = inBlock * count[axis] + (at[axis] - start[axis]);
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

Expected<void> forEachStoredRun(const Box &box, const std::vector<std::uint64_t> &shape, std::size_t elementBytes,
                                const std::function<Expected<void>(std::uint64_t, std::size_t, std::size_t)> &run)
{
    // Trailing axes that are read whole belong to one run; `inner` is the axis whose range is one run.
    std::size_t inner = shape.size() - 1;
    std::uint64_t below = elementBytes;
    while (inner > 0 && box.count[inner] == shape[inner])
        below *= shape[inner--];
    const std::uint64_t bytes = box.count[inner] * below;
    std::vector<std::uint64_t> at = box.start;
    for (std::size_t to = 0;; to += static_cast<std::size_t>(bytes)) {
        std::uint64_t from = 0;
        for (std::size_t axis = 0; axis <= inner; ++axis)
            from = from * shape[axis] + at[axis];
        if (Expected<void> done = run(from * below, to, static_cast<std::size_t>(bytes)); !done)
            return done;
        std::size_t axis = inner;
        while (axis > 0 && ++at[axis - 1] >= box.start[axis - 1] + box.count[axis - 1]) {
            at[axis - 1] = box.start[axis - 1];
            --axis;
        }
        if (axis == 0)
            return {};
    }
}

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

std::optional<std::size_t> directPlace(const ChunkPlace &place)
{
    std::uint64_t at = 0;
    // Every axis behind the first of more than one element has to be as wide in the block as in the chunk.
    bool wide = false;
    for (std::size_t axis = 0; axis < place.origin.size(); ++axis) {
        const std::uint64_t start = place.box.start[axis];
        const std::uint64_t count = place.box.count[axis];
        const bool inside = place.origin[axis] >= start && place.origin[axis] + place.chunk[axis] <= start + count;
        if (!inside || (wide && place.chunk[axis] != count))
            return std::nullopt;
        wide = wide || place.chunk[axis] > 1;
        at = at * count + (place.origin[axis] - start);
    }
    return static_cast<std::size_t>(at * place.elementBytes);
}

ChunkOrigins::ChunkOrigins(const Box &box, const std::vector<std::uint64_t> &chunk) : m_chunk(chunk)
{
    for (std::size_t axis = 0; axis < chunk.size(); ++axis) {
        m_first.push_back(box.start[axis] / chunk[axis] * chunk[axis]);
        m_end.push_back(box.start[axis] + box.count[axis]);
        m_done = m_done || box.count[axis] == 0;
    }
    m_origin = m_first;
}

std::optional<std::vector<std::uint64_t>> ChunkOrigins::next()
{
    if (m_done)
        return std::nullopt;
    std::vector<std::uint64_t> origin = m_origin;
    std::size_t axis = m_origin.size();
    while (axis > 1) {
        --axis;
        m_origin[axis] += m_chunk[axis];
        if (m_origin[axis] < m_end[axis])
            return origin;
        m_origin[axis] = m_first[axis];
    }
    m_origin[0] += m_chunk[0];
    m_done = m_origin[0] >= m_end[0];
    return origin;
}

} // namespace planish
