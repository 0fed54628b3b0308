// Error form of one quantized product in double: E = E_X W'^T + X_q E_W^T and its three terms.
#pragma once

#include "kernels/backend.h"

namespace planish::reference {

/// Borrowed operands of a residual; empty data = exact side.
struct ResidualOperands {
    ConstViewD activationError, activation, activationQuantized; ///< [M,K]
    ConstViewD weightError, weight;                              ///< [N,K]
    ConstViewD reference;                                        ///< [M,N]
};

KernelResult<ResidualSums> residual(const ResidualOperands &operands, TermDetail detail, std::stop_token stop);

} // namespace planish::reference
