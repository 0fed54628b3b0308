#include "core/methods/rotation_parts.h"

#include <algorithm>
#include <cmath>

#include "core/methods/param_rows.h"
#include "core/transform/hadamard_orders.h"
#include "core/transform/random_stream.h"

namespace planish {

namespace {

Expected<Operator> withSubject(Expected<Operator> op, const FitInput &input)
{
    if (op)
        return op;
    Error error = op.error();
    error.subject = input.edge->id.value + ": " + error.subject;
    return tl::make_unexpected(std::move(error));
}

Expected<Operator> withSigns(Expected<Operator> op, const FitInput &input, std::uint64_t seed)
{
    if (!op || !input.params.isWord("signs", "random"))
        return op;
    HadamardOp hadamard = std::get<HadamardOp>(op->value);
    RandomStream stream(seed, "signs" + input.purposeSuffix, input.streamId);
    hadamard.signs = randomSigns(stream, hadamard.channels);
    return Operator{std::move(hadamard)};
}

} // namespace

std::size_t scaleBlock(const QuantSpec &spec)
{
    if (!isBlockFormat(spec.grid.format))
        return 0;
    return spec.grid.format == NumberFormat::NvFp4 ? 16 : 32;
}

Expected<std::size_t> blockOf(const FitInput &input, std::size_t whenAuto)
{
    const std::size_t channels = input.edge->channels;
    const auto asked = std::size_t(input.params.integer("block"));
    if (asked == 0) {
        if (whenAuto != 0)
            return whenAuto;
        const std::size_t own = scaleBlock(input.specs.act);
        return own != 0 && channels % own == 0 ? own : autoBlock(channels);
    }
    if (channels % asked == 0)
        return asked;
    std::string possible;
    for (std::size_t block : possibleBlocks(channels))
        possible += (possible.empty() ? "" : ", ") + std::to_string(block);
    return refusal(input.edge->id.value, "block " + std::to_string(asked) + " does not divide " + std::to_string(channels) + " channels",
                   "one of the blocks " + possible, "divisibility");
}

Expected<Operator> signedBlockHadamard(const FitInput &input, std::size_t block, std::uint64_t seed)
{
    return withSigns(withSubject(blockHadamardFor(input.edge->channels, block), input), input, seed);
}

Expected<Operator> tableHadamard(const FitInput &input)
{
    const std::string table = input.params.word("table");
    const std::size_t channels = input.edge->channels;
    if (table == "quarot")
        return withSubject(hadamardFor(channels, HadamardTable::Quarot), input);
    if (table == "compressed_tensors")
        return withSubject(hadamardFor(channels, HadamardTable::CompressedTensors), input);
    if (table.starts_with("file:"))
        return withSubject(hadamardFor(channels, HadamardTable::File, table.substr(5)), input);
    return withSubject(hadamardFor(channels), input);
}

Expected<Operator> signedFullHadamard(const FitInput &input, std::uint64_t seed)
{
    return withSigns(tableHadamard(input), input, seed);
}

std::vector<std::int64_t> zigzagPermutation(const std::vector<std::int64_t> &order, std::size_t block)
{
    const std::size_t blocks = order.size() / block;
    std::vector<std::vector<std::int64_t>> members(blocks);
    for (std::size_t rank = 0; rank < order.size(); ++rank) {
        const std::size_t round = rank / blocks, position = rank % blocks;
        members[round % 2 == 0 ? position : blocks - 1 - position].push_back(order[rank]);
    }
    std::vector<std::int64_t> permutation;
    for (const auto &each : members)
        permutation.insert(permutation.end(), each.begin(), each.end());
    return permutation;
}

std::vector<double> smoothingFactors(const std::vector<double> &activation, const std::vector<double> &weight, double alpha, std::int64_t &dead)
{
    std::vector<double> factors(activation.size(), 1.0);
    for (std::size_t k = 0; k < factors.size(); ++k) {
        if (activation[k] > 0.0 && weight[k] > 0.0)
            factors[k] = std::pow(activation[k], alpha) / std::pow(weight[k], 1.0 - alpha);
        else
            ++dead;
    }
    return factors;
}

ParamRow blockParam(const std::string &help) { return integerParam("block", 0, 1 << 20, "0", help); }

ParamRow signsParam() { return enumParam("signs", {"random", "none"}, "random signs in front of H, from the seed; none: the bare matrix"); }

ParamRow tableParam()
{
    return enumParam("table", {"planish", "quarot", "compressed_tensors", "file:PATH"}, "which matrix a width gets; tools differ for the same order");
}

MatrixD transposedMatrix(const MatrixD &m)
{
    MatrixD t(m.cols(), m.rows());
    for (std::size_t r = 0; r < m.rows(); ++r)
        for (std::size_t c = 0; c < m.cols(); ++c)
            t(c, r) = m(r, c);
    return t;
}

MatrixD columnsOf(ConstViewD matrix, std::size_t begin, std::size_t count)
{
    MatrixD part(matrix.rows, count);
    for (std::size_t r = 0; r < matrix.rows; ++r)
        std::copy_n(matrix.row(r).data() + begin, count, part.row(r).data());
    return part;
}

MatrixD stackedWeights(const std::vector<ConsumerWeights> &consumers)
{
    std::size_t rows = 0;
    for (const ConsumerWeights &consumer : consumers)
        rows += consumer.weight->rows();
    MatrixD all(rows, consumers.empty() ? 0 : consumers.front().weight->cols());
    double *next = all.data();
    for (const ConsumerWeights &consumer : consumers)
        next = std::copy_n(consumer.weight->data(), consumer.weight->size(), next);
    return all;
}

} // namespace planish
