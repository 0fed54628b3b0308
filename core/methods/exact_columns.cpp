#include "core/methods/exact_columns.h"

#include "core/methods/kernel_result.h"
#include "core/transform/equivalence.h"

namespace planish {
Expected<Quantized> roundExactColumns(const Backend &backend, Quantized quantized, const Resident &original,
                                      const ExceptionMask &mask, Precision precision, const std::string &subject)
{
    auto source = fromKernel(backend.download(original), subject);
    auto value = fromKernel(backend.download(*quantized.reconstructed), subject);
    auto error = fromKernel(backend.download(*quantized.error), subject);
    if (!source || !value || !error)
        return tl::make_unexpected(!source ? source.error() : !value ? value.error() : error.error());
    const StoredType type = precision == Precision::Bf16 ? StoredType::Bf16 : StoredType::F16;
    for (std::size_t m = 0; m < source->rows(); ++m) {
        const auto &columns = mask.rowUnit.empty() ? mask.columns : mask.unitColumns[static_cast<std::size_t>(mask.rowUnit[m])];
        for (std::size_t k = 0; k < columns.size(); ++k) {
            if (!columns[k])
                continue;
            (*value)(m, k) = roundToStored((*source)(m, k), type);
            (*error)(m, k) = (*value)(m, k) - (*source)(m, k);
            quantized.counts.squaredError += (*error)(m, k) * (*error)(m, k);
        }
    }
    auto reconstructed = fromKernel(backend.upload(value->view()), subject);
    auto difference = fromKernel(backend.upload(error->view()), subject);
    if (!reconstructed || !difference)
        return tl::make_unexpected(reconstructed ? difference.error() : reconstructed.error());
    quantized.reconstructed = std::move(*reconstructed);
    quantized.error = std::move(*difference);
    return quantized;
}

} // namespace planish
