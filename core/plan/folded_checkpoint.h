// Stored tensors of a checkpoint after a plan: new bytes of the changed ones, biases that come into being, everything else untouched.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/io/safetensors.h"
#include "core/plan/fold_map.h"

namespace planish {

/// A tensor the output holds. `source` is the stored tensor it comes from, null for a created bias.
struct OutputTensor {
    TensorSpec slot;
    std::string file;                     ///< shard of the input it goes with
    const StoredTensor *source = nullptr;
    std::vector<std::string> dumpNames;   ///< changed dump names that live on it; empty = copied
    bool counted = false;                 ///< part of the basis (rewritten or created by a shift)
    std::uint64_t elements() const;
    std::uint64_t bytes() const;
};

class FoldedCheckpoint {
public:
    /// `map` must outlive it. Error: a bias that has no place in this family (bias_has_no_place).
    static Expected<FoldedCheckpoint> build(const FoldMap &map, StoreAs store);

    const std::vector<OutputTensor> &tensors() const { return m_tensors; } ///< order of the input files, created ones behind their weight
    /// Bytes as they will be stored. Error: overflow naming the tensor.
    Expected<std::vector<std::byte>> bytesOf(const OutputTensor &tensor) const;
    /// Groups of biases transformers loads only together: "attention_bias", "mlp_bias".
    const std::vector<std::string> &configFlags() const { return m_flags; }

private:
    Expected<void> addCreated();
    Expected<void> fill(const OutputTensor &tensor, const std::string &name, std::vector<double> &values, std::vector<std::uint8_t> &touched) const;
    Expected<MatrixD> valuesOf(const std::string &name) const;

    const FoldMap *m_map = nullptr;
    StoreAs m_store = StoreAs::Stored;
    std::vector<OutputTensor> m_tensors;
    std::vector<std::string> m_flags;
    mutable std::string m_cachedName;
    mutable std::shared_ptr<const FoldMap::Linear> m_cached; ///< weight and bias of one linear are often asked for in turn
};

} // namespace planish
