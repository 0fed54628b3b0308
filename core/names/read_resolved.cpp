#include <algorithm>

#include "core/names/resolve_parts.h"

namespace planish {

namespace {

MatrixD transposedOf(const MatrixD &in)
{
    MatrixD out(in.cols(), in.rows());
    for (std::size_t r = 0; r < in.rows(); ++r)
        for (std::size_t c = 0; c < in.cols(); ++c)
            out(c, r) = in(r, c);
    return out;
}

std::vector<std::size_t> rowNumbers(const RowRangeOfTensor &rows)
{
    std::vector<std::size_t> numbers;
    for (std::int64_t r = rows.begin; r < rows.end; ++r)
        if (rows.stride <= 0 || (r - rows.begin) % rows.stride < rows.block)
            numbers.push_back(static_cast<std::size_t>(r));
    return numbers;
}

/// The named rows of a matrix, or the named entries of a vector [1, n].
Expected<MatrixD> pickRows(const MatrixD &all, const RowRangeOfTensor &rows, bool vector, const std::string &where)
{
    const std::vector<std::size_t> numbers = rowNumbers(rows);
    const std::size_t available = vector ? all.cols() : all.rows();
    if (numbers.empty() || numbers.back() >= available)
        return dataError(where, "has " + std::to_string(available) + " rows",
                         "rows [" + std::to_string(rows.begin) + ":" + std::to_string(rows.end) + "] were expected in it");
    MatrixD out(vector ? 1 : numbers.size(), vector ? numbers.size() : all.cols());
    for (std::size_t i = 0; i < numbers.size(); ++i) {
        if (vector)
            out(0, i) = all(0, numbers[i]);
        else
            std::copy(all.row(numbers[i]).begin(), all.row(numbers[i]).end(), out.row(i).begin());
    }
    return out;
}

Expected<MatrixD> readFromDump(const ResolvedTensor &tensor, const Dump &dump)
{
    const auto norm = dump.info().norms.find(tensor.inDump->name.value);
    const auto vector = [](const std::vector<double> &values) {
        MatrixD row(1, values.size());
        std::copy(values.begin(), values.end(), row.data());
        return row;
    };
    if (norm != dump.info().norms.end() && tensor.inDump->path.empty())
        return vector(tensor.name.value.ends_with(".bias") ? norm->second.bias : norm->second.gain);
    return dump.readTensor(*tensor.inDump);
}

} // namespace

Expected<MatrixD> readResolved(const ResolvedTensor &tensor, const Dump *dump, const Checkpoint *checkpoint)
{
    if (tensor.inDump) {
        auto matrix = readFromDump(tensor, *dump);
        if (!matrix || tensor.rows.whole())
            return matrix;
        return pickRows(*matrix, tensor.rows, tensor.shape.size() == 1, tensor.name.value);
    }
    const StoredTensor *found = checkpoint->info().find(tensor.checkpointName);
    if (!found)
        return dataError(tensor.checkpointName, "is not in " + checkpoint->info().path,
                         "the tensor found at opening was expected");
    StoredTensor stored = *found;
    // A stack [experts, rows, channels] reads as [experts * rows, channels]; a stack of biases as one long vector.
    const bool vector = tensor.shape.size() == 1;
    while (stored.shape.size() > (vector ? 1U : 2U)) {
        stored.shape[1] *= stored.shape[0];
        stored.shape.erase(stored.shape.begin());
    }
    auto matrix = checkpoint->readMatrix(stored);
    if (!matrix)
        return matrix;
    if (tensor.transposed)
        *matrix = transposedOf(*matrix);
    if (tensor.rows.whole())
        return matrix;
    return pickRows(*matrix, tensor.rows, vector, tensor.checkpointName);
}

} // namespace planish
