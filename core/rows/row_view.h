// The only way a fit or a score reaches X: rows of one part of the split, with the part in the type. A fit that is handed
// held-out rows does not compile.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "kernels/matrix_view.h"

namespace planish {

enum class Part { Calibration, Validation, HeldOut, Sealed, All };

/// Rows of one edge belonging to part P. Immutable, cheap to copy; x is [rows, K].
template <Part P>
class RowView {
public:
    RowView() = default;
    RowView(std::vector<std::int64_t> fileRows, std::vector<std::int32_t> units, std::vector<std::int32_t> requests,
            std::shared_ptr<const MatrixD> x, std::int64_t available)
        : m_rows(std::move(fileRows)), m_units(std::move(units)), m_requests(std::move(requests)), m_x(std::move(x)),
          m_available(available)
    {
    }
    static constexpr Part part = P;
    std::size_t size() const { return m_rows.size(); }
    const std::vector<std::int64_t> &rows() const { return m_rows; }          ///< row in the file
    const std::vector<std::int32_t> &units() const { return m_units; }        ///< index of the split unit of each row
    const std::vector<std::int32_t> &requests() const { return m_requests; }  ///< request id of each row
    const MatrixD &x() const { return *m_x; }
    std::shared_ptr<const MatrixD> sharedX() const { return m_x; }
    std::int64_t available() const { return m_available; } ///< rows of the part before the budget

private:
    std::vector<std::int64_t> m_rows;
    std::vector<std::int32_t> m_units, m_requests;
    std::shared_ptr<const MatrixD> m_x = std::make_shared<const MatrixD>();
    std::int64_t m_available = 0;
};

using CalibrationRows = RowView<Part::Calibration>;
using ValidationRows = RowView<Part::Validation>;
using HeldOutRows = RowView<Part::HeldOut>;
using SealedRows = RowView<Part::Sealed>;

} // namespace planish
