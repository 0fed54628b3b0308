// What each export target and engine can carry or run, read from resources/targets/*.yaml. Facts: exports.md C.0. Data, no rules
// of ours.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/graph/placement.h"
#include "core/io/error.h"

namespace planish {

enum class Fidelity { Exact, Recomputed, FormatOnly, Unsupported };
std::string_view nameOf(Fidelity fidelity); ///< "exact", "recomputed", "format_only", "unsupported"

struct TargetCapabilities {
    std::string key;
    std::string note;               ///< caveat shown beside the target
    std::vector<std::string> files; ///< written by export
    std::map<std::string, Fidelity>
        carries;           ///< scale, shift, permutation, hadamard, dense, kronecker, block_dense, clip, low_rank, format, stream
    bool lintOnly = false; ///< an engine: `--target`, never `--to`
    bool onlineOperators = true; ///< can run operators on activations
    bool createsBias = true;     ///< loads a bias the architecture does not have
    int maxTensorParallel = 0;   ///< of online operators, 0 = any

    Fidelity of(const std::string &part) const; ///< Unsupported when not listed
};

/// All targets, in the order of their `order` key. Errors name file and key.
Expected<std::vector<TargetCapabilities>> loadTargets(const std::string &resourceDir);
const TargetCapabilities *findTarget(const std::vector<TargetCapabilities> &targets, const std::string &key);

/// What a placed rewrite needs that the target lacks: online, bias_has_no_place, crosses_shards. Errors.
std::vector<Refusal> targetFaults(const Edge &edge, const Placement &placement, int tensorParallel,
                                  const TargetCapabilities &target);

} // namespace planish
