// Whether the operands of Backend::residual fit each other, checked once for every backend.
#pragma once

#include <string>

#include "kernels/backend.h"

namespace planish {

inline KernelResult<void> checkResidual(const Resident *activationError, const Resident &activation,
                                        const Resident &activationQuantized, const Resident *weightError, const Resident &weight,
                                        const Resident &reference)
{
    const auto isLike = [](const Resident *part, const Resident &whole) {
        return !part || (part->rows() == whole.rows() && part->cols() == whole.cols());
    };
    const bool fits = isLike(activationError, activation) && isLike(&activationQuantized, activation) &&
                      isLike(weightError, weight) && activation.cols() == weight.cols() &&
                      reference.rows() == activation.rows() && reference.cols() == weight.rows();
    if (fits) {
        return {};
    }
    const auto shape = [](const Resident &m) {
        return std::string("[").append(std::to_string(m.rows())).append(", ").append(std::to_string(m.cols())).append("]");
    };
    return tl::make_unexpected(Status{StatusCode::ShapeMismatch, "activation " + shape(activation) + ", weight " + shape(weight) +
                                                                     " and product " + shape(reference) +
                                                                     " do not fit each other"});
}

} // namespace planish
