// Inside layouts only: the steps of reading a native dump, in the order native.cpp takes them.
#pragma once

#include <string_view>
#include <vector>

#include "core/io/layouts/layout.h"

namespace planish {

/// What the steps share: the structure, its data, and the result that grows.
struct NativeReader {
    const FileStructure &structure;
    BlockSource &source;
    LayoutResult result;

    void note(std::string text) { result.info.notes.push_back(std::move(text)); }
    void refuse(const std::string &path, std::string reason) { result.info.refused.push_back({path, std::move(reason)}); }
};

struct NamedDataset {
    std::string name; ///< below the group
    const DatasetInfo *dataset = nullptr;
};

/// Datasets below `prefix` ("/edges/"), those reached by a second link included when the first path lies elsewhere.
std::vector<NamedDataset> datasetsBelow(const FileStructure &structure, std::string_view prefix);

/// A small integer dataset as numbers; nothing (and a note) when it cannot be read.
std::vector<std::int64_t> readIntegers(NativeReader &reader, const DatasetInfo &dataset);
/// A small numeric dataset as doubles.
Expected<std::vector<double>> readNumbers(BlockSource &source, const DatasetInfo &dataset);

void readNativeModel(NativeReader &reader);
void readNativeTensors(NativeReader &reader);
void readNativeEdges(NativeReader &reader);
/// After the edges: completes the token table to the rows that refer to it.
void readNativeTokens(NativeReader &reader);
/// Rows that were never written, numbers that are bf16 in disguise.
void inspectNativeRows(NativeReader &reader);
/// Consumers that are absent or too wide, two edges of one place.
void checkNativeEdges(NativeReader &reader);

} // namespace planish
