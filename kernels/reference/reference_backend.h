// The slow backend: double throughout, plain loops, one thread. What the others are compared with (`--backend reference`).
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace planish::reference {

BackendInfo describe();
std::shared_ptr<const Backend> makeReferenceBackend();

} // namespace planish::reference
