#include "core/plan/verify_edge.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "core/methods/kernel_result.h"
#include "core/plan/fold.h"
#include "core/plan/fold_map.h"

namespace planish {

namespace {

/// One consumer as stored before and after, `before` with the rows other edges fold.
struct ConsumerPair {
    std::string name;
    MatrixD before, beforeBias, after, afterBias;
    StoredType type = StoredType::F16;
    bool constantRowFree = false; ///< whisper's k_proj without a bias behind a shift
};

MatrixD takeRows(MatrixD matrix, const RowRangeOf &rows)
{
    if (rows.end < 0)
        return matrix;
    MatrixD part(static_cast<std::size_t>(rows.end - rows.begin), matrix.cols());
    std::copy_n(matrix.data() + static_cast<std::size_t>(rows.begin) * matrix.cols(), part.size(), part.data());
    return part;
}

Expected<std::pair<MatrixD, MatrixD>> readLinear(const ResolvedWeights &weights, const NamedRows &rows)
{
    auto weight = weights.read({rows.name});
    if (!weight)
        return tl::make_unexpected(weight.error());
    MatrixD bias(weight->rows(), 1);
    if (const std::string name = weights.biasOf(rows.name); !name.empty()) {
        auto values = weights.read({name});
        if (!values)
            return tl::make_unexpected(values.error());
        std::copy_n(values->data(), std::min(values->size(), bias.size()), bias.data());
    }
    MatrixD part = takeRows(std::move(bias), rows.rows);
    MatrixD row(1, part.rows());
    std::copy_n(part.data(), part.size(), row.data());
    return std::pair(takeRows(std::move(*weight), rows.rows), std::move(row));
}

Expected<std::vector<ConsumerPair>> loadPairs(const VerifyContext &context, const Assignment &assignment)
{
    std::vector<ConsumerPair> pairs;
    const bool shifted = assignment.rewrite && !assignment.rewrite->input.shift.empty();
    for (const std::string &text : assignment.consumers) {
        const NamedRows rows = namedRows(text);
        auto before = readLinear(*context.in, rows);
        if (!before)
            return tl::make_unexpected(before.error());
        auto after = readLinear(*context.out, rows);
        if (!after)
            return tl::make_unexpected(after.error());
        ConsumerPair pair{text, std::move(before->first), std::move(before->second), std::move(after->first), std::move(after->second),
                          context.out->find({rows.name})->storedType, false};
        if (pair.before.rows() != pair.after.rows() || pair.before.cols() != pair.after.cols())
            return dataError(text, "has another shape in the transformed checkpoint", "expected the shape of the original");
        const NamedRows place = canonicalRows(*context.in, rows);
        auto folded = foldRowsOf(place.name, place.rows.begin, pair.before, &pair.beforeBias, context.folds, context.plan->source.modelInfo);
        if (!folded)
            return tl::make_unexpected(folded.error());
        for (const Assignment &other : context.plan->assignments) {
            if (other.rewrite)
                addSummandShifts(*other.rewrite, rows.name, pair.beforeBias);
        }
        const Family *family = context.in->family().get();
        const std::string role = rows.name.substr(rows.name.rfind('.') + 1);
        const bool biasFree = family && std::find(family->biasFree.begin(), family->biasFree.end(), role) != family->biasFree.end();
        pair.constantRowFree = shifted && biasFree && context.out->biasOf(rows.name).empty();
        pairs.push_back(std::move(pair));
    }
    return pairs;
}

/// X' = (X - beta) gamma'/gamma + beta' of the stored norms; nullopt when the producer is no norm of the checkpoints.
Expected<std::optional<MatrixD>> behindNorm(const VerifyContext &context, const Assignment &assignment, const MatrixD &x)
{
    if (assignment.producerKind != "rmsnorm" && assignment.producerKind != "layernorm")
        return std::optional<MatrixD>();
    auto before = context.in->norm({assignment.producerName});
    if (!before)
        return tl::make_unexpected(before.error());
    auto after = context.out->norm({assignment.producerName});
    if (!after)
        return tl::make_unexpected(after.error());
    if (!*before || !*after || (*before)->gain.size() != x.cols() || (*after)->gain.size() != x.cols())
        return std::optional<MatrixD>();
    const double offset = assignment.producerOffset ? 1.0 : (*before)->offset;
    MatrixD prime(x.rows(), x.cols());
    for (std::size_t k = 0; k < x.cols(); ++k) {
        const double gain = offset + (*before)->gain[k], gainAfter = offset + (*after)->gain[k];
        const double bias = (*before)->bias.empty() ? 0.0 : (*before)->bias[k], biasAfter = (*after)->bias.empty() ? 0.0 : (*after)->bias[k];
        if (gain == 0.0 && gainAfter != 0.0)
            return refusal(assignment.producerName, "channel " + std::to_string(k) + " has gain 0 before and not after",
                           "expected the pre-norm rows, which no dump holds", "equivalence_not_measured");
        const double factor = gain == gainAfter ? 1.0 : gainAfter / gain;
        for (std::size_t m = 0; m < x.rows(); ++m)
            prime(m, k) = gain == 0.0 ? biasAfter : (x(m, k) - bias) * factor + biasAfter;
    }
    return std::optional<MatrixD>(std::move(prime));
}

/// X' in front of the consumers: producer as stored, then the online operators of the plan.
Expected<MatrixD> primeOf(const VerifyContext &context, const Assignment &assignment, const MatrixD &x)
{
    const Transform prefix = fusedPrefix(assignment);
    Transform online;
    online.operators = assignment.placement.online;
    if (assignment.rewrite && !assignment.placement.shiftFused)
        online.shift = assignment.rewrite->input.shift;
    auto norm = behindNorm(context, assignment, x);
    if (!norm)
        return tl::make_unexpected(norm.error());
    MatrixD prime = *norm ? std::move(**norm) : prefix.isIdentity() ? x : applyToActivations(prefix, x.view());
    return online.isIdentity() ? prime : applyToActivations(online, prime.view());
}

Expected<MatrixD> product(const VerifyContext &context, const std::string &subject, const MatrixD &x, const MatrixD &w)
{
    auto a = fromKernel(context.backend->upload(x.view()), subject);
    if (!a)
        return tl::make_unexpected(a.error());
    auto b = fromKernel(context.backend->upload(w.view()), subject);
    if (!b)
        return tl::make_unexpected(b.error());
    auto y = fromKernel(context.backend->product(**a, **b), subject);
    if (!y)
        return tl::make_unexpected(y.error());
    return fromKernel(context.backend->download(**y), subject);
}

/// W' with its low-rank branch back in, as the running model computes it.
MatrixD withLowRank(const Rewrite &rewrite, std::size_t consumer, std::size_t firstRow, MatrixD weight)
{
    if (!rewrite.lowRank)
        return weight;
    const LowRank &branch = *rewrite.lowRank;
    const std::size_t index = branch.stacked ? 0 : consumer, offset = branch.stacked ? firstRow : 0;
    for (std::size_t n = 0; index < branch.left.size() && n < weight.rows(); ++n) {
        for (std::size_t r = 0; r < branch.rank; ++r) {
            const double factor = branch.left[index](offset + n, r);
            for (std::size_t k = 0; k < weight.cols(); ++k)
                weight(n, k) += factor * branch.right[index](r, k);
        }
    }
    return weight;
}

/// Relative Frobenius of Y' + b' against Y + b; a constant row is taken out where softmax does not see it.
double distance(const MatrixD &y, const MatrixD &yPrime, const ConsumerPair &pair)
{
    double error = 0, reference = 0;
    for (std::size_t n = 0; n < y.cols(); ++n) {
        double mean = 0;
        for (std::size_t m = 0; pair.constantRowFree && m < y.rows(); ++m)
            mean += (yPrime(m, n) - y(m, n)) / static_cast<double>(y.rows());
        for (std::size_t m = 0; m < y.rows(); ++m) {
            const double expected = y(m, n) + pair.beforeBias(0, n);
            const double actual = yPrime(m, n) + (pair.constantRowFree ? pair.beforeBias(0, n) - mean : pair.afterBias(0, n));
            error += (actual - expected) * (actual - expected);
            reference += expected * expected;
        }
    }
    return reference > 0 ? std::sqrt(error / reference) : error > 0 ? 1.0 : 0.0;
}

Edge edgeFor(const Assignment &assignment, const DumpEdge &dumpEdge)
{
    Edge edge;
    edge.id = assignment.edge;
    edge.layer = dumpEdge.layer;
    edge.site = dumpEdge.site;
    edge.channels = dumpEdge.channels;
    edge.rows = dumpEdge.rows;
    edge.producer = UnknownProducer{assignment.producerName};
    for (const std::string &text : assignment.consumers) {
        const NamedRows rows = namedRows(text);
        Consumer consumer;
        consumer.tensor.value = rows.name;
        consumer.rows = rows.rows;
        consumer.role = rows.name.substr(rows.name.rfind('.') + 1);
        edge.consumers.push_back(std::move(consumer));
    }
    return edge;
}

/// Output error of these rows and weights under a Rewrite, as an evaluation sees it.
Expected<std::optional<OutputBlock>> quantizedError(const VerifyContext &context, const Assignment &assignment, const DumpEdge &dumpEdge,
                                                    const VerifyRows &rows, MatrixD x, MatrixD calibration, std::vector<MatrixD> weights,
                                                    const Rewrite &rewrite, std::stop_token stop)
{
    EdgeParts parts;
    parts.dump = context.dump;
    parts.weights = context.in;
    parts.backend = context.backend;
    parts.edge = edgeFor(assignment, dumpEdge);
    parts.dumpEdge = dumpEdge;
    parts.split = context.split;
    parts.calibration = CalibrationRows(rows.calibration.rows(), rows.calibration.units(), rows.calibration.requests(),
                                        std::make_shared<const MatrixD>(std::move(calibration)), rows.calibration.available());
    parts.heldOut = HeldOutRows(rows.scored.rows(), rows.scored.units(), rows.scored.requests(), std::make_shared<const MatrixD>(std::move(x)),
                                rows.scored.available());
    for (std::size_t i = 0; i < weights.size(); ++i) {
        parts.consumers.push_back({parts.edge.consumers[i], std::make_shared<const MatrixD>(std::move(weights[i])), nullptr});
        parts.consumerNames.push_back(assignment.consumers[i]);
        parts.storedTypes.push_back(StoredType::F64);
    }
    auto product = makeProductRows(parts.backend, parts.edge.id.value, parts.heldOut.sharedX(), parts.heldOut.requests(), parts.calibration.sharedX(),
                                   parts.consumers);
    if (!product)
        return tl::make_unexpected(product.error());
    parts.heldOutProduct = std::move(*product);
    Opened opened;
    opened.dump = context.dump;
    opened.weights = context.in;
    opened.graph.family = context.in->family();
    opened.graph.model = context.plan->source.modelInfo;
    opened.families = context.families;
    const EdgeData data(std::move(parts));
    auto evaluation = evaluateRewrite(opened, data, assignment.candidate, rewrite, EvaluateOptions{}, stop);
    if (!evaluation)
        return tl::make_unexpected(evaluation.error());
    return evaluation->output;
}

/// What still acts behind the stored tensors: exceptions, clips, low rank.
Rewrite behindTensors(const Assignment &assignment)
{
    Rewrite rest;
    if (!assignment.rewrite)
        return rest;
    rest.exceptions = assignment.rewrite->exceptions;
    rest.clips = assignment.rewrite->clips;
    rest.lowRank = assignment.rewrite->lowRank;
    rest.specs = assignment.rewrite->specs;
    rest.changesFunction = assignment.rewrite->changesFunction;
    return rest;
}

Expected<MatrixD> rowsOfX(const VerifyContext &context, const Assignment &assignment, const MatrixD &x, VerifyEdge &edge)
{
    auto prime = primeOf(context, assignment, x);
    if (prime)
        return prime;
    edge.reason = prime.error().subject + ": " + prime.error().what;
    return prime;
}

/// Step 4: the worst consumer's distance against the threshold of the storage type.
Expected<void> measure(const VerifyContext &context, const Assignment &assignment, const MatrixD &x, const MatrixD &prime,
                       const std::vector<ConsumerPair> &pairs, const std::vector<MatrixD> &running, VerifyEdge &edge)
{
    std::string worst;
    for (std::size_t i = 0; i < pairs.size(); ++i) {
        auto y = product(context, edge.edge.value, x, pairs[i].before);
        if (!y)
            return tl::make_unexpected(y.error());
        auto yPrime = product(context, edge.edge.value, prime, running[i]);
        if (!yPrime)
            return tl::make_unexpected(yPrime.error());
        const double relative = distance(*y, *yPrime, pairs[i]);
        edge.threshold = std::max(edge.threshold, equivalenceThreshold(pairs[i].type, assignment.conditioning.kappaNonDiagonal));
        if (worst.empty() || !(relative <= edge.storedRelativeFrobenius)) {
            edge.storedRelativeFrobenius = relative;
            worst = pairs[i].name;
        }
    }
    // A method that changes the function is held to what the plan says it changes.
    if (assignment.functionChange)
        edge.threshold = std::max(edge.threshold, 2.0 * *assignment.functionChange);
    edge.passed = edge.storedRelativeFrobenius <= edge.threshold;
    if (!edge.passed) {
        char text[160];
        std::snprintf(text, sizeof text, "%s deviates by %.3g relative Frobenius (at most %.3g)", worst.c_str(), edge.storedRelativeFrobenius,
                      edge.threshold);
        edge.reason = text;
    }
    return {};
}

} // namespace

Expected<VerifyRows> loadVerifyRows(const VerifyContext &context, const DumpEdge &edge)
{
    VerifyRows rows;
    const std::int64_t budget = context.plan->calibration.request.budget;
    if (context.allRows) {
        auto all = loadRows<Part::All>(*context.dump, edge, context.split, -1);
        if (!all)
            return tl::make_unexpected(all.error());
        rows.calibration = CalibrationRows(all->rows(), all->units(), all->requests(), all->sharedX(), all->available());
        rows.scored = SealedRows(all->rows(), all->units(), all->requests(), all->sharedX(), all->available());
        return rows;
    }
    auto calibration = loadRows<Part::Calibration>(*context.dump, edge, context.split, budget);
    if (!calibration)
        return tl::make_unexpected(calibration.error());
    auto sealed = loadRows<Part::Sealed>(*context.dump, edge, context.split, budget);
    if (!sealed)
        return tl::make_unexpected(sealed.error());
    rows.calibration = std::move(*calibration);
    rows.scored = std::move(*sealed);
    return rows;
}

Expected<VerifyEdge> verifyEdge(const VerifyContext &context, const Assignment &assignment, const DumpEdge &dumpEdge, const VerifyRows &rows,
                                std::stop_token stop)
{
    VerifyEdge edge;
    edge.edge = assignment.edge;
    edge.promised = assignment.equivalence ? assignment.equivalence->storedRelativeFrobenius : 0.0;
    if (rows.scored.size() == 0) {
        edge.reason = "no rows of this edge to verify on";
        return edge;
    }
    auto pairs = loadPairs(context, assignment);
    if (!pairs) {
        if (pairs.error().code == ErrorCode::Machine || pairs.error().code == ErrorCode::Cancelled)
            return tl::make_unexpected(pairs.error());
        edge.reason = pairs.error().subject + ": " + pairs.error().what;
        return edge;
    }
    const MatrixD &x = rows.scored.x();
    auto prime = rowsOfX(context, assignment, x, edge);
    auto calibration = prime ? rowsOfX(context, assignment, rows.calibration.x(), edge) : prime;
    if (!prime || !calibration)
        return edge;
    const Rewrite rest = behindTensors(assignment);
    std::vector<MatrixD> running, before;
    std::size_t firstRow = 0;
    for (std::size_t i = 0; i < pairs->size(); ++i) {
        running.push_back(withLowRank(rest, i, firstRow, (*pairs)[i].after));
        before.push_back((*pairs)[i].before);
        firstRow += (*pairs)[i].after.rows();
    }
    if (auto measured = measure(context, assignment, x, *prime, *pairs, running, edge); !measured)
        return tl::make_unexpected(measured.error());
    auto sealed = quantizedError(context, assignment, dumpEdge, rows, std::move(*prime), std::move(*calibration), std::move(running), rest, stop);
    if (!sealed)
        return tl::make_unexpected(sealed.error());
    edge.sealed = *sealed;
    auto identity = quantizedError(context, assignment, dumpEdge, rows, x, rows.calibration.x(), std::move(before), Rewrite(), stop);
    if (!identity)
        return tl::make_unexpected(identity.error());
    edge.identitySealed = *identity;
    return edge;
}

} // namespace planish
