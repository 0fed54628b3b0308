#include "core/methods/learned_steps.h"

#include "core/methods/param_rows.h"

namespace planish::learned {

std::vector<LearnedBatch> learnedBatches(const FitInput &input, SearchPart part, const Dense &w)
{
    const MatrixD &rows = part == SearchPart::Fit ? input.calibration.x() : input.fitting.x();
    const Dense x = eigenMatrix(rows);
    const auto wanted = std::size_t(input.params.integer("batch_rows"));
    const std::size_t most = wanted == 0 ? std::max<std::size_t>(rows.rows(), 1) : wanted;
    const std::size_t count = std::max<std::size_t>(1, (rows.rows() + most - 1) / most);
    std::vector<LearnedBatch> batches;
    for (std::size_t b = 0; b < count; ++b) {
        const std::size_t first = b * rows.rows() / count, last = (b + 1) * rows.rows() / count;
        Dense part = x.middleRows(Eigen::Index(first), Eigen::Index(last - first));
        Dense y = part * w.transpose();
        batches.push_back({std::move(part), std::move(y)});
    }
    return batches;
}

std::vector<ParamRow> loopParams()
{
    return {integerParam("batch_rows", 0, 1 << 20, "2048", "rows one step sees, in turn; 0: all"),
            integerParam("validation_every", 1, 10000, "10", "steps between two checks on the inner validation rows"),
            integerParam("patience", 1, 10000, "20", "checks without improvement after which learning stops")};
}

std::vector<ParamRow> withLoopParams(std::vector<ParamRow> rows)
{
    for (ParamRow &row : loopParams())
        rows.push_back(std::move(row));
    return rows;
}

} // namespace planish::learned
