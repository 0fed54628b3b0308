// Names around one edge: which site of the family it is, and the dump names its patterns stand for there. Pure.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/graph/edge.h"
#include "core/names/family.h"
#include "core/names/name_pattern.h"

namespace planish {

/// "decoder.layers.3.experts.1.mlp_down" = prefix "decoder.", layer 3, expert 1; `key` is the family's site
/// "experts.{e}.mlp_down".
struct EdgePlace {
    std::string prefix, key;
    PatternNumbers numbers;
};
EdgePlace placeOfEdge(const std::string &id, std::int64_t layer, const std::string &site, const Family *family);

/// What is in the files, as far as names go; `experts` and `layers` are used where a pattern stands for all of them.
struct KnownNames {
    std::function<bool(const std::string &)> has; ///< a dump name with values; empty = nothing known
    std::int64_t experts = 0, layers = 0;
};

/// The dump names one entry of consumers or other_readers stands for at this edge: "q_proj", "experts.{e}.up_proj" (all experts
/// where the edge has no number), "experts.*.up_proj", "decoder.layers.*.cross.k", "head".
std::vector<std::string> namesOfRole(const std::string &role, const EdgePlace &place, const Family &family,
                                     const KnownNames &known);

/// Own part of a dump name behind layer and expert: "layers.2.experts.0.up_proj" -> "up_proj".
std::string roleOf(const std::string &dumpName);

/// One linear or shortcut that reads an edge according to the family.
struct FamilyReader {
    std::string name, kind; ///< kind: linear | residual | router | parallel_branch | shared_expert | gate | expert
};
/// Every reader of the edge: consumers first, then other readers. Empty when the family has no such site.
std::vector<FamilyReader> readersOfEdge(const Family &family, const FamilyEdge &edge, const EdgePlace &place,
                                        const KnownNames &known);

/// Whether a reader is among the covered names, or all parts of a fused reader are.
bool coversReader(const Family &family, const EdgePlace &place, const std::string &reader,
                  const std::vector<std::string> &covered);

/// Readers of an edge the family knows and `covered` (dump names, row ranges allowed) leaves out. For a plan read without its
/// files.
std::vector<OtherReader> uncoveredReaders(const Family &family, const ModelInfo &model, const std::string &edgeId,
                                          std::int64_t layer, const std::string &site, const std::vector<std::string> &covered);

} // namespace planish
