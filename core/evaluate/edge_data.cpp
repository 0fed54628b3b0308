#include "core/evaluate/edge_data.h"

#include <algorithm>
#include <cmath>

#include "core/geometry/findings.h"
#include "core/measure/error_sums.h"

namespace planish {
namespace {

// Rows read at a time when statistics behind a transform do not fit the budget.
constexpr std::size_t kStatisticsRows = 4096;

std::string rangeName(const Consumer &consumer)
{
    if (consumer.rows.begin == 0 && consumer.rows.end < 0)
        return consumer.tensor.value;
    return consumer.tensor.value + "[" + std::to_string(consumer.rows.begin) + ":" + std::to_string(consumer.rows.end) + "]";
}

MatrixD rowRange(const MatrixD &matrix, const RowRangeOf &rows)
{
    const auto begin = static_cast<std::size_t>(rows.begin);
    const std::size_t end = rows.end < 0 ? matrix.rows() : static_cast<std::size_t>(rows.end);
    MatrixD part(end - begin, matrix.cols());
    for (std::size_t r = begin; r < end; ++r)
        std::ranges::copy(matrix.row(r), part.row(r - begin).begin());
    return part;
}

bool isWhole(const RowRangeOf &rows)
{
    return rows.begin == 0 && rows.end < 0;
}

Expected<std::shared_ptr<const MatrixD>> biasOf(const EdgeParts &parts, const Consumer &consumer)
{
    if (consumer.bias.empty() || !parts.weights->find({consumer.bias}))
        return std::shared_ptr<const MatrixD>();
    auto bias = parts.weights->read({consumer.bias});
    if (!bias)
        return tl::make_unexpected(bias.error());
    if (!isWhole(consumer.rows)) { // [1, n]: the range runs along the columns
        MatrixD part(1, static_cast<std::size_t>(consumer.rows.end - consumer.rows.begin));
        for (std::size_t i = 0; i < part.cols(); ++i)
            part(0, i) = (*bias)(0, static_cast<std::size_t>(consumer.rows.begin) + i);
        *bias = std::move(part);
    }
    return std::make_shared<const MatrixD>(std::move(*bias));
}

Expected<void> loadConsumer(EdgeParts &parts, const Consumer &consumer)
{
    auto weight = parts.weights->read(consumer.tensor);
    if (!weight)
        return tl::make_unexpected(weight.error());
    if (weight->cols() != parts.edge.channels)
        return dataError(parts.edge.id.value,
                         "consumer " + consumer.tensor.value + " is [" + std::to_string(weight->rows()) + ", " +
                             std::to_string(weight->cols()) + "]",
                         "[outputs, " + std::to_string(parts.edge.channels) + "]");
    auto bias = biasOf(parts, consumer);
    if (!bias)
        return tl::make_unexpected(bias.error());
    if (!isWhole(consumer.rows))
        *weight = rowRange(*weight, consumer.rows);
    const bool finite = std::ranges::all_of(weight->values(), [](double value) { return std::isfinite(value); });
    if (!finite && parts.nonFiniteWeight.empty())
        parts.nonFiniteWeight = consumer.tensor.value;
    parts.consumers.push_back({consumer, std::make_shared<const MatrixD>(std::move(*weight)), std::move(*bias)});
    parts.consumerNames.push_back(rangeName(consumer));
    parts.storedTypes.push_back(parts.weights->find(consumer.tensor)->storedType);
    return {};
}

Expected<void> loadConsumers(EdgeParts &parts)
{
    const DumpInfo &info = parts.dump->info();
    if (parts.edge.consumers.empty())
        return dataError(parts.edge.id.value, "no linear reads this edge",
                         "an edge with consumers; a residual stream takes stream candidates only");
    for (const Consumer &consumer : parts.edge.consumers) {
        if (consumer.present && parts.weights && parts.weights->find(consumer.tensor)) {
            if (auto loaded = loadConsumer(parts, consumer); !loaded)
                return loaded;
            continue;
        }
        if (!parts.options.partial)
            return dataError(parts.edge.id.value, "consumer " + consumer.tensor.value + " has no weights in " + info.file,
                             "pass --weights or dump them");
        parts.missing.push_back(consumer.tensor.value);
    }
    if (parts.consumers.empty())
        return dataError(parts.edge.id.value, "no consumer has weights in " + info.file, "pass --weights or dump them");
    return {};
}

Expected<void> loadNorm(EdgeParts &parts)
{
    const auto *producer = std::get_if<NormProducer>(&parts.edge.producer);
    if (!producer || !parts.weights)
        return {};
    auto norm = parts.weights->norm(producer->name);
    if (!norm)
        return tl::make_unexpected(norm.error());
    if (*norm)
        parts.norm = std::make_shared<const NormParameters>(std::move(**norm));
    return {};
}

Expected<void> loadParts(EdgeParts &parts)
{
    const TokenTable &tokens = parts.dump->info().tokens;
    const std::int64_t budget = parts.split.unit == SplitUnit::Explicit ? -1 : parts.options.rows.budget;
    auto calibration = loadRows<Part::Calibration>(*parts.dump, parts.dumpEdge, parts.split, budget, &parts.calibrationNonFinite);
    if (!calibration)
        return tl::make_unexpected(calibration.error());
    auto heldOut = loadRows<Part::HeldOut>(*parts.dump, parts.dumpEdge, parts.split, budget, &parts.heldOutNonFinite);
    if (!heldOut)
        return tl::make_unexpected(heldOut.error());
    parts.calibration = std::move(*calibration);
    parts.heldOut = std::move(*heldOut);
    if (parts.heldOut.size() == 0 || parts.calibration.size() == 0)
        return dataError(parts.edge.id.value, parts.heldOut.size() == 0 ? "no held-out rows" : "no calibration rows",
                         "counted, finite rows in both parts of the split");
    if (auto fitting = withoutValidation(parts.calibration, parts.split))
        parts.fitting = std::move(*fitting);
    if (auto validation = validationOf(parts.calibration, parts.split))
        parts.validation = std::move(*validation);
    parts.calibrationFileRows = rowsOfPart(parts.split, tokens, parts.dumpEdge, Part::Calibration);
    return {};
}

void countRows(EdgeParts &parts)
{
    const TokenTable &tokens = parts.dump->info().tokens;
    parts.counts.calibration = static_cast<std::int64_t>(parts.calibration.size());
    parts.counts.validation = static_cast<std::int64_t>(parts.validation.size());
    parts.counts.heldOut = static_cast<std::int64_t>(parts.heldOut.size());
    parts.counts.available = static_cast<std::int64_t>(countedRows(tokens, parts.dumpEdge, parts.options.rows).size());
    if (parts.split.unit == SplitUnit::Explicit) {
        parts.counts.fit = parts.counts.calibration;
        parts.counts.score = parts.counts.heldOut;
    } else {
        parts.counts.sealed = static_cast<std::int64_t>(rowsOfPart(parts.split, tokens, parts.dumpEdge, Part::Sealed).size());
    }
    const auto note = [&](const LoadedCounts &counts, const char *part) {
        if (counts.nonFiniteRows > 0)
            parts.notes.push_back(std::to_string(counts.nonFiniteRows) + " " + part +
                                  " rows hold non-finite values and are left out (first row " + std::to_string(counts.firstRow) +
                                  ", channel " + std::to_string(counts.firstChannel) + ")");
    };
    note(parts.calibrationNonFinite, "calibration");
    note(parts.heldOutNonFinite, "held-out");
}

} // namespace

Expected<std::shared_ptr<const EdgeData>> loadEdgeData(const Opened &opened, const Edge &edge, const EvaluateOptions &options,
                                                       std::shared_ptr<const Backend> backend, std::stop_token stop)
{
    const DumpInfo &info = opened.dump->info();
    const DumpEdge *dumpEdge = info.findEdge(edge.id);
    if (!dumpEdge)
        return dataError(edge.id.value, "no such edge in " + info.file, "an edge of the dump");
    EdgeParts parts;
    parts.dump = opened.dump;
    parts.weights = opened.weights;
    parts.backend = backend;
    parts.edge = edge;
    parts.dumpEdge = *dumpEdge;
    parts.options = options;
    if (auto loaded = loadConsumers(parts); !loaded)
        return tl::make_unexpected(loaded.error());
    auto split = makeSplit(info.tokens, options.rows, info.file);
    if (!split)
        return tl::make_unexpected(split.error());
    parts.split = std::move(*split);
    for (Expected<void> (*step)(EdgeParts &) : {loadNorm, loadParts}) {
        if (stop.stop_requested())
            return cancelled(edge.id.value);
        if (auto loaded = step(parts); !loaded)
            return tl::make_unexpected(loaded.error());
    }
    countRows(parts);
    auto product = makeProductRows(std::move(backend), edge.id.value, parts.heldOut.sharedX(), parts.heldOut.requests(),
                                   parts.calibration.sharedX(), parts.consumers);
    if (!product)
        return tl::make_unexpected(product.error());
    parts.heldOutProduct = std::move(*product);
    return std::make_shared<const EdgeData>(std::move(parts));
}

Expected<std::shared_ptr<const Statistics>> EdgeData::statistics(std::stop_token stop) const
{
    const std::scoped_lock lock(m_mutex);
    if (m_statistics)
        return m_statistics;
    const bool inMemory =
        m_parts.calibrationFileRows.size() == m_parts.calibration.size() || m_parts.split.unit == SplitUnit::Explicit;
    auto statistics =
        inMemory ? Expected<Statistics>(statisticsOf(m_parts.calibration.x().view()))
                 : computeStatistics(*m_parts.dump, m_parts.dumpEdge, m_parts.calibrationFileRows, StatisticsRequest{}, stop);
    if (!statistics)
        return tl::make_unexpected(statistics.error());
    m_statistics = std::make_shared<const Statistics>(std::move(*statistics));
    return m_statistics;
}

Expected<std::shared_ptr<const Statistics>> EdgeData::statisticsBehind(const Transform &transform, std::stop_token stop) const
{
    if (transform.isIdentity())
        return statistics(stop);
    const std::vector<std::int64_t> &rows = m_parts.calibrationFileRows;
    std::optional<Statistics> whole;
    for (std::size_t begin = 0; begin < rows.size(); begin += kStatisticsRows) {
        if (stop.stop_requested())
            return cancelled(m_parts.edge.id.value);
        const std::size_t count = std::min(kStatisticsRows, rows.size() - begin);
        auto x = m_parts.dump->readRows(m_parts.dumpEdge, std::span(rows).subspan(begin, count));
        if (!x)
            return tl::make_unexpected(x.error());
        const MatrixD moved = applyToActivations(transform, x->view());
        Statistics part = statisticsOf(moved.view());
        if (!whole)
            whole = std::move(part);
        else if (auto merged = whole->merge(part); !merged)
            return tl::make_unexpected(merged.error());
    }
    return std::make_shared<const Statistics>(std::move(*whole));
}

Expected<double> EdgeData::identityError(const SpecPair &specs, std::stop_token stop) const
{
    const std::string key = canonicalText(specs.act, Role::Activation) + " / " + canonicalText(specs.weight, Role::Weight);
    {
        const std::scoped_lock lock(m_mutex);
        if (const auto found = m_identity.find(key); found != m_identity.end())
            return found->second;
    }
    auto product = measureProduct(m_parts.heldOutProduct, Rewrite{}, specs, TermDetail::All, stop);
    if (!product)
        return tl::make_unexpected(product.error());
    const double reference = pairwiseSum(product->sums.rowReference);
    const double relative = std::sqrt(pairwiseSum(product->sums.rowError) / reference);
    const std::scoped_lock lock(m_mutex);
    m_identity[key] = relative;
    return relative;
}

EdgeDataFacts factsOf(const EdgeData &data)
{
    const EdgeParts &parts = data.parts();
    return {parts.edge.id, parts.split, parts.counts, parts.heldOut.rows(), parts.edge.channels};
}

Expected<std::vector<std::int64_t>> systematicOf(const Opened &opened, const EdgeParts &parts, double threshold,
                                                 double layerFraction, double positionFraction, std::stop_token stop)
{
    std::vector<std::pair<Edge, Statistics>> edges;
    for (const Edge &edge : opened.graph.edges) {
        if (edge.site != "attn_in" && edge.site != "mlp_in")
            continue;
        const DumpEdge *dumpEdge = opened.dump->info().findEdge(edge.id);
        if (!dumpEdge)
            continue;
        const auto rows = rowsOfPart(parts.split, opened.dump->info().tokens, *dumpEdge, Part::Calibration);
        auto statistics = computeStatistics(*opened.dump, *dumpEdge, rows, StatisticsRequest{.tau = threshold}, stop);
        if (!statistics)
            return tl::make_unexpected(statistics.error());
        edges.emplace_back(edge, std::move(*statistics));
    }
    if (edges.empty())
        return refusal(parts.edge.id.value, "the dump has no attn_in or mlp_in edges", "all layers' edges for select=systematic",
                       "systematic");
    std::vector<std::int64_t> channels;
    for (const SystematicDimension &dimension : systematicDimensions(edges, threshold, layerFraction, positionFraction))
        channels.push_back(dimension.channel);
    return channels;
}

} // namespace planish
