// A learned Kronecker transform P1 (x) P2: both sides of an edge through it, its slopes, and factors that stay invertible while they
// learn. rotation.md 6.1, 6.3 and 6.6.
#pragma once

#include "core/methods/adam.h"
#include "core/methods/dense.h"
#include "core/transform/random_stream.h"

namespace planish::learned {

/// One factor [k, k] and its inverse.
struct Factor {
    Dense matrix, inverse;
};

/// flatten(P1^T reshape(x, k1, k2) P2) of every row of x [M, k1 k2].
Dense kroneckerActivations(const Dense &x, const Factor &first, const Factor &second);
/// flatten(P1^-1 reshape(w, k1, k2) P2^-T) of every row of w [N, k1 k2].
Dense kroneckerWeights(const Dense &w, const Factor &first, const Factor &second);

struct KroneckerSlopes {
    Dense first, second; ///< to P1 and P2, through their inverses too
    Dense toX, toW;      ///< to the rows that went in
};

/// Slopes of a loss with slopes `toX` to the transformed x and `toW` to the transformed w.
KroneckerSlopes kroneckerSlopes(const Dense &x, const Dense &w, const Factor &first, const Factor &second, const Dense &toX, const Dense &toW);

/// An orthogonal matrix that follows Adam along the manifold: moments of the skew slope A = G R^T - R G^T, then a Cayley step (5.2).
class RotationAdam {
public:
    explicit RotationAdam(Eigen::Index order) : m_adam(std::size_t(order * order)) {}
    void step(Dense &rotation, const Dense &slope, double rate);

private:
    Adam m_adam;
};

enum class FactorForm { Svd, Direct };

/// One factor while it learns. Svd: U diag(e^r) V^T with U and V rotations; direct: every entry free, inverse by LU.
class LearnedFactor {
public:
    /// Svd starts from two Haar rotations and r = 0, direct from one Haar rotation.
    LearnedFactor(FactorForm form, std::size_t order, RandomStream &stream);

    const Factor &factor() const { return m_factor; }
    /// False when the step would leave no finite inverse; the factor then stays as it was.
    bool step(const Dense &slope, double rate);
    /// ln of the singular values.
    std::vector<double> logSingular() const;
    /// Draws ln of the singular values towards their middle by `ratio` <= 1, and into |r| <= ln 100.
    void contract(double ratio);
    /// max |U^T U - I|, |V^T V - I|; of P P^-1 - I for the direct form.
    double residual() const;
    /// Turns drifted rotations back to the manifold.
    void tidy();

private:
    void compose();

    FactorForm m_form;
    Factor m_factor;
    Dense m_u, m_v;
    std::vector<double> m_log;
    RotationAdam m_adamU, m_adamV;
    Adam m_adamLog, m_adamDirect;
};

/// Keeps kappa(P1) kappa(P2) <= limit. Returns the product.
double limitConditioning(LearnedFactor &first, LearnedFactor &second, double limit);

} // namespace planish::learned
