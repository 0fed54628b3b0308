// A family maps dump names to checkpoint names and states the edges, norms, ropes and streams of an architecture. names.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/io/dump.h"
#include "core/io/error.h"

namespace planish {

/// One way a dump name may appear in a checkpoint: a pattern, optionally a row range of a fused tensor (expressions of q, kv, …).
struct NamePattern {
    std::string pattern;          ///< "layers.{l}.self_attn.q_proj.weight"
    std::string rowBegin, rowEnd; ///< expressions, empty = all rows
    std::string tiedTo;           ///< "embed": the head is that table
    bool inOut = false;           ///< Conv1D [in, out]
    std::string block,
        stride; ///< rows interleaved per head: `block` rows, then the next part `stride` rows further; empty = none
};

struct FamilyEdge {
    std::string site;
    std::string producer;                  ///< "layers.{l}.input_layernorm"
    std::vector<std::string> consumers;    ///< roles
    std::vector<std::string> otherReaders; ///< names or kinds ("residual")
    std::string ties;                      ///< gqa | rope_pair | empty
    std::string between;                   ///< identity | relu | gelu | silu(gate)*up | attention
    std::string gate;                      ///< role of the gate linear, if any
    bool shortcut() const;                 ///< other_readers names the residual shortcut
};

struct FamilyStream {
    std::string name; ///< residual
    std::vector<std::string> writers, readers;
    std::string finalNorm;
    bool postNormGainOnWriter = false;
};

/// Edges of one build of an architecture: opt-350m (post_norm), falcon-40b (has layers.{l}.ln_mlp), bloom's shortcut.
struct FamilyVariant {
    std::string when; ///< post_norm | has:DUMP PATTERN
    std::map<std::string, FamilyEdge> edges;
};

struct Family {
    std::string key;
    std::vector<std::string> architectures, anyOf, prefixes, aliases;
    std::map<std::string, std::vector<NamePattern>> names; ///< dump name pattern -> checkpoint patterns
    std::string normKind;
    int normOffset = 0;
    bool normHasScale = true, normHasBias = false;
    std::string ropeStyle; ///< half | interleaved | none
    bool qkNorm = false, parallelBlock = false, postNorm = false, causal = true;
    std::vector<std::string> biasFree; ///< roles whose bias must stay absent (whisper k_proj)
    std::map<std::string, FamilyEdge> edges;
    std::vector<FamilyVariant> variants; ///< edges that replace those of the same key when their condition holds
    bool embeddingScaled = false;        ///< embedding times sqrt(hidden)
    bool streamHasLinearStart = true;    ///< whisper's stream starts behind conv2 -> GELU
    std::vector<FamilyStream> streams;
    std::map<std::string, std::map<std::string, std::string>> targets; ///< target -> dump pattern -> target pattern
    std::string file;                                                  ///< where it was read
    bool inOut = false;                                                ///< every linear is stored [in, out]

    /// The edge of a site, the first variant that applies first. `has(pattern)` says whether a name of that dump pattern exists.
    const FamilyEdge *edge(const std::string &site, const ModelInfo &model,
                           const std::function<bool(const std::string &)> &has) const;
};

/// Reads one family file; unknown keys are errors with file and path.
Expected<Family> readFamily(const std::string &file);

/// All families: those shipped plus `--families DIR`.
class FamilyList {
public:
    static Expected<FamilyList> load(const std::string &resourceDir, const std::string &extraDir = {});
    const std::vector<std::shared_ptr<const Family>> &all() const { return m_families; }
    std::shared_ptr<const Family> find(std::string_view key) const; ///< by key or alias
    /// By key of the dump, then architectures, then names present.
    std::shared_ptr<const Family> match(const std::string &dumpFamily, const std::vector<std::string> &architectures,
                                        const std::vector<std::string> &tensorNames) const;

private:
    std::vector<std::shared_ptr<const Family>> m_families;
};

/// The folder of resources: beside the program, in the source tree, or $PLANISH_RESOURCES.
std::string resourceFolder();

} // namespace planish
