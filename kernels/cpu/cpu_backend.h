// The fast backend of every machine: matrices in double, error products in float on fixed tiles, TBB over fixed indices.
#pragma once

#include <memory>

#include "kernels/backend.h"

namespace planish::cpu {

BackendInfo describe(int threads);
std::shared_ptr<const Backend> makeCpuBackend(int threads);

} // namespace planish::cpu
