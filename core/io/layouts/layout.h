// A layout recognises a file structure with a confidence and a reason, and turns it into the facts of a dump plus where its data
// lie.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/block_source.h"
#include "core/io/dump.h"
#include "core/io/error.h"
#include "core/io/file_structure.h"

namespace planish {

struct LayoutMatch {
    double confidence = 0.0; ///< 0: not this layout; 1: the file says so itself
    std::string reason;      ///< why it was recognised
};

/// What one axis of a stored dataset is to a matrix [rows, channels].
struct AxisUse {
    enum class Role { Row, Channel, Fixed };
    Role role = Role::Row;
    std::uint64_t index = 0; ///< of a fixed axis
    bool operator==(const AxisUse &) const = default;
};

/// A run of rows out of one dataset: row axes in stored order give the rows, channel axes in stored order the channels.
struct DataPiece {
    DatasetInfo dataset; ///< with the type its numbers have
    std::vector<AxisUse> axes;
    std::uint64_t firstColumn = 0; ///< columns before it are not channels
    bool packed = false;           ///< value = stored * scale + offset
    double scale = 1.0, offset = 0.0;
    std::optional<double> missing; ///< this stored value means "no value" and reads as NaN
    std::uint64_t rows() const;
    std::uint64_t columns() const; ///< of all channel axes
};

/// Where the numbers of an edge lie: rows are axis 0, channels the product of the others. With pieces the dataset describes the
/// matrix they make together (little-endian, `shape` = [rows, channels]) and is not in the file itself.
struct EdgeData {
    DatasetInfo dataset; ///< with the type its numbers have
    std::vector<DataPiece> pieces;
};

struct LayoutResult {
    DumpInfo info;
    std::map<std::string, EdgeData> edges;      ///< by edge id
    std::map<std::string, DatasetInfo> tensors; ///< by TensorEntry::path
    std::map<std::string, EdgeData> arranged;   ///< tensors that must be put together as [outputs, channels]; same keys
};

/// One row of the table. `read` may read small datasets (token table, norms), never whole edges.
struct Layout {
    std::string_view key;    ///< as `info` prints it
    std::string_view wanted; ///< what it looks for, for the message when nothing fits
    LayoutMatch (*recognise)(const FileStructure &structure);
    Expected<LayoutResult> (*read)(const FileStructure &structure, BlockSource &source);
};

} // namespace planish
