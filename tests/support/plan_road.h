// The road of a plan in a temporary folder: a complete tiny model as dump and checkpoint, a plan on it, its files.
#pragma once

#include <fstream>
#include <sstream>
#include <stdexcept>

#include <QTemporaryDir>

#include "core/io/number_decode.h"
#include "core/io/safetensors.h"
#include "core/plan/plan.h"
#include "core/synth/synth_dump.h"
#include "core/transform/equivalence.h"
#include "kernels/backend_list.h"
#include "tests/support/candidates.h"

namespace planish::test {

template <class T>
T orThrow(Expected<T> result)
{
    if (!result)
        throw std::runtime_error(toText(result.error()));
    return std::move(*result);
}

inline void orThrow(const Expected<void> &result)
{
    if (!result)
        throw std::runtime_error(toText(result.error()));
}

inline std::string readText(const std::string &file)
{
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

inline void writeText(const std::string &file, const std::string &text)
{
    std::ofstream(file, std::ios::binary) << text;
}

inline std::string replaced(std::string text, const std::string &from, const std::string &to)
{
    const std::size_t at = text.find(from);
    if (at == std::string::npos)
        throw std::runtime_error("no '" + from + "' to replace");
    return text.replace(at, from.size(), to);
}

inline FamilyList families()
{
    return orThrow(FamilyList::load(std::string(PLANISH_SOURCE_DIR) + "/resources"));
}

/// Tensors to write as a checkpoint, in any float type.
using TensorTable = std::map<std::string, std::pair<std::vector<std::uint64_t>, std::vector<double>>>;

inline void writeCheckpoint(const std::string &file, const TensorTable &tensors, StoredType type,
                            const std::map<std::string, std::string> &metadata = {{"format", "pt"}})
{
    std::vector<TensorSpec> specs;
    for (const auto &[name, tensor] : tensors)
        specs.push_back({name, type, tensor.first});
    auto writer = orThrow(SafetensorsWriter::create(file, specs, metadata));
    for (const auto &[name, tensor] : tensors) {
        std::vector<std::byte> bytes(tensor.second.size() * byteSize(type));
        narrow(tensor.second, type, bytes);
        orThrow(writer.writeTensor(name, bytes));
    }
    orThrow(writer.finish());
}

inline TensorTable readCheckpoint(const std::string &file)
{
    TensorTable tensors;
    const auto checkpoint = orThrow(openCheckpoint(file));
    for (const StoredTensor &tensor : checkpoint->info().tensors) {
        const MatrixD values = orThrow(checkpoint->readMatrix(tensor));
        tensors[tensor.name] = {tensor.shape, {values.values().begin(), values.values().end()}};
    }
    return tensors;
}

/// Model, dump and checkpoint of one family, stored in `type`.
class PlanRoad {
public:
    explicit PlanRoad(const std::string &family = "llama", StoredType type = StoredType::F16)
        : m_model(orThrow(makeSynthModel({family, 2, false, 0})))
    {
        for (auto &[name, values] : m_model.tensors) {
            for (double &value : values.values())
                value = roundToStored(value, type);
        }
        const SynthTokens tokens = synthTokens(m_model, 192, 0);
        orThrow(writeForwardDump(dump(), m_model, tokens, referenceForward(m_model, tokens.ids, tokens.lengths)));
        writeCheckpoint(checkpoint(), table(), type);
    }

    std::string file(const std::string &name) const { return m_folder.filePath(QString::fromStdString(name)).toStdString(); }
    std::string dump() const { return file("d.h5"); }
    std::string checkpoint() const { return file("m.safetensors"); }
    std::string planFile() const { return file("p.yaml"); }
    std::string out() const { return file("o.safetensors"); }
    const SynthModel &model() const { return m_model; }

    TensorTable table() const
    {
        TensorTable tensors;
        for (const auto &[name, values] : m_model.tensors) {
            const bool vector = values.rows() == 1 && (name.ends_with(".bias") || name.find("norm") != std::string::npos);
            tensors[name] = {vector ? std::vector<std::uint64_t>{values.cols()} : std::vector<std::uint64_t>{values.rows(), values.cols()},
                             {values.values().begin(), values.values().end()}};
        }
        return tensors;
    }

    Opened open(bool withCheckpoint = true) const
    {
        Opened opened;
        opened.families = families();
        opened.dump = orThrow(openDump(dump(), {}));
        const auto weights = withCheckpoint ? orThrow(openCheckpoint(checkpoint())) : nullptr;
        const auto family = opened.families.find(m_model.shape.family);
        opened.weights = std::make_shared<const ResolvedWeights>(orThrow(ResolvedWeights::resolve(opened.dump, weights, family, Prefer::None)));
        opened.graph = orThrow(buildGraph(opened.dump->info(), *opened.weights, opened.families));
        opened.weightsPath = withCheckpoint ? checkpoint() : std::string();
        return opened;
    }

    static std::shared_ptr<const Backend> backend() { return *makeBackend("reference", 1); }

    static PlanOptions options(const std::string &method, const std::vector<std::string> &sets = {}, const std::string &act = "int8:tensor",
                               const std::string &weight = "int8:row")
    {
        PlanOptions options;
        Candidate identity = candidateOf("none", act, weight);
        Candidate other = candidateOf(method, act, weight, sets);
        other.name = "candidate";
        options.candidates = {identity, other};
        options.pins = {{"layers.*", "candidate"}};
        options.acceptJoint = true;
        return options;
    }

    /// A plan with this method pinned on every edge of the layers, written to planFile() and read back.
    Plan plan(const std::string &method = "smoothquant", const std::vector<std::string> &sets = {"alpha=0.5"}) const
    {
        return plan(options(method, sets));
    }
    Plan plan(const PlanOptions &options) const
    {
        const Plan made = orThrow(makePlan(open(), options, backend(), {}, {}));
        orThrow(writePlan(made, planFile()));
        return orThrow(readPlan(planFile()));
    }

    Expected<ApplyResult> apply(const Plan &plan, const std::string &in, const std::string &out, StoreAs store = StoreAs::Stored) const
    {
        return applyPlan(planFile(), plan, in, out, store, families(), {}, {});
    }
    Expected<VerifyResult> verify(const Plan &plan, const std::string &transformed) const
    {
        return verifyPlan(planFile(), plan, dump(), checkpoint(), transformed, families(), backend(), {}, {});
    }

private:
    QTemporaryDir m_folder;
    SynthModel m_model;
};

} // namespace planish::test
