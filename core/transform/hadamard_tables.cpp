#include "core/transform/hadamard_tables.h"

#include <algorithm>
#include <array>
#include <bit>
#include <sstream>
#include <string_view>
#include <vector>

namespace planish {

namespace {

bool isPrime(std::size_t n)
{
    if (n < 2)
        return false;
    for (std::size_t d = 2; d * d <= n; ++d)
        if (n % d == 0)
            return false;
    return true;
}

/// chi(x) = 0, +1 for a nonzero square, -1 else, mod a prime q.
std::vector<std::int8_t> legendreSymbols(std::size_t q)
{
    std::vector<std::int8_t> chi(q, -1);
    chi[0] = 0;
    for (std::size_t x = 1; x < q; ++x)
        chi[x * x % q] = 1;
    return chi;
}

/// First halves of the symmetric circulants A, B, C, D of rotation.md 2.4.
struct WilliamsonStrings {
    std::size_t order;
    std::array<std::string_view, 4> halves;
};
constexpr std::array<WilliamsonStrings, 6> kWilliamson = {
    {{52, {"+-+--+", "-+--++", "---+++", "----+-"}},
     {92, {"+-+--+++--+", "++++----+-+", "-----++-+-+", "+-+-+++-++-"}},
     {100, {"+--+-+-+++--", "--+-++++---+", "-------++-++", "-+---+--+--+"}},
     {116, {"-+-++---+--+++", "-+-+----++-++-", "--+-++---+++++", "++-++-++++---+"}},
     {156, {"++--+-+-----+--++--", "+++---+--++----+-+-", "++--++-+---+-+--+--", "---++-+-+-----+++-+"}},
     {172, {"---++--++++-+-+++-++-", "+-++++++----+-+--++-+", "++-+-++--+-+-++++-+--", "+---++++-+--+--++----"}}}};

const WilliamsonStrings *findStrings(std::size_t order)
{
    const auto found = std::ranges::find(kWilliamson, order, &WilliamsonStrings::order);
    return found == kWilliamson.end() ? nullptr : &*found;
}

/// First row of a symmetric circulant: [+1, h1..hr, hr..h1].
std::vector<std::int8_t> circulantRow(std::string_view half)
{
    std::vector<std::int8_t> row(2 * half.size() + 1, 1);
    for (std::size_t i = 0; i < half.size(); ++i)
        row[1 + i] = row[row.size() - 1 - i] = half[i] == '+' ? 1 : -1;
    return row;
}

/// [[A,B,C,D],[-B,A,-D,C],[-C,D,A,-B],[-D,-C,B,A]] for the strings in the given order.
SignTable williamsonArray(const std::array<std::string_view, 4> &halves)
{
    constexpr int kBlock[4][4] = {{0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}};
    constexpr int kSign[4][4] = {{1, 1, 1, 1}, {-1, 1, -1, 1}, {-1, 1, 1, -1}, {-1, -1, 1, 1}};
    std::array<std::vector<std::int8_t>, 4> rows;
    std::ranges::transform(halves, rows.begin(), circulantRow);
    const std::size_t n = rows[0].size();
    SignTable table(4 * n, 4 * n);
    for (std::size_t i = 0; i < 4 * n; ++i)
        for (std::size_t j = 0; j < 4 * n; ++j) {
            const std::size_t p = i / n, q = j / n;
            table(i, j) = static_cast<std::int8_t>(kSign[p][q] * rows[kBlock[p][q]][(j % n + n - i % n) % n]);
        }
    return table;
}

SignTable negatedBorder(SignTable table)
{
    for (std::size_t k = 0; k < table.cols(); ++k)
        table(0, k) = static_cast<std::int8_t>(-table(0, k));
    for (std::size_t k = 0; k < table.rows(); ++k)
        table(k, 0) = static_cast<std::int8_t>(-table(k, 0));
    return table;
}

/// Rows and columns in the order idx[k] = 2 (k mod m/2) + k div (m/2).
SignTable halvesApart(const SignTable &table)
{
    const std::size_t half = table.rows() / 2;
    const auto index = [half](std::size_t k) { return 2 * (k % half) + k / half; };
    SignTable result(table.rows(), table.cols());
    for (std::size_t i = 0; i < table.rows(); ++i)
        for (std::size_t j = 0; j < table.cols(); ++j)
            result(i, j) = table(index(i), index(j));
    return result;
}

} // namespace

bool hasPaleyI(std::size_t order)
{
    return order >= 4 && order % 4 == 0 && isPrime(order - 1);
}

bool hasPaleyII(std::size_t order)
{
    return order >= 12 && order % 2 == 0 && (order / 2 - 1) % 4 == 1 && isPrime(order / 2 - 1);
}

bool hasWilliamson(std::size_t order)
{
    return findStrings(order) != nullptr;
}

SignTable paleyI(std::size_t order)
{
    const std::size_t q = order - 1;
    const std::vector<std::int8_t> chi = legendreSymbols(q);
    SignTable table(order, order);
    for (std::size_t i = 0; i < order; ++i)
        for (std::size_t j = 0; j < order; ++j) {
            if (i == 0 || i == j)
                table(i, j) = 1;
            else
                table(i, j) = j == 0 ? std::int8_t{-1} : chi[(i + q - j) % q];
        }
    return table;
}

SignTable paleyII(std::size_t order)
{
    const std::size_t half = order / 2, q = half - 1;
    const std::vector<std::int8_t> chi = legendreSymbols(q);
    constexpr int kOff[2][2] = {{1, 1}, {1, -1}}, kDiagonal[2][2] = {{1, -1}, {-1, -1}};
    SignTable table(order, order);
    for (std::size_t i = 0; i < order; ++i)
        for (std::size_t j = 0; j < order; ++j) {
            const std::size_t p = i / 2, r = j / 2;
            const int conference = p == 0 || r == 0 ? 1 : chi[(p + q - r) % q];
            table(i, j) = static_cast<std::int8_t>(p == r ? kDiagonal[i % 2][j % 2] : conference * kOff[i % 2][j % 2]);
        }
    return table;
}

SignTable williamson(std::size_t order)
{
    return williamsonArray(findStrings(order)->halves);
}

SignTable sylvester(std::size_t order)
{
    SignTable table(order, order);
    for (std::size_t i = 0; i < order; ++i)
        for (std::size_t j = 0; j < order; ++j)
            table(i, j) = (std::popcount(i & j) & 1) != 0 ? -1 : 1;
    return table;
}

SignTable kronecker(const SignTable &a, const SignTable &b)
{
    SignTable table(a.rows() * b.rows(), a.cols() * b.cols());
    for (std::size_t i = 0; i < table.rows(); ++i)
        for (std::size_t j = 0; j < table.cols(); ++j)
            table(i, j) = static_cast<std::int8_t>(a(i / b.rows(), j / b.cols()) * b(i % b.rows(), j % b.cols()));
    return table;
}

std::optional<SignTable> quarotTable(std::size_t order)
{
    switch (order) {
    case 12:
    case 20:
    case 60:
    case 108:
    case 140:
        return negatedBorder(paleyI(order));
    case 28:
    case 36:
        return halvesApart(paleyII(order));
    case 40:
        return kronecker(sylvester(2), negatedBorder(paleyI(20)));
    case 52: {
        const auto &strings = findStrings(52)->halves;
        return williamsonArray({strings[1], strings[2], strings[0], strings[3]});
    }
    case 156:
    case 172:
        return williamson(order);
    default:
        return std::nullopt;
    }
}

bool isHadamard(const SignTable &table)
{
    const std::size_t order = table.rows(), words = (order + 63) / 64;
    if (order == 0 || table.cols() != order)
        return false;
    Matrix<std::uint64_t> negative(order, words);
    for (std::size_t i = 0; i < order; ++i)
        for (std::size_t j = 0; j < order; ++j) {
            if (table(i, j) != 1 && table(i, j) != -1)
                return false;
            if (table(i, j) < 0)
                negative(i, j / 64) |= std::uint64_t{1} << (j % 64);
        }
    for (std::size_t i = 0; i < order; ++i)
        for (std::size_t k = 0; k < i; ++k) {
            std::size_t different = 0;
            for (std::size_t w = 0; w < words; ++w)
                different += static_cast<std::size_t>(std::popcount(negative(i, w) ^ negative(k, w)));
            if (2 * different != order)
                return false;
        }
    return true;
}

std::optional<SignTable> parseSignTable(const std::string &text)
{
    std::vector<std::vector<std::int8_t>> rows;
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
        const bool digits = line.find('1') != std::string::npos;
        std::vector<std::int8_t> row;
        for (std::size_t i = 0; i < line.size(); ++i) {
            if (digits && line[i] == '1')
                row.push_back(i > 0 && line[i - 1] == '-' ? -1 : 1);
            else if (!digits && (line[i] == '+' || line[i] == '-'))
                row.push_back(line[i] == '+' ? 1 : -1);
            else if (std::string_view("+- ,\t\r").find(line[i]) == std::string_view::npos)
                return std::nullopt;
        }
        if (!row.empty())
            rows.push_back(std::move(row));
    }
    SignTable table(rows.size(), rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
        if (rows[i].size() != rows.size())
            return std::nullopt;
        std::ranges::copy(rows[i], table.row(i).begin());
    }
    return table;
}

} // namespace planish
