// Objectives of a learned rotation on rows Z = X R: value and Euclidean gradient with respect to R. rotation.md 5.3.
#pragma once

#include <string>

#include "core/methods/dense.h"

namespace planish::learned {

enum class Objective { L4, Lp, Kurtosis, Softmax, Whip, Peak };

struct ObjectiveOptions {
    Objective kind = Objective::L4;
    double p = 4, temperature = 2, beta = 20;
};

/// f(R) of the rows x [M, K]; with `gradient` also d f / d R [K, K]. The rows are used as given (normalise them first).
double objectiveValue(const Dense &x, const Dense &rotation, const ObjectiveOptions &options, Dense *gradient);

/// Rows scaled to norm sqrt(K); zero rows are left out. Symmetric per-row quantizers do not see the scale of a row.
Dense normalisedRows(ConstViewD x);

/// Exact Cayley step on the Stiefel manifold: solves (I + t/2 A) R' = (I - t/2 A) R for A = G R^T - R G^T.
Dense cayleyStep(const Dense &rotation, const Dense &skew, double t);
/// max |R^T R - I|.
double orthogonalityResidual(const Dense &rotation);
/// Q of QR with the sign fix, to return to the manifold.
Dense reorthogonalised(const Dense &rotation);

} // namespace planish::learned
