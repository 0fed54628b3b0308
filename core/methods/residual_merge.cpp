#include "core/methods/residual_merge.h"

namespace planish {
namespace {

using RowSums = std::vector<double> ResidualSums::*;
constexpr RowSums kRowSums[] = {&ResidualSums::rowError,      &ResidualSums::rowReference, &ResidualSums::rowActivationOnly,
                                &ResidualSums::rowWeightOnly, &ResidualSums::rowCross,     &ResidualSums::rowDot,
                                &ResidualSums::rowEstimate};

void addInto(std::vector<double> &whole, const std::vector<double> &part)
{
    if (whole.size() < part.size())
        whole.resize(part.size());
    for (std::size_t i = 0; i < part.size(); ++i)
        whole[i] += part[i];
}

} // namespace

void appendConsumer(ResidualSums &whole, const ResidualSums &part)
{
    const std::size_t outputs = whole.outputReference.size();
    for (const RowSums sums : kRowSums)
        addInto(whole.*sums, part.*sums);
    if (part.maxAbs > whole.maxAbs || outputs == 0) {
        whole.maxAbs = part.maxAbs;
        whole.maxRow = part.maxRow;
        whole.maxOutput = outputs + part.maxOutput;
    }
    whole.outputError.insert(whole.outputError.end(), part.outputError.begin(), part.outputError.end());
    whole.outputReference.insert(whole.outputReference.end(), part.outputReference.begin(), part.outputReference.end());
}

void scatterRows(ResidualSums &whole, const ResidualSums &part, const std::vector<std::size_t> &rows, std::size_t total)
{
    const bool first = whole.outputReference.empty();
    for (const RowSums sums : kRowSums) {
        const std::vector<double> &source = part.*sums;
        if (source.empty())
            continue;
        (whole.*sums).resize(total);
        for (std::size_t i = 0; i < rows.size(); ++i)
            (whole.*sums)[rows[i]] = source[i];
    }
    addInto(whole.outputError, part.outputError);
    addInto(whole.outputReference, part.outputReference);
    if (part.maxAbs > whole.maxAbs || first) {
        whole.maxAbs = part.maxAbs;
        whole.maxRow = rows.empty() ? 0 : rows[part.maxRow];
        whole.maxOutput = part.maxOutput;
    }
}

} // namespace planish
