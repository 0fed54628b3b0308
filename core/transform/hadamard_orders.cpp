#include "core/transform/hadamard_orders.h"

#include <algorithm>
#include <array>
#include <bit>
#include <fstream>
#include <optional>
#include <sstream>

#include "core/transform/hadamard_tables.h"

namespace planish {

namespace {

/// A larger table costs more than the whole product it precedes (2 K m flops per row) and 16 MiB.
constexpr std::size_t kLargestOrder = 4096;
/// Smallest block the automatic fallback accepts: rotation.md 2.3 step 4.
constexpr std::size_t kSmallestFallback = 16;

std::size_t powerOfTwoIn(std::size_t n)
{
    return n == 0 ? 0 : std::size_t{1} << std::countr_zero(n);
}

/// Name of the construction that reaches exactly this order, empty if none of the three does.
std::string constructionOf(std::size_t order)
{
    if (order > kLargestOrder)
        return {};
    if (hasPaleyI(order))
        return "paley1";
    if (hasPaleyII(order))
        return "paley2";
    return hasWilliamson(order) ? "williamson" : "";
}

SignTable tableOf(std::size_t order)
{
    if (hasPaleyI(order))
        return paleyI(order);
    return hasPaleyII(order) ? paleyII(order) : williamson(order);
}

/// Smallest m = odd * 2^t, t = 2.., that is built directly and divides `channels`; 0 if none.
std::size_t smallestDirect(std::size_t channels, std::size_t odd)
{
    for (std::size_t m = odd * 4; m <= std::min(channels, kLargestOrder) && channels % m == 0; m *= 2)
        if (!constructionOf(m).empty())
            return m;
    return 0;
}

/// The pair of direct orders with the smallest product that divides `channels`; {0, 0} if none.
std::pair<std::size_t, std::size_t> smallestProduct(std::size_t channels, std::size_t odd)
{
    std::pair<std::size_t, std::size_t> best{0, 0};
    for (std::size_t a = 3; a * a <= odd; a += 2) {
        if (odd % a != 0)
            continue;
        const std::size_t first = smallestDirect(channels, a), second = smallestDirect(channels, odd / a);
        const std::size_t product = first * second;
        if (product == 0 || product > kLargestOrder || channels % product != 0)
            continue;
        if (best.first == 0 || product < best.first * best.second)
            best = {first, second};
    }
    return best;
}

/// How a width factors into table x Sylvester; order 0 when no rule reaches it.
struct Recipe {
    std::size_t order = 0;
    std::pair<std::size_t, std::size_t> factors{0, 0}; ///< of a product
};

Recipe recipeFor(std::size_t channels)
{
    if (channels == 0)
        return {};
    const std::size_t odd = channels / powerOfTwoIn(channels);
    if (odd == 1)
        return {1, {}};
    if (const std::size_t direct = smallestDirect(channels, odd); direct != 0)
        return {direct, {}};
    const auto product = smallestProduct(channels, odd);
    return {product.first * product.second, product};
}

BaseMatrix baseOf(const Recipe &recipe)
{
    if (recipe.order == 1)
        return {1, "sylvester", {}};
    if (recipe.factors.first != 0)
        return {recipe.order, "product", kronecker(tableOf(recipe.factors.first), tableOf(recipe.factors.second))};
    return {recipe.order, constructionOf(recipe.order), tableOf(recipe.order)};
}

Operator hadamardOperator(std::size_t channels, std::size_t block, BaseMatrix base)
{
    HadamardOp op;
    op.channels = channels;
    op.block = block;
    op.order = base.order;
    op.sylvester = block / base.order;
    op.construction = std::move(base.construction);
    op.table = std::move(base.table);
    return Operator{std::move(op)};
}

std::string blocksText(std::size_t channels)
{
    std::string text;
    for (const std::size_t block : possibleBlocks(channels))
        text += (text.empty() ? "" : ", ") + std::to_string(block);
    return text.empty() ? "no block is possible" : "possible blocks are " + text;
}

tl::unexpected<Error> noHadamard(std::size_t channels, const std::string &what)
{
    return refusal("hadamard", what, blocksText(channels), "divisibility");
}

/// QuaRot takes the first divisor in this sequence and asserts that the quotient is a power of two.
Expected<Operator> quarotFor(std::size_t channels)
{
    constexpr std::array<std::size_t, 11> kSequence = {172, 156, 140, 108, 60, 52, 36, 28, 40, 20, 12};
    for (const std::size_t order : kSequence) {
        if (channels % order != 0)
            continue;
        if (!std::has_single_bit(channels / order))
            return noHadamard(channels, "QuaRot's rule asserts for " + std::to_string(channels) +
                                            " channels: " + std::to_string(order) + " divides them " +
                                            std::to_string(channels / order) + " times, no power of two");
        return hadamardOperator(channels, channels, {order, "quarot", *quarotTable(order)});
    }
    if (!std::has_single_bit(channels))
        return noHadamard(channels, "QuaRot's rule asserts for " + std::to_string(channels) +
                                        " channels: no order of its table divides them");
    return hadamardOperator(channels, channels, {1, "sylvester", {}});
}

Expected<SignTable> readTable(const std::string &file)
{
    std::ifstream stream(file, std::ios::binary);
    if (!stream)
        return dataError(file, "cannot be read", "expected a text file with one row of + and - per line");
    std::ostringstream text;
    text << stream.rdbuf();
    std::optional<SignTable> table = parseSignTable(text.str());
    if (!table || table->empty())
        return dataError(file, "is no square table of signs", "expected one row of + and - (or 1 and -1) per line");
    if (!isHadamard(*table))
        return dataError(file, "is no Hadamard matrix", "expected rows of +-1 that are orthogonal to each other");
    return *std::move(table);
}

Expected<Operator> fromFile(std::size_t channels, const std::string &file, const std::string &construction)
{
    Expected<SignTable> table = readTable(file);
    if (!table)
        return tl::make_unexpected(table.error());
    const std::size_t order = table->rows();
    if (channels % order != 0 || !std::has_single_bit(channels / order))
        return refusal("hadamard", "the table of " + file + " has order " + std::to_string(order),
                       "expected an order that goes into " + std::to_string(channels) + " a power of two times", "divisibility");
    return hadamardOperator(channels, channels, {order, construction, *std::move(table)});
}

/// Orders 1, 2 and each multiple of 4 up to 256; the largest divisor with a power-of-two quotient. The matrices are not ours to
/// ship.
Expected<Operator> compressedTensorsFor(std::size_t channels, const std::string &file)
{
    std::size_t order = 0;
    for (std::size_t m = 256; m >= 4 && order == 0; m -= 4)
        if (channels % m == 0 && std::has_single_bit(channels / m))
            order = m;
    if (order == 0 && (channels == 1 || channels == 2))
        return hadamardOperator(channels, channels, {1, "sylvester", {}});
    if (order == 0)
        return noHadamard(channels, "compressed-tensors has no order for " + std::to_string(channels) + " channels");
    if (file.empty())
        return refusal("hadamard",
                       "the compressed-tensors matrix of order " + std::to_string(order) + " is not part of this program",
                       "expected table=file:PATH with that matrix", "table_missing");
    Expected<Operator> op = fromFile(channels, file, "compressed_tensors");
    if (op && std::get<HadamardOp>(op->value).order != order)
        return refusal("hadamard", file + " does not hold order " + std::to_string(order),
                       "expected the order compressed-tensors takes for " + std::to_string(channels) + " channels",
                       "divisibility");
    return op;
}

} // namespace

Expected<BaseMatrix> buildBase(std::size_t order)
{
    const Recipe recipe = order <= kLargestOrder ? recipeFor(order) : Recipe{};
    if (recipe.order == 0)
        return refusal("hadamard", "no construction reaches order " + std::to_string(order),
                       "expected a power of two, a Paley or Williamson order or a product of them", "divisibility");
    if (order == 1)
        return BaseMatrix{1, "sylvester", {}};
    if (recipe.order == 1)
        return BaseMatrix{order, "sylvester", sylvester(order)};
    BaseMatrix base = baseOf(recipe);
    if (base.order < order)
        return BaseMatrix{order, "product", kronecker(base.table, sylvester(order / base.order))};
    return base;
}

Expected<Operator> hadamardFor(std::size_t channels, HadamardTable table, const std::string &tableFile)
{
    if (channels == 0)
        return noHadamard(channels, "there are no channels");
    if (table == HadamardTable::Quarot)
        return quarotFor(channels);
    if (table == HadamardTable::CompressedTensors)
        return compressedTensorsFor(channels, tableFile);
    if (table == HadamardTable::File)
        return fromFile(channels, tableFile, "file");
    if (const Recipe recipe = recipeFor(channels); recipe.order != 0)
        return hadamardOperator(channels, channels, baseOf(recipe));
    const std::size_t block = powerOfTwoIn(channels);
    if (block < kSmallestFallback)
        return noHadamard(channels, "no Hadamard of " + std::to_string(channels) +
                                        " channels can be built, and its largest power of two is " + std::to_string(block));
    return hadamardOperator(channels, block, {1, "sylvester", {}});
}

Expected<Operator> blockHadamardFor(std::size_t channels, std::size_t block)
{
    if (block == 0 || channels == 0 || channels % block != 0)
        return noHadamard(channels,
                          "block " + std::to_string(block) + " does not divide " + std::to_string(channels) + " channels");
    const Recipe recipe = recipeFor(block);
    if (recipe.order == 0)
        return noHadamard(channels, "no Hadamard of order " + std::to_string(block) + " can be built");
    return hadamardOperator(channels, block, baseOf(recipe));
}

std::size_t autoBlock(std::size_t channels)
{
    return std::min<std::size_t>(powerOfTwoIn(channels), 128);
}

std::vector<std::size_t> possibleBlocks(std::size_t channels)
{
    std::vector<std::size_t> blocks;
    for (std::size_t block = 2; block <= channels; ++block)
        if (channels % block == 0 && recipeFor(block).order != 0)
            blocks.push_back(block);
    return blocks;
}

Expected<void> selfTestHadamard()
{
    constexpr std::size_t kTested = 300;
    for (std::size_t order = 2; order <= kTested; order += 2) {
        if (recipeFor(order).order == 0)
            continue;
        const Expected<BaseMatrix> base = buildBase(order);
        if (!base || !isHadamard(base->table))
            return machineError("hadamard", "the table of order " + std::to_string(order) + " is no Hadamard matrix",
                                "expected H H^T = m I; this build is damaged");
    }
    return {};
}

} // namespace planish
