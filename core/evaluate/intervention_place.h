// Where an intervention acts: channels, rows, positions, one value of X or one weight, checked against an edge, and random
// places of the same kind and size as a control. evaluation.md 5.
#pragma once

#include "core/evaluate/intervention.h"
#include "core/evaluate/part_rows.h"

namespace planish {

/// A target found on an edge. One weight: `consumer`, `row` (of its matrix) and `channel`; one value: `row` (of the file) and
/// `channel`; else `indices`, ascending.
struct Place {
    TargetKind kind = TargetKind::Channels;
    std::vector<std::int64_t> indices;
    std::size_t consumer = 0;
    std::int64_t row = -1, channel = -1;
};

/// Usage errors: a channel, row, position or weight that the edge (or the measured part) does not have.
Expected<Place> placeOn(const EdgeData &data, const PartRows &rows, const InterventionTarget &target);

/// Elements of X at a place: every pair of these rows (indices into the set) and columns; none for a weight.
struct Elements {
    std::vector<std::size_t> rows, columns;
    bool empty() const { return rows.empty() || columns.empty(); }
};
Elements elementsOf(const Place &place, const PlacedRows &rows, std::size_t channels);

/// Flags of the elements that a place takes out of a quantizer. Channels mean columns of X and of every W.
ExceptionMask activationMask(const Place &place, const PlacedRows &rows, std::size_t channels);
ExceptionMask weightMask(const Place &place, std::size_t consumer, const MatrixD &weight);
bool isEmpty(const ExceptionMask &mask);
/// Whether the element is flagged.
bool isFlagged(const ExceptionMask &mask, std::size_t row, std::size_t column);

/// `sets` random places of the same kind and size; the target's own elements are never drawn. Stream `control` of the edge.
/// Fewer (none) when what is left is smaller than the target.
std::vector<Place> controlPlaces(const EdgeData &data, const PartRows &rows, const Place &target, std::size_t sets,
                                 std::uint64_t seed);

} // namespace planish
