// Constructions of +-1 matrices of one exact order: Paley I and II, Williamson, Kronecker products. rotation.md 2.4. Which order
// a width gets is decided in hadamard_orders.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "kernels/matrix_view.h"

namespace planish {

using SignTable = Matrix<std::int8_t>;

/// Paley I: m - 1 prime and 3 mod 4. Paley II: m / 2 - 1 prime and 1 mod 4. Williamson: 52, 92, 100, 116, 156, 172.
bool hasPaleyI(std::size_t order);
bool hasPaleyII(std::size_t order);
bool hasWilliamson(std::size_t order);

SignTable paleyI(std::size_t order);
SignTable paleyII(std::size_t order);
SignTable williamson(std::size_t order);
SignTable sylvester(std::size_t order); ///< a power of two
SignTable kronecker(const SignTable &a, const SignTable &b);

/// QuaRot's own matrix of one of its orders (172 … 12): ours with signs, order or strings changed. Null for other orders.
std::optional<SignTable> quarotTable(std::size_t order);

/// Entries +-1 and H H^T = m I, in integers.
bool isHadamard(const SignTable &table);

/// A table from a text file: one row per line, `+`/`-` characters or 1 and -1 separated by blanks or commas.
std::optional<SignTable> parseSignTable(const std::string &text);

} // namespace planish
