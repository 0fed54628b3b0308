#include "core/plan/plan_weights.h"

#include "core/plan/plan_edge.h"

namespace planish {

namespace {

/// A dump without anything but the model facts of the plan, so that row expressions of fused tensors know q and kv.
class NoDump final : public Dump {
public:
    enum class Widths { Stated, Open };
    NoDump(const Plan &plan, Widths widths)
    {
        m_info.file = plan.source.dump.file;
        m_info.model = plan.source.modelInfo;
        m_info.model.family = plan.source.family;
        // The widths of edges decide orientations, and without a family names are taken as the edges spell them.
        for (const Assignment &assignment : plan.assignments) {
            DumpEdge edge;
            edge.id = assignment.edge;
            edge.consumers = assignment.consumers;
            edge.producer = assignment.producerName;
            edge.channels = channelsOf(assignment, plan.source.modelInfo);
            if (widths == Widths::Stated && edge.channels)
                m_info.edges.push_back(std::move(edge));
        }
    }
    const DumpInfo &info() const override { return m_info; }
    Expected<MatrixD> readRows(const DumpEdge &edge, std::span<const std::int64_t>) const override { return absent(edge.id.value); }
    Expected<void> visitBlocks(const DumpEdge &edge, const std::function<bool(const Block &)> &, std::stop_token) const override
    {
        return absent(edge.id.value);
    }
    Expected<void> visitRawBlocks(const DumpEdge &edge,
                                  const std::function<bool(std::uint64_t, std::uint64_t, std::span<const std::byte>)> &,
                                  std::stop_token) const override
    {
        return absent(edge.id.value);
    }
    Expected<MatrixD> readTensor(const TensorEntry &tensor) const override { return absent(tensor.name.value); }

private:
    tl::unexpected<Error> absent(const std::string &name) const { return dataError(name, "no dump is open", "expected a tensor of the checkpoint"); }
    DumpInfo m_info;
};

} // namespace

std::shared_ptr<const Family> familyOf(const Plan &plan, const FamilyList &families, const std::vector<std::string> &tensorNames)
{
    if (!plan.source.family.empty()) {
        if (auto family = families.find(plan.source.family))
            return family;
    }
    return families.match(plan.source.family, {}, tensorNames);
}

Expected<std::shared_ptr<const ResolvedWeights>> resolveForPlan(const Plan &plan, std::shared_ptr<const Checkpoint> checkpoint,
                                                                const FamilyList &families)
{
    std::vector<std::string> names;
    for (const StoredTensor &tensor : checkpoint->info().tensors)
        names.push_back(tensor.name);
    const auto family = familyOf(plan, families, names);
    auto resolved = ResolvedWeights::resolve(std::make_shared<NoDump>(plan, NoDump::Widths::Stated), checkpoint, family, Prefer::Weights);
    if (!resolved) // another model's widths: names alone are enough to say so by its basis
        resolved = ResolvedWeights::resolve(std::make_shared<NoDump>(plan, NoDump::Widths::Open), checkpoint, family, Prefer::Weights);
    if (!resolved)
        return tl::make_unexpected(resolved.error());
    return std::make_shared<const ResolvedWeights>(std::move(*resolved));
}

Expected<std::shared_ptr<const ResolvedWeights>> openForPlan(const Plan &plan, const std::string &path, const FamilyList &families)
{
    auto checkpoint = openCheckpoint(path);
    if (!checkpoint)
        return tl::make_unexpected(checkpoint.error());
    return resolveForPlan(plan, *checkpoint, families);
}

} // namespace planish
