// Dense row-major matrices: a borrowed view and an owning value. Nothing about layers, files or methods.
#pragma once

#include <cassert>
#include <cstddef>
#include <span>
#include <type_traits>
#include <vector>

namespace planish {

/// Borrowed row-major matrix [rows, cols]; `stride` elements from one row to the next. Never stored beyond a call.
template <class T>
struct MatrixView {
    T *data = nullptr;
    std::size_t rows = 0;
    std::size_t cols = 0;
    std::size_t stride = 0;

    std::span<T> row(std::size_t r) const { return {data + r * stride, cols}; }
    T &operator()(std::size_t r, std::size_t c) const { return data[r * stride + c]; }
    MatrixView middleRows(std::size_t begin, std::size_t count) const
    {
        assert(begin + count <= rows);
        return {data + begin * stride, count, cols, stride};
    }
    /// A writable view may be read.
    operator MatrixView<const T>() const requires(!std::is_const_v<T>) { return {data, rows, cols, stride}; }
};

/// Owning row-major matrix [rows, cols], zero-initialised, contiguous.
template <class T>
class Matrix {
public:
    Matrix() = default;
    Matrix(std::size_t rows, std::size_t cols) : m_rows(rows), m_cols(cols), m_values(rows * cols) {}

    std::size_t rows() const { return m_rows; }
    std::size_t cols() const { return m_cols; }
    std::size_t size() const { return m_values.size(); }
    bool empty() const { return m_values.empty(); }
    T *data() { return m_values.data(); }
    const T *data() const { return m_values.data(); }
    std::span<T> row(std::size_t r) { return {m_values.data() + r * m_cols, m_cols}; }
    std::span<const T> row(std::size_t r) const { return {m_values.data() + r * m_cols, m_cols}; }
    T &operator()(std::size_t r, std::size_t c) { return m_values[r * m_cols + c]; }
    const T &operator()(std::size_t r, std::size_t c) const { return m_values[r * m_cols + c]; }
    MatrixView<T> view() { return {m_values.data(), m_rows, m_cols, m_cols}; }
    MatrixView<const T> view() const { return {m_values.data(), m_rows, m_cols, m_cols}; }
    std::span<const T> values() const { return m_values; }
    std::span<T> values() { return m_values; }
    bool operator==(const Matrix &) const = default;

private:
    std::size_t m_rows = 0;
    std::size_t m_cols = 0;
    std::vector<T> m_values;
};

using MatrixD = Matrix<double>;
using MatrixF = Matrix<float>;
using ConstViewD = MatrixView<const double>;
using ConstViewF = MatrixView<const float>;

} // namespace planish
