#include "core/plan/fold_map.h"

#include <algorithm>

#include "core/plan/fold.h"

namespace planish {

namespace {

bool changesConsumers(const Rewrite &rewrite)
{
    const bool replaced = std::any_of(rewrite.replaced.begin(), rewrite.replaced.end(), [](const auto &matrix) { return matrix.has_value(); });
    return !rewrite.input.isIdentity() || replaced || rewrite.lowRank;
}

MatrixD rowsOf(const MatrixD &matrix, std::size_t begin, std::size_t end)
{
    MatrixD part(end - begin, matrix.cols());
    std::copy_n(matrix.data() + begin * matrix.cols(), part.size(), part.data());
    return part;
}

/// whisper's k_proj: a constant added to a query's scores changes nothing, so its bias may be left out.
bool mustStayBiasFree(const Family *family, const std::string &name)
{
    const std::string role = name.substr(name.rfind('.') + 1);
    return family && std::find(family->biasFree.begin(), family->biasFree.end(), role) != family->biasFree.end();
}

/// W' -= L1 L2 of this consumer; in a stacked branch its rows start behind those of the consumers before it.
void subtractLowRank(const LowRank &lowRank, std::size_t consumer, std::size_t firstRow, MatrixD &weight)
{
    const std::size_t index = lowRank.stacked ? 0 : consumer;
    const std::size_t offset = lowRank.stacked ? firstRow : 0;
    if (index >= lowRank.left.size())
        return;
    const MatrixD &left = lowRank.left[index], &right = lowRank.right[index];
    for (std::size_t n = 0; n < weight.rows() && offset + n < left.rows(); ++n) {
        for (std::size_t r = 0; r < right.rows(); ++r) {
            const double factor = left(offset + n, r);
            for (std::size_t k = 0; k < weight.cols(); ++k)
                weight(n, k) -= factor * right(r, k);
        }
    }
}

} // namespace

void addSummandShifts(const Rewrite &rewrite, const std::string &linear, MatrixD &bias)
{
    for (const OtherReaderRewrite &reader : rewrite.otherReaders) {
        if (reader.biasOf != linear)
            continue;
        for (std::size_t n = 0; n < bias.size() && n < reader.addToBias.size(); ++n)
            bias(0, n) += reader.addToBias[n];
    }
}

Expected<FoldMap> FoldMap::build(const Plan &plan, std::shared_ptr<const ResolvedWeights> weights)
{
    FoldMap map;
    map.m_plan = &plan;
    map.m_weights = std::move(weights);
    if (auto collected = map.collect(plan); !collected)
        return tl::make_unexpected(collected.error());
    map.collectBiases();
    return map;
}

Expected<void> FoldMap::need(const Assignment &assignment, const std::string &name)
{
    if (m_weights->find({name}))
        return {};
    const std::string where = m_weights->checkpoint() ? m_weights->checkpoint()->info().path
                              : m_weights->dump()     ? m_weights->dump()->info().file
                                                      : std::string("the checkpoint");
    return refusal(where, "has no tensor " + name + " of " + assignment.edge.value, "expected the checkpoint the plan was made from", "basis_mismatch");
}

Expected<void> FoldMap::collect(const Plan &plan)
{
    for (const Assignment &assignment : plan.assignments) {
        if (!assignment.rewrite || !changesConsumers(*assignment.rewrite))
            continue;
        const bool shift = !assignment.rewrite->input.shift.empty();
        for (const FusedFactor &factor : assignment.placement.fused) {
            if (factor.how != FusedFactor::How::NormGain)
                continue;
            if (auto found = need(assignment, factor.tensor.value); !found)
                return found;
            m_norms[factor.tensor.value].push_back(&assignment);
        }
        auto folds = producerFolds(assignment, *m_weights);
        for (const auto &[name, fold] : folds) {
            if (auto found = need(assignment, name); !found)
                return found;
            m_linears[name] |= !fold.prefix.shift.empty();
        }
        m_rows[&assignment] = std::move(folds);
        for (const std::string &consumer : assignment.consumers) {
            const std::string name = namedRows(consumer).name;
            if (auto found = need(assignment, name); !found)
                return found;
            m_linears[canonicalRows(*m_weights, namedRows(consumer)).name] |= shift;
        }
        for (const OtherReaderRewrite &reader : assignment.rewrite->otherReaders) {
            if (reader.addToBias.empty())
                continue;
            if (auto found = need(assignment, reader.biasOf); !found)
                return found;
            m_linears[reader.biasOf] |= true;
        }
    }
    return {};
}

void FoldMap::collectBiases()
{
    for (const auto &[name, shifted] : m_linears) {
        m_changed.push_back(name);
        const std::string bias = m_weights->biasOf(name);
        const bool rowsFold = std::any_of(m_rows.begin(), m_rows.end(), [&](const auto &entry) {
            return std::any_of(entry.second.begin(), entry.second.end(), [&](const auto &fold) { return fold.first == name; });
        });
        if (!bias.empty() && (shifted || rowsFold))
            m_changed.push_back(bias);
        else if (bias.empty() && shifted && !mustStayBiasFree(m_weights->family().get(), name))
            m_created.push_back(name);
    }
    for (const auto &[name, assignments] : m_norms) {
        m_changed.push_back(name);
        if (const std::string bias = m_weights->biasOf(name); !bias.empty())
            m_changed.push_back(bias);
    }
    std::sort(m_changed.begin(), m_changed.end());
}

Expected<FoldMap::Linear> FoldMap::linear(const std::string &name) const
{
    Linear linear;
    auto weight = m_weights->read({name});
    if (!weight)
        return tl::make_unexpected(weight.error());
    linear.weight = std::move(*weight);
    const std::string biasName = m_weights->biasOf(name);
    const bool created = std::binary_search(m_created.begin(), m_created.end(), name);
    if (!biasName.empty()) {
        auto bias = m_weights->read({biasName});
        if (!bias)
            return tl::make_unexpected(bias.error());
        linear.bias = std::move(*bias);
    } else if (created) {
        linear.bias = MatrixD(1, linear.weight.rows());
    }
    for (const Assignment &assignment : m_plan->assignments) {
        if (!m_rows.contains(&assignment))
            continue;
        for (std::size_t i = 0; i < assignment.consumers.size(); ++i) {
            const NamedRows consumer = canonicalRows(*m_weights, namedRows(assignment.consumers[i]));
            if (consumer.name != name)
                continue;
            if (auto folded = foldColumns(assignment, i, consumer.rows, linear); !folded)
                return tl::make_unexpected(folded.error());
        }
        auto rows = foldRowsOf(name, 0, linear.weight, linear.bias.empty() ? nullptr : &linear.bias, m_rows.at(&assignment),
                               m_plan->source.modelInfo);
        if (!rows)
            return tl::make_unexpected(rows.error());
        addSummandShifts(*assignment.rewrite, name, linear.bias);
    }
    return linear;
}

Expected<void> FoldMap::foldColumns(const Assignment &assignment, std::size_t consumer, const RowRangeOf &rows, Linear &linear) const
{
    const Rewrite &rewrite = *assignment.rewrite;
    const auto begin = static_cast<std::size_t>(rows.begin);
    const std::size_t end = rows.end < 0 ? linear.weight.rows() : static_cast<std::size_t>(rows.end);
    if (end > linear.weight.rows() || begin >= end)
        return refusal(assignment.edge.value, "rows of " + assignment.consumers[consumer] + " do not exist", "expected rows of the tensor", "fused_rows");
    MatrixD part = rowsOf(linear.weight, begin, end);
    const std::size_t width = channelsOf(rewrite.input);
    if (width && width != part.cols())
        return refusal(assignment.edge.value, "the plan has " + std::to_string(width) + " channels but " + assignment.consumers[consumer] + " has " +
                       std::to_string(part.cols()), "expected the checkpoint the plan was made from", "basis_mismatch");
    if (consumer < rewrite.replaced.size() && rewrite.replaced[consumer]) {
        if (rewrite.replaced[consumer]->rows() != part.rows() || rewrite.replaced[consumer]->cols() != part.cols())
            return refusal(assignment.edge.value, "the replaced weight of " + assignment.consumers[consumer] + " has another shape",
                           "expected the checkpoint the plan was made from", "basis_mismatch");
        part = *rewrite.replaced[consumer];
    }
    if (!rewrite.input.shift.empty() && !linear.bias.empty()) {
        MatrixD bias(1, part.rows());
        foldConsumerBias(bias, part, rewrite.input.shift);
        for (std::size_t r = 0; r < part.rows(); ++r)
            linear.bias(0, begin + r) += bias(0, r);
    }
    auto folded = foldConsumerColumns(part, rewrite.input);
    if (!folded)
        return tl::make_unexpected(folded.error());
    if (rewrite.lowRank) {
        std::size_t first = 0;
        for (std::size_t i = 0; i < consumer; ++i) {
            const ResolvedTensor *before = m_weights->find({namedRows(assignment.consumers[i]).name});
            first += before && !before->shape.empty() ? before->shape[0] : 0;
        }
        subtractLowRank(*rewrite.lowRank, consumer, first, *folded);
    }
    std::copy_n(folded->data(), folded->size(), linear.weight.data() + begin * linear.weight.cols());
    return {};
}

Expected<NormParameters> FoldMap::norm(const std::string &name) const
{
    auto norm = m_weights->norm({name});
    if (!norm)
        return tl::make_unexpected(norm.error());
    if (!*norm)
        return refusal(name, "is no norm of this checkpoint", "expected the checkpoint the plan was made from", "basis_mismatch");
    NormParameters folded = std::move(**norm);
    for (const Assignment *assignment : m_norms.at(name)) {
        const Transform prefix = fusedPrefix(*assignment);
        const std::size_t width = channelsOf(prefix);
        if (width && width != folded.gain.size())
            return refusal(assignment->edge.value, "the plan has " + std::to_string(width) + " channels but " + name + " has " +
                           std::to_string(folded.gain.size()), "expected the checkpoint the plan was made from", "basis_mismatch");
        folded.offset = assignment->producerOffset ? 1 : folded.offset;
        if (auto done = foldNorm(folded, prefix, assignment->edge.value); !done)
            return tl::make_unexpected(done.error());
    }
    return folded;
}

Expected<std::vector<std::string>> rewrittenNames(const Plan &plan, std::shared_ptr<const ResolvedWeights> weights)
{
    auto map = FoldMap::build(plan, std::move(weights));
    if (!map)
        return tl::make_unexpected(map.error());
    return map->changed();
}

} // namespace planish
