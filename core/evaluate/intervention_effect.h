// What zero, mean and clip do to X and W, and how much of Y that changes before any quantizer.
#pragma once

#include "core/evaluate/intervention_place.h"

namespace planish {

/// X (and the calibration rows that fix static ranges) or one W after the action; null where nothing changed.
struct ChangedMatrices {
    std::shared_ptr<const MatrixD> x, ranges;
    std::vector<std::shared_ptr<const MatrixD>> weights; ///< per consumer
};

/// The action in full precision. `means`: mean of every channel over calibration rows.
class FullPrecisionAction {
public:
    FullPrecisionAction(const PartRows &rows, const InterventionAction &action, std::vector<double> means)
        : m_rows(rows), m_action(action), m_means(std::move(means))
    {
    }
    ChangedMatrices apply(const Place &place) const;
    /// Sums of E = Y' - Y.
    Expected<ResidualSums> sums(const ChangedMatrices &changed, std::stop_token stop) const;
    /// ||E||_F^2 alone, from the changed elements: many random places cost little.
    Expected<double> error2(const Place &place) const;

private:
    double valueOf(double old, double mean) const;
    MatrixD changesOf(const Elements &elements) const;
    double weightChange(const Place &place) const;
    double columnsError2(const Elements &elements, const MatrixD &changes) const;
    Expected<double> productError2(const MatrixD &changes) const;

    const PartRows &m_rows;
    InterventionAction m_action;
    std::vector<double> m_means;
};

} // namespace planish
