// A layout recognises a file structure with a confidence and a reason, and turns it into the facts of a dump plus where its data lie.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/io/block_source.h"
#include "core/io/dump.h"
#include "core/io/error.h"
#include "core/io/file_structure.h"

namespace planish {

struct LayoutMatch {
    double confidence = 0.0; ///< 0: not this layout; 1: the file says so itself
    std::string reason;      ///< why it was recognised
};

/// Where the numbers of an edge lie: rows are axis 0, channels the product of the others.
struct EdgeData {
    DatasetInfo dataset; ///< with the type its numbers have
};

struct LayoutResult {
    DumpInfo info;
    std::map<std::string, EdgeData> edges;      ///< by edge id
    std::map<std::string, DatasetInfo> tensors; ///< by TensorEntry::path
};

/// One row of the table. `read` may read small datasets (token table, norms), never whole edges.
struct Layout {
    std::string_view key;    ///< as `info` prints it
    std::string_view wanted; ///< what it looks for, for the message when nothing fits
    LayoutMatch (*recognise)(const FileStructure &structure);
    Expected<LayoutResult> (*read)(const FileStructure &structure, BlockSource &source);
};

} // namespace planish
