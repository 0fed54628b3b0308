// An edge of the model graph: one activation with everything that reads it, what produced it, and which channels are tied.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/io/dump.h"
#include "core/io/ids.h"

namespace planish {

struct RowRangeOf {
    std::int64_t begin = 0, end = -1; ///< rows of the tensor; -1 = all
    bool operator==(const RowRangeOf &) const = default;
};

struct Consumer {
    TensorName tensor; ///< dump name "layers.2.q_proj"
    RowRangeOf rows;
    std::string role;    ///< q_proj, up_proj, router, …
    std::string bias;    ///< dump name or empty
    bool present = true; ///< weights found
};

struct NormProducer {
    TensorName name;
    std::string kind; ///< rmsnorm | layernorm
    int offset = 0;
    bool hasGain = true, hasBias = false;
};
struct LinearProducer {
    TensorName tensor;
    RowRangeOf rows; ///< v rows of a fused tensor
    bool hasBias = false;
    std::string between;      ///< identity | attention | relu | gelu | silu | silu(gate)*up …
    TensorName name;          ///< dump name of the part ("layers.0.v_proj") when `tensor` is the whole fused weight
    std::int64_t outputs = 0; ///< rows it emits, 0 = unknown
    bool interleaved = false; ///< its rows are not one range (bloom, falcon): nothing is folded into them
};
struct ElementwiseProducer {
    TensorName up, gate;
    RowRangeOf upRows;
    bool hasBias = false;
    std::string between; ///< "silu(gate)*up"
};
struct StreamProducer {
    StreamId stream;
};
struct UnknownProducer {
    std::string name; ///< "layers.4.output_layernorm", empty if not even named
};
using Producer = std::variant<UnknownProducer, NormProducer, LinearProducer, ElementwiseProducer, StreamProducer>;

/// A reader that is no consumer linear: shortcut of a post-norm block, router, …
struct OtherReader {
    std::string name;
    std::string kind; ///< residual | router | parallel_branch | shared_expert | gate | expert | linear
};

/// Sets of channels that share one factor. `set[k]` = index of the set of channel k; empty = free.
struct Ties {
    std::string key = "none"; ///< none | gqa | rope_pair
    std::vector<std::int32_t> set;
    std::size_t count = 0; ///< number of sets
};

struct Edge {
    EdgeId id;
    std::int64_t layer = -1;
    std::string site;
    std::size_t channels = 0;
    std::uint64_t rows = 0;
    Producer producer;
    std::vector<Consumer> consumers;
    std::vector<OtherReader> otherReaders;
    Ties ties;
    TensorName partner;                    ///< the other side of a score edge: k_proj of a query edge, q_proj of a key edge
    std::string streamRead, streamWritten; ///< stream ids or empty
    std::string basis = "original";
};

struct Stream {
    StreamId id;
    std::size_t width = 0;
    std::vector<TensorName> writers;
    std::vector<EdgeId> readers;
    std::vector<TensorName> norms;
    bool tied = false;
};

std::string nameOf(const Producer &producer); ///< dump name for messages
std::string kindOf(const Producer &producer); ///< norm kind, linear, elementwise, stream, unknown

} // namespace planish
