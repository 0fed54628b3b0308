#include <algorithm>
#include <cmath>
#include <numeric>

#include "core/plan/manifest_operators.h"

namespace planish {

namespace {

// Rows of P P^T that are compared with the identity when a manifest calls a dense factor orthogonal.
constexpr std::size_t kCheckedRows = 64;
constexpr double kOrthogonal = 1e-8;
// Above this block the hash of a Hadamard matrix costs more than reading the plan.
constexpr std::size_t kHashedBlock = 16384;

Operator readOperator(const YamlReader &entry, SideReader &side, NegativeFactors negative);

Operator readScale(const YamlReader &entry, SideReader &side, NegativeFactors negative)
{
    entry.onlyKeys({"kind", "applied_as", "tensor"});
    if (const std::string word = entry["applied_as"].textOr("divide"); word != "divide")
        entry["applied_as"].fail(word + " is not known", "expected divide (X'_k = X_k / s_k)");
    ScaleOp op{side.vector(entry["tensor"])};
    for (std::size_t k = 0; k < op.divisor.size(); ++k) {
        if (op.divisor[k] == 0.0)
            entry["tensor"].fail("the factor of channel " + std::to_string(k) + " is zero", "expected factors that are not 0", "non_finite_factor");
        else if (op.divisor[k] < 0.0 && negative == NegativeFactors::Refused)
            entry["tensor"].fail("the factor of channel " + std::to_string(k) + " is negative", "expected positive factors from this method",
                                 "nonlinearity_between");
    }
    return {op};
}

Operator readPermute(const YamlReader &entry, SideReader &side)
{
    entry.onlyKeys({"kind", "tensor"});
    PermuteOp op{side.integers(entry["tensor"])};
    std::vector<std::uint8_t> seen(op.perm.size());
    for (std::int64_t index : op.perm) {
        if (index < 0 || static_cast<std::size_t>(index) >= seen.size() || seen[static_cast<std::size_t>(index)]++) {
            entry["tensor"].fail("is no permutation", "expected every channel once");
            break;
        }
    }
    return {op};
}

bool isHadamard(const Matrix<std::int8_t> &table)
{
    for (std::size_t i = 0; i < table.rows(); ++i) {
        for (std::size_t j = 0; j < i; ++j) {
            const int dot = std::inner_product(table.row(i).begin(), table.row(i).end(), table.row(j).begin(), 0);
            if (dot != 0)
                return false;
        }
    }
    return true;
}

void checkHadamard(const YamlReader &entry, const HadamardOp &op)
{
    if (op.block == 0 || op.order == 0 || op.sylvester == 0 || op.order > 1024 || op.sylvester > op.block || op.order * op.sylvester != op.block ||
        (op.sylvester & (op.sylvester - 1)) != 0)
        return entry["block"].fail("is not order times a power of two", "expected block = order * sylvester");
    if (op.channels % op.block != 0)
        return entry["block"].fail("does not divide the channels", "expected a block that divides K", "divisibility");
    if (op.order > 1 && (op.table.rows() != op.order || op.table.cols() != op.order))
        return entry["table"].fail("is not order x order", "expected a table of +-1 for an order above 1");
    if (!isHadamard(op.table))
        return entry["table"].fail("is no Hadamard matrix", "expected orthogonal rows of +-1");
    if (!op.signs.empty() && op.signs.size() != op.channels)
        return entry["signs"].fail("has another length than the channels", "expected one sign per channel");
    if (op.block > kHashedBlock || !entry["matrix_sha256"].given())
        return;
    const MatrixHashes hashes = hadamardHashes(op);
    if (entry["matrix_sha256"].node()->text != hashes.matrix)
        entry["matrix_sha256"].fail("hash differs from the matrix described", "expected the hash of order, table and block");
    if (entry["inverse_sha256"].given() && entry["inverse_sha256"].node()->text != hashes.inverse)
        entry["inverse_sha256"].fail("hash differs from the inverse described", "expected the hash of the transposed matrix");
}

Operator readHadamard(const YamlReader &entry, SideReader &side)
{
    entry.onlyKeys({"kind", "order", "sylvester", "construction", "block", "channels", "inverse", "signs", "table", "matrix_sha256", "inverse_sha256"});
    HadamardOp op;
    op.order = entry["order"].unsignedOr(1);
    op.sylvester = entry["sylvester"].unsignedOr(1);
    op.block = entry["block"].unsignedOr(op.order * op.sylvester);
    op.construction = entry["construction"].textOr("sylvester");
    op.inverse = entry["inverse"].booleanOr(false);
    if (entry["signs"].present())
        op.signs = side.bytes(entry["signs"]);
    op.channels = entry["channels"].unsignedOr(op.signs.empty() ? op.block : op.signs.size());
    if (entry["table"].present()) {
        const std::vector<std::int8_t> values = side.bytes(entry["table"]);
        if (values.size() == op.order * op.order) {
            op.table = Matrix<std::int8_t>(op.order, op.order);
            std::copy(values.begin(), values.end(), op.table.data());
        }
    }
    if (!entry.errors().first)
        checkHadamard(entry, op);
    return {op};
}

MatrixD transposed(const MatrixD &matrix)
{
    MatrixD out(matrix.cols(), matrix.rows());
    for (std::size_t i = 0; i < matrix.rows(); ++i) {
        for (std::size_t j = 0; j < matrix.cols(); ++j)
            out(j, i) = matrix(i, j);
    }
    return out;
}

/// P Q = I on some rows, so that a manifest cannot hand out a factor with the inverse of another one.
bool areInverse(const MatrixD &p, const MatrixD &q)
{
    const std::size_t stride = std::max<std::size_t>(1, p.rows() / kCheckedRows);
    std::vector<double> product(p.rows());
    for (std::size_t i = 0; i < p.rows(); i += stride) {
        std::fill(product.begin(), product.end(), 0.0);
        double magnitude = 1.0;
        for (std::size_t k = 0; k < p.cols(); ++k) {
            for (std::size_t j = 0; j < q.cols(); ++j) {
                product[j] += p(i, k) * q(k, j);
                magnitude = std::max(magnitude, std::abs(p(i, k) * q(k, j)));
            }
        }
        product[i] -= 1.0;
        for (double value : product) {
            if (!(std::abs(value) <= kOrthogonal * magnitude))
                return false;
        }
    }
    return true;
}

/// Gauss-Jordan with partial pivoting, for manifests that do not bring an inverse. Empty when singular.
MatrixD inverted(MatrixD a)
{
    const std::size_t n = a.rows();
    MatrixD inverse(n, n);
    for (std::size_t i = 0; i < n; ++i)
        inverse(i, i) = 1.0;
    for (std::size_t column = 0; column < n; ++column) {
        std::size_t pivot = column;
        for (std::size_t r = column + 1; r < n; ++r) {
            if (std::abs(a(r, column)) > std::abs(a(pivot, column)))
                pivot = r;
        }
        if (a(pivot, column) == 0.0)
            return {};
        std::swap_ranges(a.row(column).begin(), a.row(column).end(), a.row(pivot).begin());
        std::swap_ranges(inverse.row(column).begin(), inverse.row(column).end(), inverse.row(pivot).begin());
        const double scale = 1.0 / a(column, column);
        for (std::size_t j = 0; j < n; ++j) {
            a(column, j) *= scale;
            inverse(column, j) *= scale;
        }
        for (std::size_t r = 0; r < n; ++r) {
            const double factor = a(r, column);
            for (std::size_t j = 0; r != column && factor != 0.0 && j < n; ++j) {
                a(r, j) -= factor * a(column, j);
                inverse(r, j) -= factor * inverse(column, j);
            }
        }
    }
    return inverse;
}

/// The inverse of a factor: given, the transpose of an orthogonal one, or computed; checked in every case.
MatrixD inverseFor(const YamlReader &entry, const MatrixD &matrix, const MatrixD &given, bool orthogonal)
{
    if (matrix.rows() != matrix.cols() || matrix.empty()) {
        entry["tensor"].fail("is not square", "expected a square factor");
        return {};
    }
    MatrixD inverse = !given.empty() ? given : orthogonal ? transposed(matrix) : inverted(matrix);
    if (inverse.rows() != matrix.rows() || inverse.cols() != matrix.cols() || !areInverse(matrix, inverse))
        entry.fail(orthogonal && given.empty() ? "is called orthogonal but is not" : "has no inverse that fits", "expected P P^-1 = I", "conditioning");
    return inverse;
}

std::vector<MatrixD> unstacked(const SideReader::Array &array)
{
    std::vector<MatrixD> blocks;
    if (array.shape.size() != 3)
        return blocks;
    const std::size_t size = array.shape[1] * array.shape[2];
    for (std::size_t b = 0; b < array.shape[0]; ++b) {
        MatrixD block(array.shape[1], array.shape[2]);
        std::copy_n(array.values.begin() + static_cast<std::ptrdiff_t>(b * size), size, block.data());
        blocks.push_back(std::move(block));
    }
    return blocks;
}

Operator readBlockDense(const YamlReader &entry, SideReader &side)
{
    entry.onlyKeys({"kind", "block", "tensor", "assignment", "orthogonal", "inverse"});
    BlockDenseOp op;
    op.block = entry["block"].unsignedOr(0);
    op.orthogonal = entry["orthogonal"].booleanOr(false);
    op.blocks = unstacked(side.read(entry["tensor"]));
    const std::vector<MatrixD> inverses = entry["inverse"].present() ? unstacked(side.read(entry["inverse"])) : std::vector<MatrixD>();
    for (std::int64_t index : side.integers(entry["assignment"]))
        op.assignment.push_back(static_cast<std::int32_t>(index));
    if (entry.errors().first)
        return {op};
    if (op.blocks.empty() || op.blocks[0].rows() != op.block || (!inverses.empty() && inverses.size() != op.blocks.size()))
        entry["tensor"].fail("does not hold blocks of this size", "expected shape [d, block, block]");
    for (std::size_t b = 0; b < op.blocks.size() && !entry.errors().first; ++b)
        op.inverses.push_back(inverseFor(entry, op.blocks[b], inverses.empty() ? MatrixD() : inverses[b], op.orthogonal));
    for (std::int32_t index : op.assignment) {
        if (index < 0 || static_cast<std::size_t>(index) >= op.blocks.size()) {
            entry["assignment"].fail("names a block that does not exist", "expected indices below d");
            break;
        }
    }
    return {op};
}

Operator readDense(const YamlReader &entry, SideReader &side)
{
    entry.onlyKeys({"kind", "tensor", "orthogonal", "inverse"});
    DenseOp op;
    op.orthogonal = entry["orthogonal"].booleanOr(false);
    op.matrix = side.matrix(entry["tensor"]);
    const MatrixD given = entry["inverse"].present() ? side.matrix(entry["inverse"]) : MatrixD();
    if (!entry.errors().first)
        op.inverse = inverseFor(entry, op.matrix, given, op.orthogonal);
    return {op};
}

Operator readKronecker(const YamlReader &entry, SideReader &side, NegativeFactors negative)
{
    entry.onlyKeys({"kind", "factors", "reshape"});
    if (const std::string word = entry["reshape"].textOr("row-major"); word != "row-major")
        entry["reshape"].fail(word + " is not known", "expected row-major");
    const std::vector<YamlReader> factors = entry["factors"].items();
    if (factors.size() != 2) {
        entry["factors"].fail("does not hold two operators", "expected two factors");
        return {IdentityOp{}};
    }
    KroneckerOp op;
    op.first = std::make_shared<const Operator>(readOperator(factors[0], side, negative));
    op.second = std::make_shared<const Operator>(readOperator(factors[1], side, negative));
    return {op};
}

Operator readOperator(const YamlReader &entry, SideReader &side, NegativeFactors negative)
{
    const std::string kind = entry["kind"].text();
    if (kind == "scale")
        return readScale(entry, side, negative);
    if (kind == "permute")
        return readPermute(entry, side);
    if (kind == "hadamard")
        return readHadamard(entry, side);
    if (kind == "block_dense")
        return readBlockDense(entry, side);
    if (kind == "kronecker")
        return readKronecker(entry, side, negative);
    if (kind == "dense")
        return readDense(entry, side);
    if (kind == "identity") {
        entry.onlyKeys({"kind", "order"});
        return {IdentityOp{entry["order"].unsignedOr(0)}};
    }
    entry["kind"].fail("unknown operator " + kind, "expected shift, scale, permute, hadamard, block_dense, kronecker, dense or identity");
    return {IdentityOp{}};
}

} // namespace

Transform readTransform(const YamlReader &list, SideReader &side, NegativeFactors negative)
{
    Transform transform;
    std::size_t channels = 0;
    bool first = true;
    for (const YamlReader &entry : list.items()) {
        if (list.errors().first)
            break;
        const YamlReader kind = entry["kind"];
        if (kind.given() && kind.node()->text == "shift") {
            entry.onlyKeys({"kind", "tensor"});
            if (!first)
                entry.fail("a shift stands behind another operator", "expected the shift first");
            transform.shift = side.vector(entry["tensor"]);
            channels = transform.shift.size();
        } else {
            transform.operators.push_back(readOperator(entry, side, negative));
            if (list.errors().first)
                break;
            const std::size_t width = channelsOf(transform.operators.back());
            if (channels && width != channels)
                entry.fail("acts on " + std::to_string(width) + " channels", "expected " + std::to_string(channels) + " like the operators before it");
            channels = width;
        }
        first = false;
    }
    return transform;
}

} // namespace planish
