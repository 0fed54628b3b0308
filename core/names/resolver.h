// Which stored tensor a dump name means: dump, checkpoint by family pattern, checkpoint by exact name. names.md "Resolving
// weights".
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/checkpoint.h"
#include "core/io/dump.h"
#include "core/names/family.h"

namespace planish {

enum class Prefer { None, Weights, Dump };

/// Rows of a stored tensor that carry this name; end -1 = all.
struct RowRangeOfTensor {
    std::int64_t begin = 0, end = -1;
    std::int64_t block = 0,
                 stride = 0; ///< rows interleaved per head: `block` rows from begin, the next part `stride` further; 0 = none
    bool whole() const { return begin == 0 && end < 0; }
};

/// Where one dump name lives. Exactly one of dump entry and checkpoint tensor is used.
struct ResolvedTensor {
    TensorName name;
    std::optional<TensorEntry> inDump;
    std::string checkpointName; ///< as stored, empty if not in the checkpoint
    RowRangeOfTensor rows;      ///< of a fused tensor
    bool transposed = false;    ///< stored [in, out]
    bool tied = false;          ///< head that is the embedding table
    StoredType storedType = StoredType::F16;
    std::vector<std::uint64_t> shape; ///< logical [outputs, channels] after orientation and row range
};

/// All tensors by dump name, and reading them.
class ResolvedWeights {
public:
    /// `checkpoint` may be null (dump only). Different values in both: error unless `prefer` says which.
    static Expected<ResolvedWeights> resolve(std::shared_ptr<const Dump> dump, std::shared_ptr<const Checkpoint> checkpoint,
                                             std::shared_ptr<const Family> family, Prefer prefer);

    const ResolvedTensor *find(const TensorName &name) const;
    const std::map<std::string, ResolvedTensor> &tensors() const { return m_tensors; }
    const std::vector<std::string> &unmatched() const { return m_unmatched; } ///< checkpoint names no pattern took
    const std::vector<std::string> &notes() const { return m_notes; }         ///< tensors left out, and why
    const ModelInfo &model() const { return m_model; }                        ///< /model completed by config.json
    /// Dump name of the bias of a linear or norm ("layers.0.fc1.bias"), empty when there is none.
    std::string biasOf(const std::string &name) const;
    /// Matrix [outputs, channels]; a bias or gain gives [1, n].
    Expected<MatrixD> read(const TensorName &name) const;
    /// Norm gain and bias of a dump name, from dump or checkpoint; nullopt when neither has it.
    Expected<std::optional<NormParameters>> norm(const TensorName &name) const;
    const std::shared_ptr<const Checkpoint> &checkpoint() const { return m_checkpoint; }
    const std::shared_ptr<const Dump> &dump() const { return m_dump; }
    const std::shared_ptr<const Family> &family() const { return m_family; }

private:
    std::shared_ptr<const Dump> m_dump;
    std::shared_ptr<const Checkpoint> m_checkpoint;
    std::shared_ptr<const Family> m_family;
    std::map<std::string, ResolvedTensor> m_tensors;
    std::vector<std::string> m_unmatched, m_notes;
    ModelInfo m_model;
};

} // namespace planish
