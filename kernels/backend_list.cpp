#include "kernels/backend_list.h"

#include <dlfcn.h>

#include "kernels/cpu/cpu_backend.h"
#include "kernels/reference/reference_backend.h"

namespace planish {

/// CUDA is a module built by the user; without it the row says what is missing.
static BackendInfo describeCuda()
{
    BackendInfo info{"cuda", "CUDA", false, {}};
    void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
    if (driver) {
        dlclose(driver);
        info.reason = "a CUDA driver is here, but this build has no CUDA module";
    } else {
        info.reason = "no CUDA driver found (libcuda.so.1), and this build has no CUDA module";
    }
    return info;
}

std::vector<BackendInfo> listBackends()
{
    return {cpu::describe(0), describeCuda(), reference::describe()};
}

KernelResult<std::shared_ptr<const Backend>> makeBackend(std::string_view key, int threads)
{
    if (key == "cpu") {
        return cpu::makeCpuBackend(threads);
    }
    if (key == "reference") {
        return reference::makeReferenceBackend();
    }
    if (key == "cuda") {
        return tl::make_unexpected(Status{StatusCode::Unsupported, describeCuda().reason});
    }
    return tl::make_unexpected(
        Status{StatusCode::Unsupported, "unknown backend " + std::string(key) + "; cpu, cuda or reference was expected"});
}

} // namespace planish
