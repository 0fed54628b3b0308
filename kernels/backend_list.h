// The backends this build knows, with "usable here?" and why not. `reference` and `cpu` always exist; `cuda` is a module loaded at run time.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "kernels/backend.h"

namespace planish {

/// All rows of the table, usable or not (cpu, cuda, reference), in this order.
std::vector<BackendInfo> listBackends();

/// The backend of that key using at most `threads` threads (0 = all); error says why it cannot run here.
KernelResult<std::shared_ptr<const Backend>> makeBackend(std::string_view key, int threads = 0);

} // namespace planish
