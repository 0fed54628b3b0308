// Equivalence first: does the transformed pair compute the same function? Measured in double before any quantizer. plan.md thresholds.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/io/error.h"
#include "core/io/file_structure.h"
#include "core/transform/rewrite.h"
#include "kernels/backend.h"

namespace planish {

struct Equivalence {
    double relativeFrobenius = 0, maxAbs = 0, maxRel = 0, floor = 0; ///< maximum over consumers; includes bias
    bool passed = false;
    double threshold = 0;
    std::int64_t rows = 0;
    std::string storedDtype;                 ///< "float16"
    double storedRelativeFrobenius = 0;      ///< W', b' rounded once to that type
    bool storedPassed = true;
    double storedThreshold = 0;
    std::string worstConsumer;
};

/// One consumer as the gate sees it: original and transformed, biases or null.
struct EquivalencePair {
    std::string name;
    const MatrixD *weight = nullptr, *transformed = nullptr;
    const MatrixD *bias = nullptr, *transformedBias = nullptr; ///< [1,N]
    StoredType storedType = StoredType::F16;
    bool exemptConstantRow = false; ///< k_proj without bias behind a shift (whisper): a constant row may differ
};

/// Y' = X' W'^T + b' against Y = X W^T + b in double on at most 256 rows. kappa is that of the non-diagonal part.
Expected<Equivalence> measureEquivalence(const Backend &backend, ConstViewD x, ConstViewD xPrime,
                                         const std::vector<EquivalencePair> &pairs, double kappaNonDiagonal);

/// Thresholds of plan.md by dtype ("float64", "float32", "float16", "bfloat16").
double equivalenceThreshold(StoredType type, double kappa);

/// Rounds once to the stored type and back (RNE).
double roundToStored(double value, StoredType type);

} // namespace planish
