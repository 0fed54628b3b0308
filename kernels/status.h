// Failure of a kernel: out of memory, device lost, a shape that does not fit. Kernels know no files, so no subject here.
#pragma once

#include <string>

#include <tl/expected.hpp>

namespace planish {

enum class StatusCode { OutOfMemory, DeviceLost, Unsupported, ShapeMismatch, Cancelled };

struct Status {
    StatusCode code = StatusCode::Unsupported;
    std::string message;
};

template <class T>
using KernelResult = tl::expected<T, Status>;

} // namespace planish
