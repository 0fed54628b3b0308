#include "core/evaluate/fit_chain.h"

#include <algorithm>

#include "core/methods/kernel_result.h"
#include "core/methods/product_weights.h"

namespace planish {
namespace {

bool needs(const MethodRow &row, Need need)
{
    return std::ranges::find(row.needs, need) != row.needs.end();
}

Expected<const MethodRow *> rowOf(const std::string &edge, const ChainMember &member)
{
    const MethodRow *row = findMethod(member.method);
    if (!row)
        return refusal(edge, "method " + member.method + " has no row in this build", "a method listed by `planish-cli methods`",
                       "not_built");
    return row;
}

/// A missing need is a refusal by name (parameters.md "Needs").
Expected<void> checkNeeds(const EdgeParts &parts, const MethodRow &row)
{
    const std::string subject = row.key + ": " + parts.edge.id.value;
    if (needs(row, Need::Weights) && parts.consumers.empty())
        return refusal(subject, "has no weights", "weights of every consumer", "needs_weights");
    if (needs(row, Need::Norm) && !parts.norm)
        return refusal(subject, "has no known norm in front of it", "an edge behind a norm whose gain is in the files",
                       "producer_unknown");
    if (row.needs.empty())
        return {};
    if (parts.calibrationNonFinite.nonFiniteRows > 0)
        return refusal(subject,
                       std::to_string(parts.calibrationNonFinite.nonFiniteRows) +
                           " calibration rows hold non-finite values (first row " +
                           std::to_string(parts.calibrationNonFinite.firstRow) + ", channel " +
                           std::to_string(parts.calibrationNonFinite.firstChannel) + ")",
                       "finite rows; mask these", "nonfinite");
    if (needs(row, Need::Weights) && !parts.nonFiniteWeight.empty())
        return refusal(subject, "the weights of " + parts.nonFiniteWeight + " hold non-finite values", "finite weights",
                       "nonfinite");
    return {};
}

/// Gain and bias of the norm as seen behind a diagonal transform: (offset + g)/s and (b - c)/s.
std::shared_ptr<const NormParameters> normBehind(const std::shared_ptr<const NormParameters> &norm, const Transform &transform)
{
    if (!norm || transform.isIdentity())
        return norm;
    auto moved = std::make_shared<NormParameters>(*norm);
    for (double &gain : moved->gain)
        gain += norm->offset;
    moved->offset = 0;
    moved->bias.resize(moved->gain.size());
    for (std::size_t k = 0; k < transform.shift.size(); ++k)
        moved->bias[k] -= transform.shift[k];
    for (const Operator &op : transform.operators) {
        const auto *scale = std::get_if<ScaleOp>(&op.value);
        for (std::size_t k = 0; scale && k < moved->gain.size(); ++k) {
            moved->gain[k] /= scale->divisor[k];
            moved->bias[k] /= scale->divisor[k];
        }
    }
    if (norm->bias.empty() && transform.shift.empty())
        moved->bias.clear();
    return moved;
}

class ChainFit {
public:
    ChainFit(const Opened &opened, const EdgeData &data, const Candidate &candidate, std::stop_token stop,
             const ProgressSink &progress)
        : m_opened(opened), m_data(data), m_candidate(candidate), m_stop(std::move(stop)), m_progress(progress)
    {
    }

    Expected<FittedChain> run()
    {
        FittedChain chain;
        for (std::size_t i = 0; i < m_candidate.chain.size(); ++i) {
            auto fitted = fitMember(chain.rewrite, i);
            if (!fitted)
                return tl::make_unexpected(fitted.error());
            chain.members.push_back({m_candidate.chain[i].method, m_params.fields(), fitted->fitted});
            if (i == 0 && m_candidate.chain.size() == 1) {
                chain.rewrite = std::move(*fitted);
                continue;
            }
            auto joined = chain.rewrite.then(*fitted);
            if (!joined)
                return tl::make_unexpected(joined.error());
            chain.rewrite = std::move(*joined);
        }
        return chain;
    }

private:
    Expected<Rewrite> fitMember(const Rewrite &before, std::size_t index)
    {
        const std::string &edge = m_data.parts().edge.id.value;
        auto row = rowOf(edge, m_candidate.chain[index]);
        if (!row)
            return tl::make_unexpected(row.error());
        auto params = resolveParams(**row, m_candidate.chain[index]);
        if (!params)
            return tl::make_unexpected(params.error());
        m_params = std::move(*params);
        if (auto met = checkNeeds(m_data.parts(), **row); !met)
            return tl::make_unexpected(met.error());
        auto input = inputOf(**row, before, index);
        if (!input)
            return tl::make_unexpected(input.error());
        return (*row)->fit(*input);
    }

    Expected<FitInput> inputOf(const MethodRow &row, const Rewrite &before, std::size_t index)
    {
        const EdgeParts &parts = m_data.parts();
        FitInput input;
        input.edge = &parts.edge;
        input.model = &m_opened.graph.model;
        input.specs = specsOf(m_candidate);
        input.params = m_params;
        input.seed = m_candidate.seed;
        input.streamId = parts.edge.site == "residual" ? "stream:residual" : parts.edge.id.value;
        if (m_candidate.chain.size() > 1)
            input.purposeSuffix = "#" + std::to_string(index + 1);
        input.backend = parts.backend;
        input.stop = m_stop;
        input.progress = m_progress;
        if (auto placed = placeRows(input, before); !placed)
            return tl::make_unexpected(placed.error());
        if (needs(row, Need::AllLayers) || m_params.isWord("select", "systematic")) {
            auto channels = systematicOf(m_opened, parts, m_params.real("threshold"), m_params.real("layer_fraction"),
                                         m_params.real("position_fraction"), m_stop);
            if (!channels)
                return tl::make_unexpected(channels.error());
            input.systematic = std::move(*channels);
        }
        return input;
    }

    /// Rows, weights, statistics, norm and ties in the coordinates the members before have left.
    Expected<void> placeRows(FitInput &input, const Rewrite &before)
    {
        const EdgeParts &parts = m_data.parts();
        auto statistics = m_data.statisticsBehind(before.input, m_stop);
        if (!statistics)
            return tl::make_unexpected(statistics.error());
        input.statistics = std::move(*statistics);
        const bool diagonal = std::ranges::all_of(before.input.operators, isDiagonal);
        input.norm = diagonal ? normBehind(parts.norm, before.input) : nullptr;
        if (diagonal && !m_params.isWord("ties", "none"))
            input.ties = parts.edge.ties;
        if (before.input.isIdentity() && before.replaced.empty()) {
            input.calibration = parts.calibration;
            input.fitting = parts.fitting;
            input.validation = parts.validation;
            input.consumers = parts.consumers;
            return {};
        }
        input.calibration = moved(parts.calibration, before.input);
        input.fitting = moved(parts.fitting, before.input);
        input.validation = moved(parts.validation, before.input);
        for (std::size_t i = 0; i < parts.consumers.size(); ++i) {
            const bool replaced = i < before.replaced.size() && before.replaced[i];
            const MatrixD &weight = replaced ? *before.replaced[i] : *parts.consumers[i].weight;
            auto next = applyToWeights(before.input, weight.view());
            if (!next)
                return tl::make_unexpected(next.error());
            input.consumers.push_back(parts.consumers[i]);
            input.consumers.back().weight = std::make_shared<const MatrixD>(std::move(*next));
        }
        return {};
    }

    template <Part P> RowView<P> moved(const RowView<P> &rows, const Transform &transform) const
    {
        auto x = std::make_shared<const MatrixD>(applyToActivations(transform, rows.x().view()));
        return RowView<P>(rows.rows(), rows.units(), rows.requests(), std::move(x), rows.available());
    }

    const Opened &m_opened;
    const EdgeData &m_data;
    const Candidate &m_candidate;
    std::stop_token m_stop;
    const ProgressSink &m_progress;
    Params m_params;
};

} // namespace

Expected<FittedChain> fitChain(const Opened &opened, const EdgeData &data, const Candidate &candidate, std::stop_token stop,
                               const ProgressSink &progress)
{
    return ChainFit(opened, data, candidate, std::move(stop), progress).run();
}

SpecPair specsOf(const Candidate &candidate)
{
    return {candidate.act, candidate.weight, candidate.kv};
}

} // namespace planish
