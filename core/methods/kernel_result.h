// Turns a kernel's failure into the program's error with a subject.
#pragma once

#include "core/io/error.h"
#include "kernels/status.h"

namespace planish {

inline Error errorOf(const Status &status, const std::string &subject)
{
    switch (status.code) {
    case StatusCode::Cancelled:
        return {ErrorCode::Cancelled, subject, "cancelled", "no further work was wanted", {}};
    case StatusCode::OutOfMemory:
    case StatusCode::DeviceLost:
        return {ErrorCode::Machine, subject, status.message, "enough memory and a working device", {}};
    case StatusCode::Unsupported:
    case StatusCode::ShapeMismatch:
        break;
    }
    return {ErrorCode::Data, subject, status.message, "finite numbers with a representable scale", {}};
}

template <class T> Expected<T> fromKernel(KernelResult<T> result, const std::string &subject)
{
    if (!result)
        return tl::make_unexpected(errorOf(result.error(), subject));
    return std::move(*result);
}

} // namespace planish
