// Error form of one quantized product: float products on fixed tiles, sums in double, E never kept beyond a tile.
#pragma once

#include "kernels/backend.h"
#include "kernels/cpu/workers.h"

namespace planish::cpu {

/// Borrowed operands; data = nullptr is the exact side.
struct ResidualOperands {
    ConstViewF activationError, activation, activationQuantized; ///< [M,K]; the one that is not needed may be empty
    ConstViewF weightError, weight;                              ///< [N,K]
    ConstViewD reference;                                        ///< [M,N]
};

KernelResult<ResidualSums> residual(const ResidualOperands &operands, TermDetail detail, const Workers &workers,
                                    std::stop_token stop);

} // namespace planish::cpu
