#include "core/names/resolver.h"

#include <cmath>
#include <set>

#include "core/names/model_facts.h"
#include "core/names/name_pattern.h"
#include "core/names/resolve_parts.h"

namespace planish {

namespace {

std::string shapeText(const std::vector<std::uint64_t> &shape)
{
    std::string text;
    for (const std::uint64_t side : shape)
        text += (text.empty() ? "" : ", ") + std::to_string(side);
    return "[" + text + "]";
}

/// Every tensor name the edges of a dump speak of, without row ranges.
std::vector<std::string> namesOfEdges(const DumpInfo &info)
{
    std::set<std::string> names;
    std::string name;
    std::int64_t begin = 0, end = 0;
    for (const DumpEdge &edge : info.edges) {
        for (const std::string &consumer : edge.consumers)
            if (splitRowRange(consumer, name, begin, end))
                names.insert(name);
        if (!edge.producer.empty())
            names.insert(edge.producer);
    }
    return {names.begin(), names.end()};
}

class Resolution {
public:
    Resolution(const Dump *dump, const Checkpoint *checkpoint, const Family *family, Prefer prefer)
        : m_dump(dump), m_checkpoint(checkpoint), m_family(family), m_prefer(prefer)
    {
    }

    Expected<void> run()
    {
        if (const auto facts = readFacts(); !facts)
            return facts;
        CheckpointNames found;
        if (m_checkpoint) {
            auto names = namesOfCheckpoint(*m_checkpoint, m_family, variables(),
                                           m_dump ? namesOfEdges(m_dump->info()) : std::vector<std::string>{}, model);
            if (!names)
                return tl::make_unexpected(names.error());
            found = std::move(*names);
        }
        tensors = std::move(found.tensors);
        unmatched = std::move(found.unmatched);
        notes = std::move(found.notes);
        if (!m_dump)
            return {};
        for (auto &[name, stored] : namesOfDump(m_dump->info(), m_family, variables()))
            if (const auto done = join(name, std::move(stored)); !done)
                return done;
        return checkWidths();
    }

    TensorMap tensors;
    std::vector<std::string> unmatched, notes;
    ModelInfo model;

private:
    Expected<void> readFacts()
    {
        model = m_dump ? m_dump->info().model : ModelInfo{};
        if (m_checkpoint && m_checkpoint->info().config) {
            auto whole =
                completeModel(model, *m_checkpoint->info().config, m_dump ? m_dump->info().file : std::string("the plan"),
                              m_checkpoint->info().path + ": config.json");
            if (!whole)
                return tl::make_unexpected(whole.error());
            model = std::move(*whole);
        }
        return {};
    }

    RowVariables variables() const
    {
        RowVariables values = rowVariables(model);
        const std::int64_t kv = model.numKvHeads > 0 ? model.numKvHeads : model.numHeads;
        if (kv > 0 && model.headDim > 0) // falcon: queries of one key-value head, its key and its value
            values["group_rows"] = (model.numHeads / kv + 2) * model.headDim;
        return values;
    }

    /// A tensor of the dump beside what the checkpoint has under that name. The checkpoint stands first (names.md).
    Expected<void> join(const std::string &name, ResolvedTensor stored)
    {
        const auto other = tensors.find(name);
        if (other == tensors.end() || m_prefer == Prefer::Dump) {
            tensors[name] = std::move(stored);
            return {};
        }
        if (m_prefer == Prefer::Weights)
            return {};
        const auto inDump = readResolved(stored, m_dump, m_checkpoint);
        if (!inDump)
            return tl::make_unexpected(inDump.error());
        const auto inCheckpoint = readResolved(other->second, m_dump, m_checkpoint);
        if (!inCheckpoint)
            return tl::make_unexpected(inCheckpoint.error());
        return compare(name, *inDump, *inCheckpoint);
    }

    Expected<void> compare(const std::string &name, const MatrixD &inDump, const MatrixD &inCheckpoint) const
    {
        const std::string both = m_dump->info().file + " and " + m_checkpoint->info().path;
        if (inDump.rows() != inCheckpoint.rows() || inDump.cols() != inCheckpoint.cols())
            return dataError(name,
                             "has shape " + shapeText({inDump.rows(), inDump.cols()}) + " in the dump and " +
                                 shapeText({inCheckpoint.rows(), inCheckpoint.cols()}) + " in the checkpoint (" + both + ")",
                             "one model, or --prefer weights or --prefer dump");
        for (std::size_t i = 0; i < inDump.size(); ++i) {
            const double a = inDump.data()[i], b = inCheckpoint.data()[i];
            if (a != b && !(std::isnan(a) && std::isnan(b)))
                return dataError(name,
                                 "differs between " + both + ", first at [" + std::to_string(i / inDump.cols()) + ", " +
                                     std::to_string(i % inDump.cols()) + "]",
                                 "the same values, or --prefer weights or --prefer dump");
        }
        return {};
    }

    /// The width of an edge decides the orientation; a square matrix keeps the family's layout.
    Expected<void> checkWidths()
    {
        std::string name;
        std::int64_t begin = 0, end = 0;
        for (const DumpEdge &edge : m_dump->info().edges)
            for (const std::string &consumer : edge.consumers) {
                if (!splitRowRange(consumer, name, begin, end))
                    continue;
                const auto found = tensors.find(name);
                if (found != tensors.end())
                    if (const auto done = fitWidth(found, edge); !done)
                        return done;
            }
        return {};
    }

    Expected<void> fitWidth(TensorMap::iterator at, const DumpEdge &edge)
    {
        ResolvedTensor &tensor = at->second;
        if (tensor.shape.size() == 2 && tensor.shape[1] == edge.channels)
            return {};
        const bool canTurn = tensor.shape.size() == 2 && tensor.shape[0] == edge.channels && tensor.rows.whole();
        if (canTurn) {
            std::swap(tensor.shape[0], tensor.shape[1]);
            tensor.transposed = !tensor.transposed;
            if (tensor.inDump)
                tensor.inDump->transposed = tensor.transposed;
            return {};
        }
        const std::string what = "has shape " + shapeText(tensor.shape) + ", but " + edge.id.value + " has shape " +
                                 shapeText({edge.rows, edge.channels});
        const std::string expected = "a width of " + std::to_string(edge.channels) + " was expected";
        if (!tensor.inDump)
            return dataError(tensor.checkpointName, what, expected);
        notes.push_back(at->first + ": " + what + "; " + expected +
                        ": left out"); // a broken part does not lose the rest of a dump
        tensors.erase(at);
        return {};
    }

    const Dump *m_dump;
    const Checkpoint *m_checkpoint;
    const Family *m_family;
    Prefer m_prefer;
};

} // namespace

Expected<ResolvedWeights> ResolvedWeights::resolve(std::shared_ptr<const Dump> dump, std::shared_ptr<const Checkpoint> checkpoint,
                                                   std::shared_ptr<const Family> family, Prefer prefer)
{
    Resolution resolution(dump.get(), checkpoint.get(), family.get(), prefer);
    if (const auto done = resolution.run(); !done)
        return tl::make_unexpected(done.error());
    ResolvedWeights weights;
    weights.m_dump = std::move(dump);
    weights.m_checkpoint = std::move(checkpoint);
    weights.m_family = std::move(family);
    weights.m_tensors = std::move(resolution.tensors);
    weights.m_unmatched = std::move(resolution.unmatched);
    weights.m_notes = std::move(resolution.notes);
    weights.m_model = std::move(resolution.model);
    return weights;
}

const ResolvedTensor *ResolvedWeights::find(const TensorName &name) const
{
    const auto found = m_tensors.find(name.value);
    return found == m_tensors.end() ? nullptr : &found->second;
}

std::string ResolvedWeights::biasOf(const std::string &name) const
{
    return m_tensors.count(name + ".bias") ? name + ".bias" : std::string();
}

Expected<MatrixD> ResolvedWeights::read(const TensorName &name) const
{
    const ResolvedTensor *tensor = find(name);
    if (!tensor)
        return dataError(name.value, "has no values in the files given", "pass --weights or dump it");
    return readResolved(*tensor, m_dump.get(), m_checkpoint.get());
}

Expected<std::optional<NormParameters>> ResolvedWeights::norm(const TensorName &name) const
{
    const ResolvedTensor *tensor = find(name);
    if (!tensor)
        return std::optional<NormParameters>{};
    if (tensor->inDump) {
        const auto found = m_dump->info().norms.find(tensor->inDump->name.value);
        if (found != m_dump->info().norms.end())
            return std::optional<NormParameters>(found->second);
    }
    NormParameters norm;
    norm.kind = m_family && !m_family->normKind.empty() ? m_family->normKind : m_model.normKind;
    norm.offset = m_family ? m_family->normOffset : m_model.normOffset;
    norm.eps = m_model.normEps;
    if (m_dump) // the dump knows the eps of a norm it carries, also when the values come from the checkpoint
        if (const auto stated = m_dump->info().norms.find(name.value); stated != m_dump->info().norms.end()) {
            norm.kind = stated->second.kind;
            norm.offset = stated->second.offset;
            norm.eps = stated->second.eps;
        }
    const auto gain = read(name);
    if (!gain)
        return tl::make_unexpected(gain.error());
    norm.gain.assign(gain->values().begin(), gain->values().end());
    if (const std::string bias = biasOf(name.value); !bias.empty()) {
        const auto values = read({bias});
        if (!values)
            return tl::make_unexpected(values.error());
        norm.bias.assign(values->values().begin(), values->values().end());
    }
    return std::optional<NormParameters>(std::move(norm));
}

} // namespace planish
