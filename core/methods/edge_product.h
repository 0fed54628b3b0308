// The product of one edge under a Rewrite and its specs: transform, quantize both sides, error sums. Searches and the evaluator
// share it, so a loss and a reported error are the same number on the same rows.
#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <vector>

#include "core/methods/method.h"
#include "core/methods/residual_merge.h"
#include "core/transform/exceptions.h"

namespace planish {

/// One consumer with its resident weight and, on the rows of the product, Y = X W^T.
struct ResidentConsumer {
    std::shared_ptr<const MatrixD> weight;
    ResidentPtr resident, reference;
};

/// Rows and weights of a product in the coordinates a Rewrite starts from. X lives on the backend once.
struct ProductRows {
    std::shared_ptr<const Backend> backend;
    std::string subject;              ///< edge id for messages
    std::shared_ptr<const MatrixD> x; ///< scored rows [M, K]
    ResidentPtr resident;
    std::vector<std::int32_t> requests;       ///< of each scored row; units of dynamic exceptions
    std::shared_ptr<const MatrixD> rangeRows; ///< calibration rows that fix static ranges
    std::vector<ResidentConsumer> consumers;
};

/// Uploads X and W and computes Y in double once.
Expected<ProductRows> makeProductRows(std::shared_ptr<const Backend> backend, std::string subject,
                                      std::shared_ptr<const MatrixD> x, std::vector<std::int32_t> requests,
                                      std::shared_ptr<const MatrixD> rangeRows, const std::vector<ConsumerWeights> &consumers);

/// What one measurement gives. Counts of the weights are summed over consumers (and units of dynamic exceptions).
struct ProductError {
    ResidualSums sums;
    std::vector<std::size_t> consumerOutputs;
    QuantizeCounts activation, weight;
    std::optional<ResolvedExceptions> exceptions;
    ResidentPtr xPrime;
    std::vector<Quantized> fresh; ///< handed to the cache inside the measurement, empty in a result
};

/// Intermediate results a search keeps from one trial to the next; only parts whose inputs are equal are used again.
struct ProductCache {
    bool hasTransform = false;
    Transform transform;
    ResidentPtr x;
    std::shared_ptr<const MatrixD> rangeRows;
    std::vector<ResidentPtr> weights;
    bool hasWeights = false, hasActivation = false;
    std::vector<Clip> weightClips, activationClips;
    std::vector<Quantized> quantizedWeights;
    Quantized quantizedActivation;
};

/// Measures one Rewrite. Errors: kernel failures; a scale that cannot be represented is a Data error.
Expected<ProductError> measureProduct(const ProductRows &rows, const Rewrite &rewrite, const SpecPair &specs, TermDetail detail,
                                      std::stop_token stop, ProductCache *cache = nullptr);

} // namespace planish
