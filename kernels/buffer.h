// Matrix storage of backends: aligned, not zero-filled (kernels write every element), in large pages where the system has them.
// A freshly zeroed page per 4 KiB would cost as much as quantizing it.
#pragma once

#include <cstddef>
#include <memory>
#include <utility>

#include "kernels/matrix_view.h"

namespace planish {

/// Bytes on a cache line (on 2 MiB for large blocks); throws std::bad_alloc. Release with std::free.
void *allocateAligned(std::size_t bytes);
struct FreeAligned {
    void operator()(void *block) const;
};

/// Owning row-major matrix [rows, cols] of uninitialised numbers.
template <class T> class Buffer {
public:
    Buffer() = default;
    Buffer(std::size_t rows, std::size_t cols)
        : m_rows(rows), m_cols(cols), m_data(static_cast<T *>(allocateAligned(rows * cols * sizeof(T))))
    {
    }
    std::size_t rows() const { return m_rows; }
    std::size_t cols() const { return m_cols; }
    std::size_t size() const { return m_rows * m_cols; }
    T *data() { return m_data.get(); }
    const T *data() const { return m_data.get(); }
    std::span<T> row(std::size_t r) { return {m_data.get() + r * m_cols, m_cols}; }
    std::span<const T> row(std::size_t r) const { return {m_data.get() + r * m_cols, m_cols}; }
    MatrixView<T> view() { return {m_data.get(), m_rows, m_cols, m_cols}; }
    MatrixView<const T> view() const { return {m_data.get(), m_rows, m_cols, m_cols}; }

private:
    std::size_t m_rows = 0, m_cols = 0;
    std::unique_ptr<T, FreeAligned> m_data;
};

} // namespace planish
