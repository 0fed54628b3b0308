#include <bit>

#include "core/plan/hashes.h"
#include "core/plan/manifest_operators.h"

namespace planish {

namespace {

using Json = nlohmann::ordered_json;

bool isTranspose(const MatrixD &a, const MatrixD &b)
{
    if (a.rows() != b.cols() || a.cols() != b.rows())
        return false;
    for (std::size_t i = 0; i < a.rows(); ++i) {
        for (std::size_t j = 0; j < a.cols(); ++j) {
            if (a(i, j) != b(j, i))
                return false;
        }
    }
    return true;
}

std::vector<double> stacked(const std::vector<MatrixD> &blocks)
{
    std::vector<double> values;
    for (const MatrixD &block : blocks)
        values.insert(values.end(), block.values().begin(), block.values().end());
    return values;
}

Json operatorJson(const Operator &op, const std::string &key, SideTensors &side);

Json toEntry(const IdentityOp &op, const std::string &, SideTensors &)
{
    return {{"kind", "identity"}, {"order", op.order}};
}

Json toEntry(const ScaleOp &op, const std::string &key, SideTensors &side)
{
    return {{"kind", "scale"}, {"applied_as", "divide"}, {"tensor", side.add(key + ".s", op.divisor, {op.divisor.size()})}};
}

Json toEntry(const PermuteOp &op, const std::string &key, SideTensors &side)
{
    return {{"kind", "permute"}, {"tensor", side.add(key + ".perm", op.perm, {op.perm.size()})}};
}

Json toEntry(const HadamardOp &op, const std::string &key, SideTensors &side)
{
    Json entry = {{"kind", "hadamard"}, {"order", op.order}, {"sylvester", op.sylvester}, {"construction", op.construction},
                  {"block", op.block}, {"channels", op.channels}};
    if (op.inverse)
        entry["inverse"] = true;
    if (!op.signs.empty())
        entry["signs"] = side.add(key + ".signs", std::span<const std::int8_t>(op.signs), {op.signs.size()});
    if (!op.table.empty())
        entry["table"] = side.add(key + ".table", op.table.values(), {op.table.rows(), op.table.cols()});
    const MatrixHashes hashes = hadamardHashes(op);
    entry["matrix_sha256"] = hashes.matrix;
    entry["inverse_sha256"] = hashes.inverse;
    return entry;
}

Json toEntry(const BlockDenseOp &op, const std::string &key, SideTensors &side)
{
    Json entry = {{"kind", "block_dense"}, {"block", op.block}};
    entry["tensor"] = side.add(key + ".blocks", stacked(op.blocks), {op.blocks.size(), op.block, op.block});
    const std::vector<std::int64_t> assignment(op.assignment.begin(), op.assignment.end());
    entry["assignment"] = side.add(key + ".assignment", std::span<const std::int64_t>(assignment), {assignment.size()});
    entry["orthogonal"] = op.orthogonal;
    bool transposes = op.orthogonal;
    for (std::size_t i = 0; transposes && i < op.blocks.size(); ++i)
        transposes = i < op.inverses.size() && isTranspose(op.blocks[i], op.inverses[i]);
    if (!transposes)
        entry["inverse"] = side.add(key + ".inverses", stacked(op.inverses), {op.inverses.size(), op.block, op.block});
    return entry;
}

Json toEntry(const KroneckerOp &op, const std::string &key, SideTensors &side)
{
    Json factors = Json::array();
    factors.push_back(operatorJson(*op.first, key + ".first", side));
    factors.push_back(operatorJson(*op.second, key + ".second", side));
    return {{"kind", "kronecker"}, {"factors", std::move(factors)}, {"reshape", "row-major"}};
}

Json toEntry(const DenseOp &op, const std::string &key, SideTensors &side)
{
    Json entry = {{"kind", "dense"}, {"tensor", side.add(key + ".matrix", op.matrix)}, {"orthogonal", op.orthogonal}};
    if (!op.orthogonal || !isTranspose(op.matrix, op.inverse))
        entry["inverse"] = side.add(key + ".inverse", op.inverse);
    return entry;
}

Json operatorJson(const Operator &op, const std::string &key, SideTensors &side)
{
    return std::visit([&](const auto &value) { return toEntry(value, key, side); }, op.value);
}

} // namespace

nlohmann::ordered_json transformJson(const Transform &transform, const std::string &key, SideTensors &side)
{
    Json list = Json::array();
    if (!transform.shift.empty())
        list.push_back({{"kind", "shift"}, {"tensor", side.add(key + ".c", transform.shift, {transform.shift.size()})}});
    for (const Operator &op : transform.operators)
        list.push_back(operatorJson(op, key, side));
    return list;
}

MatrixHashes hadamardHashes(const HadamardOp &op)
{
    // x -> A Z S flattened, so P[(a,b),(i,j)] = A[i,a] S[b,j]; the inverse operator holds the transpose.
    Sha256 forward, backward;
    std::vector<std::byte> row(op.block), column(op.block);
    const std::size_t m = std::max<std::size_t>(op.order, 1), p = std::max<std::size_t>(op.sylvester, 1);
    auto table = [&op](std::size_t i, std::size_t a) { return op.table.empty() ? std::int8_t(1) : op.table(i, a); };
    for (std::size_t r = 0; r < op.block && m * p == op.block; ++r) {
        for (std::size_t i = 0; i < m; ++i) {
            const std::int8_t down = table(i, r / p), across = table(r / p, i);
            for (std::size_t j = 0; j < p; ++j) {
                const bool odd = std::popcount((r % p) & j) & 1;
                row[i * p + j] = static_cast<std::byte>(odd ? -down : down);
                column[i * p + j] = static_cast<std::byte>(odd ? -across : across);
            }
        }
        forward.add(std::span<const std::byte>(row));
        backward.add(std::span<const std::byte>(column));
    }
    MatrixHashes hashes{forward.hex(), backward.hex()};
    if (op.inverse)
        std::swap(hashes.matrix, hashes.inverse);
    return hashes;
}

} // namespace planish
