// Which channels, consumers and layers an error under the specs comes from. evaluation.md 4.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/evaluate/part_rows.h"

namespace planish {

/// `quantization` is quantization_k; `restore` the share of ||E||^2 that goes when the channel's error goes (may be negative).
struct ChannelRestore {
    std::int64_t channel = 0;
    double quantization = 0, restore = 0;
};
struct ConsumerRestore {
    std::string name;
    double restore = 0, relativeFrobenius = 0;
};

struct Sensitivity {
    SpecPair specs;
    std::int64_t rows = 0;
    std::vector<double> contribution;    ///< [K] energy x weight energy, share of the sum
    std::vector<double> quantization;    ///< [K] quantization_k
    double damage = 0;                   ///< ||E||_F
    double reference = 0;                ///< ||Y||_F
    std::optional<double> diagonalRatio; ///< sum of quantization_k over ||E||_F^2; none without an error
    std::vector<ChannelRestore> restore; ///< the 32 channels of largest quantization_k
    std::vector<ConsumerRestore> consumers;
    OutputBlock output;                   ///< of identity under the specs
    std::map<std::string, double> joined; ///< external columns
};

/// `channelEnergy`: sum of x^2 over all analyzed rows [K]. Errors: what the kernels refuse, cancelled.
Expected<Sensitivity> sensitivityOf(const EdgeData &data, const std::vector<double> &channelEnergy, Part part,
                                    const SpecPair &specs, std::stop_token stop);

struct EdgeDamage {
    EdgeId edge;
    double damage = 0, reference = 0;
    std::map<std::string, double> joined;
    double relative() const;
};
/// Edges of one layer, largest damage first; the layer's own damage is the root of their squares.
struct LayerDamage {
    std::int64_t layer = -1;
    double damage = 0, relative = 0;
    std::vector<EdgeDamage> edges;
};
/// Largest damage first; equal ones in layer order.
std::vector<LayerDamage> damageByLayer(const std::vector<std::pair<std::int64_t, EdgeDamage>> &edges);

/// External scores: lines `edge,name,value`, a header of exactly these words allowed.
using Scores = std::map<std::string, std::map<std::string, double>>;
Expected<Scores> readScores(const std::string &file);
Expected<Scores> parseScores(const std::string &text, const std::string &file);

} // namespace planish
