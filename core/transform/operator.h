// Operators on channels and their composition, as immutable values. Convention (design.md): X' = (X - c) P, W' = W P^-T,
// b' = b + W c. Every operator stores the factor applied to X, except Scale, which stores the divisor.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/io/error.h"
#include "kernels/matrix_view.h"
#include "kernels/operators.h"

namespace planish {

struct IdentityOp {
    std::size_t order = 0;
    bool operator==(const IdentityOp &) const = default;
};
struct ScaleOp {
    std::vector<double> divisor; ///< X'_k = X_k / s_k; s != 0 and finite
    bool operator==(const ScaleOp &) const = default;
};
struct PermuteOp {
    std::vector<std::int64_t> perm; ///< X'[:,j] = X[:,perm[j]]
    bool operator==(const PermuteOp &) const = default;
};
/// Block-diagonal Hadamard of `block` = order * sylvester channels; block == K is the full rotation.
struct HadamardOp {
    std::size_t channels = 0, block = 0, order = 1, sylvester = 1;
    std::string construction = "sylvester"; ///< sylvester|paley1|paley2|williamson|product|quarot|compressed_tensors|file
    Matrix<std::int8_t> table;              ///< order x order of +-1; empty for order 1
    std::vector<std::int8_t> signs;         ///< empty or K, before H
    bool inverse = false;
    bool operator==(const HadamardOp &) const = default;
};
/// d distinct blocks [B,B] and an assignment block-of-channels -> block.
struct BlockDenseOp {
    std::size_t block = 0;
    std::vector<MatrixD> blocks;
    std::vector<MatrixD> inverses;         ///< of each block
    std::vector<std::int32_t> assignment;  ///< K / B entries
    bool orthogonal = false;
    bool operator==(const BlockDenseOp &) const = default;
};
struct Operator;
/// Row-major x (P1 (x) P2) = flatten(P1^T reshape(x, k1, k2) P2).
struct KroneckerOp {
    std::shared_ptr<const Operator> first, second;
    bool operator==(const KroneckerOp &other) const;
};
struct DenseOp {
    MatrixD matrix, inverse; ///< [K,K]
    bool orthogonal = false;
    bool operator==(const DenseOp &) const = default;
};

struct Operator {
    std::variant<IdentityOp, ScaleOp, PermuteOp, HadamardOp, BlockDenseOp, KroneckerOp, DenseOp> value;
    bool operator==(const Operator &) const = default;
};

std::size_t channelsOf(const Operator &op);
bool isDiagonal(const Operator &op);      ///< Identity or Scale
bool isOrthogonal(const Operator &op);    ///< by construction
std::string nameOf(const Operator &op);   ///< "hadamard 36x16", "scale", …
Expected<Operator> inverseOf(const Operator &op);
Expected<Operator> inverseTransposeOf(const Operator &op);
/// Dense [K,K] factor P applied to X (small K only: tests and reference).
MatrixD denseOf(const Operator &op);
/// Kernel steps for one operator; a Kronecker or dense factor becomes block steps and permutes.
std::vector<OperatorStep> stepsOf(const Operator &op);

/// Conditioning of P (evaluation.md 6): exact for diagonal x orthogonal and block factors, else a product bound.
struct Conditioning {
    double kappa = 1, kappaNonDiagonal = 1, sigmaMin = 1, sigmaMax = 1, scaleMin = 1, scaleMax = 1;
    double inverseResidual = 0, orthogonalityResidual = 0;
    bool kappaIsBound = false;
};

/// Shift, then operators in the order they act on X. Empty = identity.
struct Transform {
    std::vector<double> shift; ///< c [K] or empty
    std::vector<Operator> operators;
    bool operator==(const Transform &) const = default;

    bool isIdentity() const { return shift.empty() && operators.empty(); }
    Transform then(const Transform &next) const; ///< this first; a shift of `next` is expressed before this one's operators
    std::vector<OperatorStep> steps() const;
    Conditioning conditioning() const;
};

/// Applies P to each row of X in place on a copy: (X - c) P, in double, plain loops.
MatrixD applyToActivations(const Transform &t, ConstViewD x);
/// W P^-T in double, plain loops.
Expected<MatrixD> applyToWeights(const Transform &t, ConstViewD w);
/// b' = b + W c [1, N] from the original W [N, K]; `bias` null counts as 0. Empty when there is neither bias nor shift.
MatrixD applyToBias(const Transform &t, ConstViewD originalWeight, const MatrixD *bias);

} // namespace planish
