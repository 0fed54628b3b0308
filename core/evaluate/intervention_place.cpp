#include "core/evaluate/intervention_place.h"

#include <algorithm>
#include <numeric>

#include "core/io/nearest.h"
#include "core/transform/random_stream.h"

namespace planish {

namespace {

using Indices = std::vector<std::int64_t>;

bool holds(const Indices &sorted, std::int64_t value)
{
    return std::ranges::binary_search(sorted, value);
}

tl::unexpected<Error> noSuch(const EdgeData &data, const std::string &what, const std::string &expected)
{
    return usageError(data.parts().edge.id.value, what, expected);
}

Expected<void> checkChannel(const EdgeData &data, std::int64_t channel)
{
    const std::size_t channels = data.parts().edge.channels;
    if (channel >= 0 && static_cast<std::size_t>(channel) < channels)
        return {};
    return noSuch(data, "there is no channel " + std::to_string(channel), "channels below " + std::to_string(channels));
}

Expected<void> checkRow(const EdgeData &data, const PartRows &rows, std::int64_t row)
{
    if (std::ranges::find(rows.placed.fileRows, row) != rows.placed.fileRows.end())
        return {};
    if (row < 0 || static_cast<std::uint64_t>(row) >= data.parts().dumpEdge.rows)
        return noSuch(data, "there is no row " + std::to_string(row), "rows below " + std::to_string(data.parts().dumpEdge.rows));
    return noSuch(data,
                  "row " + std::to_string(row) + " is not among the rows measured of part " + std::string(nameOf(rows.part)),
                  "a row of that part, or --part all --rows all");
}

Expected<void> checkIndices(const EdgeData &data, const PartRows &rows, const Place &place)
{
    for (const std::int64_t index : place.indices) {
        if (place.kind == TargetKind::Positions) {
            if (std::ranges::find(rows.placed.positions, index) == rows.placed.positions.end())
                return noSuch(data,
                              "no row of part " + std::string(nameOf(rows.part)) + " stands at position " + std::to_string(index),
                              "a position of the rows measured");
            continue;
        }
        auto checked = place.kind == TargetKind::Channels ? checkChannel(data, index) : checkRow(data, rows, index);
        if (!checked)
            return checked;
    }
    return {};
}

/// The consumer a weight's name means, and the row in its matrix. A fused tensor by its bare name counts rows of the tensor.
Expected<Place> weightPlace(const EdgeData &data, const InterventionTarget &target)
{
    const EdgeParts &parts = data.parts();
    Place place{.kind = TargetKind::Weight, .indices = {}, .consumer = 0, .row = target.row, .channel = target.column};
    if (auto checked = checkChannel(data, target.column); !checked)
        return tl::make_unexpected(checked.error());
    std::int64_t outputs = -1;
    for (std::size_t i = 0; i < parts.consumers.size(); ++i) {
        const Consumer &consumer = parts.consumers[i].consumer;
        const auto rows = static_cast<std::int64_t>(parts.consumers[i].weight->rows());
        const bool byRange = parts.consumerNames[i] == target.name;
        if (!byRange && consumer.tensor.value != target.name)
            continue;
        const std::int64_t row = byRange ? target.row : target.row - consumer.rows.begin;
        if (row >= 0 && row < rows) {
            place.consumer = i;
            place.row = row;
            return place;
        }
        outputs = std::max(outputs, byRange ? rows : consumer.rows.begin + rows);
    }
    if (outputs >= 0)
        return noSuch(data, target.name + " has no row " + std::to_string(target.row), "rows below " + std::to_string(outputs));
    return noSuch(data, target.name + " does not read this edge", nearestText(target.name, parts.consumerNames));
}

/// `count` distinct numbers out of a pool, ascending. Moves the drawn ones to the front of the pool.
Indices draw(Indices &pool, std::size_t count, RandomStream &stream)
{
    for (std::size_t i = 0; i < count; ++i)
        std::swap(pool[i], pool[i + static_cast<std::size_t>(stream.below(pool.size() - i))]);
    Indices drawn(pool.begin(), pool.begin() + static_cast<std::ptrdiff_t>(count));
    std::ranges::sort(drawn);
    return drawn;
}

/// Everything of the target's kind that is not the target.
Indices poolOf(const EdgeData &data, const PartRows &rows, const Place &target)
{
    Indices all(data.parts().edge.channels);
    std::iota(all.begin(), all.end(), std::int64_t{0});
    if (target.kind == TargetKind::Tokens)
        all = rows.placed.fileRows;
    if (target.kind == TargetKind::Positions) {
        all.assign(rows.placed.positions.begin(), rows.placed.positions.end());
        std::ranges::sort(all);
        const auto repeated = std::ranges::unique(all);
        all.erase(repeated.begin(), repeated.end());
    }
    std::erase_if(all, [&](std::int64_t index) { return holds(target.indices, index); });
    return all;
}

/// One element of a [rows, columns] grid other than (row, column).
std::pair<std::size_t, std::size_t> otherElement(std::size_t rows, std::size_t columns, std::size_t row, std::size_t column,
                                                 RandomStream &stream)
{
    std::uint64_t index = stream.below(rows * columns - 1);
    if (index >= row * columns + column)
        ++index;
    return {static_cast<std::size_t>(index) / columns, static_cast<std::size_t>(index) % columns};
}

std::vector<Place> otherElements(const EdgeData &data, const PartRows &rows, const Place &target, std::size_t sets,
                                 RandomStream &stream)
{
    const bool ofX = target.kind == TargetKind::Value;
    const auto &fileRows = rows.placed.fileRows;
    const std::size_t channels = data.parts().edge.channels;
    const std::size_t height = ofX ? fileRows.size() : rows.product.consumers[target.consumer].weight->rows();
    const std::size_t row = ofX ? static_cast<std::size_t>(std::ranges::find(fileRows, target.row) - fileRows.begin())
                                : static_cast<std::size_t>(target.row);
    std::vector<Place> places;
    for (std::size_t i = 0; i < sets && height * channels > 1; ++i) {
        const auto [r, c] = otherElement(height, channels, row, static_cast<std::size_t>(target.channel), stream);
        Place place = target;
        place.row = ofX ? fileRows[r] : static_cast<std::int64_t>(r);
        place.channel = static_cast<std::int64_t>(c);
        places.push_back(std::move(place));
    }
    return places;
}

} // namespace

Expected<Place> placeOn(const EdgeData &data, const PartRows &rows, const InterventionTarget &target)
{
    if (target.kind == TargetKind::Weight)
        return weightPlace(data, target);
    Place place{.kind = target.kind, .indices = target.indices, .consumer = 0, .row = target.row, .channel = target.column};
    if (target.kind == TargetKind::Finding)
        return noSuch(data, "finding " + target.name + " has not been looked up", "the place the finding names");
    if (target.kind == TargetKind::Value) {
        if (auto checked = checkChannel(data, target.column); !checked)
            return tl::make_unexpected(checked.error());
        if (auto checked = checkRow(data, rows, target.row); !checked)
            return tl::make_unexpected(checked.error());
        return place;
    }
    std::ranges::sort(place.indices);
    const auto repeated = std::ranges::unique(place.indices);
    place.indices.erase(repeated.begin(), repeated.end());
    if (auto checked = checkIndices(data, rows, place); !checked)
        return tl::make_unexpected(checked.error());
    return place;
}

Elements elementsOf(const Place &place, const PlacedRows &rows, std::size_t channels)
{
    Elements elements;
    if (place.kind == TargetKind::Weight)
        return elements;
    for (std::size_t m = 0; m < rows.size(); ++m) {
        const bool hit = place.kind == TargetKind::Channels ||
                         (place.kind == TargetKind::Tokens && holds(place.indices, rows.fileRows[m])) ||
                         (place.kind == TargetKind::Positions && holds(place.indices, rows.positions[m])) ||
                         (place.kind == TargetKind::Value && place.row == rows.fileRows[m]);
        if (hit)
            elements.rows.push_back(m);
    }
    if (place.kind == TargetKind::Channels) {
        elements.columns.assign(place.indices.begin(), place.indices.end());
    } else if (place.kind == TargetKind::Value) {
        elements.columns = {static_cast<std::size_t>(place.channel)};
    } else {
        elements.columns.resize(channels);
        std::iota(elements.columns.begin(), elements.columns.end(), std::size_t{0});
    }
    return elements;
}

ExceptionMask activationMask(const Place &place, const PlacedRows &rows, std::size_t channels)
{
    ExceptionMask mask;
    const Elements elements = elementsOf(place, rows, channels);
    if (elements.empty())
        return mask;
    std::vector<std::uint8_t> flags(channels, 0);
    for (const std::size_t k : elements.columns)
        flags[k] = 1;
    if (place.kind == TargetKind::Channels) {
        mask.columns = std::move(flags);
        return mask;
    }
    mask.rowUnit.assign(rows.size(), -1);
    for (const std::size_t m : elements.rows)
        mask.rowUnit[m] = 0;
    mask.unitColumns = {std::move(flags)};
    return mask;
}

ExceptionMask weightMask(const Place &place, std::size_t consumer, const MatrixD &weight)
{
    ExceptionMask mask;
    std::vector<std::uint8_t> flags(weight.cols(), 0);
    if (place.kind == TargetKind::Channels) {
        for (const std::int64_t k : place.indices)
            flags[static_cast<std::size_t>(k)] = 1;
        mask.columns = std::move(flags);
    } else if (place.kind == TargetKind::Weight && place.consumer == consumer) {
        flags[static_cast<std::size_t>(place.channel)] = 1;
        mask.rowUnit.assign(weight.rows(), -1);
        mask.rowUnit[static_cast<std::size_t>(place.row)] = 0;
        mask.unitColumns = {std::move(flags)};
    }
    return mask;
}

bool isEmpty(const ExceptionMask &mask)
{
    return mask.columns.empty() && mask.rowUnit.empty();
}

bool isFlagged(const ExceptionMask &mask, std::size_t row, std::size_t column)
{
    if (!mask.rowUnit.empty() && mask.rowUnit[row] >= 0)
        return mask.unitColumns[static_cast<std::size_t>(mask.rowUnit[row])][column] != 0;
    return !mask.columns.empty() && mask.columns[column] != 0;
}

std::vector<Place> controlPlaces(const EdgeData &data, const PartRows &rows, const Place &target, std::size_t sets,
                                 std::uint64_t seed)
{
    RandomStream stream(seed, "control", data.parts().edge.id.value);
    if (target.kind == TargetKind::Value || target.kind == TargetKind::Weight)
        return otherElements(data, rows, target, sets, stream);
    Indices pool = poolOf(data, rows, target);
    std::vector<Place> places;
    for (std::size_t i = 0; i < sets && pool.size() >= target.indices.size(); ++i) {
        Place place = target;
        place.indices = draw(pool, target.indices.size(), stream);
        places.push_back(std::move(place));
    }
    return places;
}

} // namespace planish
