// What a Rewrite costs at run time and in storage: flops and bytes per token, launches, weight bits. evaluation.md "Ledger".
#pragma once

#include "core/evaluate/evaluation.h"

namespace planish {

/// Shapes the ledger counts with: outputs of each consumer, channels, exception columns (mean over requests of a dynamic set).
struct LedgerShape {
    std::size_t channels = 0;
    std::vector<std::size_t> outputs;
    double exceptionColumns = 0;
    double tokens = 2048; ///< per call, over which a weight gather is shared
};

Ledger ledgerOf(const Rewrite &rewrite, const Placement &placement, const QuantSpec &weight, const LedgerShape &shape);

/// Flops of one operator on one token (rotation.md 2.7); signs, permutations and normalising count 0.
double onlineFlops(const Operator &op);
/// Bytes of the factors an online operator reads: 2 a number, 4 an index, 1 bit a sign.
double factorBytes(const Operator &op);

} // namespace planish
