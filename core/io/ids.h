// Strong names: an edge, a stream and a tensor are never mixed up.
#pragma once

#include <compare>
#include <string>

namespace planish {

struct EdgeId {
    std::string value; ///< "layers.2.mlp_down"
    auto operator<=>(const EdgeId &) const = default;
};
struct StreamId {
    std::string value; ///< "stream:residual"
    auto operator<=>(const StreamId &) const = default;
};
struct TensorName {
    std::string value; ///< dump name: "layers.2.q_proj"
    auto operator<=>(const TensorName &) const = default;
};

} // namespace planish
