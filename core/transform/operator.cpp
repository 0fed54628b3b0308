#include "core/transform/operator.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace planish {

namespace {

template <class... Parts> struct Overloaded : Parts... {
    using Parts::operator()...;
};
template <class... Parts> Overloaded(Parts...) -> Overloaded<Parts...>;

MatrixD transposed(const MatrixD &matrix)
{
    MatrixD result(matrix.cols(), matrix.rows());
    for (std::size_t r = 0; r < matrix.rows(); ++r)
        for (std::size_t c = 0; c < matrix.cols(); ++c)
            result(c, r) = matrix(r, c);
    return result;
}

std::vector<MatrixD> transposed(const std::vector<MatrixD> &matrices)
{
    std::vector<MatrixD> result;
    for (const MatrixD &matrix : matrices)
        result.push_back(transposed(matrix));
    return result;
}

Operator wrap(auto value)
{
    return Operator{std::move(value)};
}

PermuteOp inversePermutation(const PermuteOp &op)
{
    PermuteOp inverse{std::vector<std::int64_t>(op.perm.size())};
    for (std::size_t j = 0; j < op.perm.size(); ++j)
        inverse.perm[static_cast<std::size_t>(op.perm[j])] = static_cast<std::int64_t>(j);
    return inverse;
}

Expected<ScaleOp> reciprocal(const ScaleOp &op)
{
    ScaleOp inverse{op.divisor};
    for (std::size_t k = 0; k < op.divisor.size(); ++k) {
        inverse.divisor[k] = 1.0 / op.divisor[k];
        if (op.divisor[k] == 0.0 || !std::isfinite(op.divisor[k]) || !std::isfinite(inverse.divisor[k]))
            return refusal("scale", "the factor of channel " + std::to_string(k) + " is " + std::to_string(op.divisor[k]),
                           "expected finite factors other than 0", "non_finite_factor");
    }
    return inverse;
}

using Mapping = Expected<Operator> (*)(const Operator &);

Expected<Operator> ofFactors(const KroneckerOp &op, Mapping mapping)
{
    const Expected<Operator> first = mapping(*op.first);
    if (!first)
        return first;
    const Expected<Operator> second = mapping(*op.second);
    if (!second)
        return second;
    return wrap(KroneckerOp{std::make_shared<const Operator>(*first), std::make_shared<const Operator>(*second)});
}

/// Entry of A^T (x) S before signs, normalisation and inversion: row i, column j of the block.
double hadamardEntry(const HadamardOp &op, std::size_t i, std::size_t j)
{
    const std::size_t width = op.sylvester;
    const int sylvester = (__builtin_popcountll((i % width) & (j % width)) & 1) != 0 ? -1 : 1;
    return op.table.empty() ? sylvester : sylvester * op.table(j / width, i / width);
}

MatrixD denseHadamard(const HadamardOp &op)
{
    MatrixD p(op.channels, op.channels);
    const double norm = 1.0 / std::sqrt(static_cast<double>(op.block));
    for (std::size_t i = 0; i < op.channels; ++i)
        for (std::size_t j = i / op.block * op.block; j < (i / op.block + 1) * op.block; ++j) {
            const double sign = op.signs.empty() ? 1.0 : op.signs[i];
            const double entry = sign * norm * hadamardEntry(op, i % op.block, j % op.block);
            (op.inverse ? p(j, i) : p(i, j)) = entry;
        }
    return p;
}

MatrixD denseBlocks(const BlockDenseOp &op)
{
    const std::size_t channels = op.block * op.assignment.size();
    MatrixD p(channels, channels);
    for (std::size_t b = 0; b < op.assignment.size(); ++b) {
        const MatrixD &block = op.blocks[static_cast<std::size_t>(op.assignment[b])];
        for (std::size_t i = 0; i < op.block; ++i)
            for (std::size_t j = 0; j < op.block; ++j)
                p(b * op.block + i, b * op.block + j) = block(i, j);
    }
    return p;
}

MatrixD denseKronecker(const KroneckerOp &op)
{
    const MatrixD a = denseOf(*op.first), b = denseOf(*op.second);
    MatrixD p(a.rows() * b.rows(), a.cols() * b.cols());
    for (std::size_t i = 0; i < p.rows(); ++i)
        for (std::size_t j = 0; j < p.cols(); ++j)
            p(i, j) = a(i / b.rows(), j / b.cols()) * b(i % b.rows(), j % b.cols());
    return p;
}

} // namespace

bool KroneckerOp::operator==(const KroneckerOp &other) const
{
    return *first == *other.first && *second == *other.second;
}

std::size_t channelsOf(const Operator &op)
{
    return std::visit(Overloaded{[](const IdentityOp &o) { return o.order; }, [](const ScaleOp &o) { return o.divisor.size(); },
                                 [](const PermuteOp &o) { return o.perm.size(); }, [](const HadamardOp &o) { return o.channels; },
                                 [](const BlockDenseOp &o) { return o.block * o.assignment.size(); },
                                 [](const KroneckerOp &o) { return channelsOf(*o.first) * channelsOf(*o.second); },
                                 [](const DenseOp &o) { return o.matrix.rows(); }},
                      op.value);
}

bool isDiagonal(const Operator &op)
{
    return std::holds_alternative<IdentityOp>(op.value) || std::holds_alternative<ScaleOp>(op.value);
}

bool isOrthogonal(const Operator &op)
{
    return std::visit(
        Overloaded{[](const IdentityOp &) { return true; },
                   [](const ScaleOp &o) { return std::ranges::all_of(o.divisor, [](double s) { return std::abs(s) == 1.0; }); },
                   [](const PermuteOp &) { return true; }, [](const HadamardOp &) { return true; },
                   [](const BlockDenseOp &o) { return o.orthogonal; },
                   [](const KroneckerOp &o) { return isOrthogonal(*o.first) && isOrthogonal(*o.second); },
                   [](const DenseOp &o) { return o.orthogonal; }},
        op.value);
}

std::string nameOf(const Operator &op)
{
    const auto number = [](std::size_t n) { return std::to_string(n); };
    return std::visit(
        Overloaded{[&](const IdentityOp &o) { return "identity " + number(o.order); },
                   [](const ScaleOp &) { return std::string("scale"); }, [](const PermuteOp &) { return std::string("permute"); },
                   [&](const HadamardOp &o) {
                       const std::string shape = o.order > 1 ? number(o.order) + "x" + number(o.sylvester) : number(o.block);
                       return (o.block < o.channels ? "block hadamard " : "hadamard ") + shape;
                   },
                   [&](const BlockDenseOp &o) { return (o.orthogonal ? "block rotation " : "block matrix ") + number(o.block); },
                   [&](const KroneckerOp &o) {
                       return "kronecker " + number(channelsOf(*o.first)) + "x" + number(channelsOf(*o.second));
                   },
                   [&](const DenseOp &o) { return (o.orthogonal ? "rotation " : "matrix ") + number(o.matrix.rows()); }},
        op.value);
}

Expected<Operator> inverseOf(const Operator &op)
{
    return std::visit(
        Overloaded{[](const IdentityOp &o) -> Expected<Operator> { return wrap(o); },
                   [](const ScaleOp &o) -> Expected<Operator> { return reciprocal(o).map([](ScaleOp s) { return wrap(s); }); },
                   [](const PermuteOp &o) -> Expected<Operator> { return wrap(inversePermutation(o)); },
                   [](HadamardOp o) -> Expected<Operator> {
                       o.inverse = !o.inverse;
                       return wrap(std::move(o));
                   },
                   [](BlockDenseOp o) -> Expected<Operator> {
                       std::swap(o.blocks, o.inverses);
                       return wrap(std::move(o));
                   },
                   [](const KroneckerOp &o) -> Expected<Operator> { return ofFactors(o, &inverseOf); },
                   [](DenseOp o) -> Expected<Operator> {
                       std::swap(o.matrix, o.inverse);
                       return wrap(std::move(o));
                   }},
        op.value);
}

Expected<Operator> inverseTransposeOf(const Operator &op)
{
    return std::visit(
        Overloaded{
            [](const ScaleOp &o) -> Expected<Operator> { return reciprocal(o).map([](ScaleOp s) { return wrap(s); }); },
            [](const BlockDenseOp &o) -> Expected<Operator> {
                return wrap(BlockDenseOp{o.block, transposed(o.inverses), transposed(o.blocks), o.assignment, o.orthogonal});
            },
            [](const KroneckerOp &o) -> Expected<Operator> { return ofFactors(o, &inverseTransposeOf); },
            [](const DenseOp &o) -> Expected<Operator> {
                return wrap(DenseOp{transposed(o.inverse), transposed(o.matrix), o.orthogonal});
            },
            // identity, permutation and Hadamard are orthogonal: P^-T = P
            [](const auto &o) -> Expected<Operator> { return wrap(o); }},
        op.value);
}

MatrixD denseOf(const Operator &op)
{
    return std::visit(
        Overloaded{[](const IdentityOp &o) {
                       MatrixD p(o.order, o.order);
                       for (std::size_t k = 0; k < o.order; ++k)
                           p(k, k) = 1.0;
                       return p;
                   },
                   [](const ScaleOp &o) {
                       MatrixD p(o.divisor.size(), o.divisor.size());
                       for (std::size_t k = 0; k < o.divisor.size(); ++k)
                           p(k, k) = 1.0 / o.divisor[k];
                       return p;
                   },
                   [](const PermuteOp &o) {
                       MatrixD p(o.perm.size(), o.perm.size());
                       for (std::size_t j = 0; j < o.perm.size(); ++j)
                           p(static_cast<std::size_t>(o.perm[j]), j) = 1.0;
                       return p;
                   },
                   [](const HadamardOp &o) { return denseHadamard(o); }, [](const BlockDenseOp &o) { return denseBlocks(o); },
                   [](const KroneckerOp &o) { return denseKronecker(o); }, [](const DenseOp &o) { return o.matrix; }},
        op.value);
}

} // namespace planish
