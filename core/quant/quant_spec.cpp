#include "core/quant/quant_spec.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "core/quant/format_table.h"
#include "core/quant/spec_words.h"

namespace planish {

namespace {

std::string shortestDecimal(double value)
{
    std::array<char, 400> buffer;
    const auto result = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed);
    return {buffer.data(), result.ptr};
}

std::string sharingText(const NumberGrid &grid, Role role)
{
    switch (grid.sharing) {
    case Sharing::Tensor:
        return ":tensor";
    case Sharing::Row:
        return role == Role::Weight ? ":row" : ":token";
    case Sharing::Channel:
        return ":channel";
    case Sharing::Group:
        return ":group" + std::to_string(grid.group);
    case Sharing::Block:
        return "";
    }
    return "";
}

std::string dialectText(const NumberGrid &grid)
{
    if (grid.fourOverSix)
        return ":dialect=four_over_six";
    const bool isDefault = grid.dialect == Dialect::Narrow || grid.dialect == Dialect::Zero;
    if (grid.tool == ToolDialect::None && isDefault)
        return "";
    const auto named = std::ranges::find_if(kDialects, [&](const DialectWord &row) {
        return grid.tool == ToolDialect::None ? row.dialect == grid.dialect : row.tool == grid.tool;
    });
    return ":dialect=" + std::string(named->word);
}

std::string clipText(const ClipRule &clip)
{
    switch (clip.kind) {
    case ClipKind::Max:
        return "";
    case ClipKind::Mse:
        return ":clip=mse";
    case ClipKind::Percentile:
        return ":clip=p" + shortestDecimal(clip.value);
    case ClipKind::Fixed:
        return ":clip=" + shortestDecimal(clip.value);
    }
    return "";
}

} // namespace

std::string canonicalText(const QuantSpec &spec, Role role)
{
    const NumberGrid &grid = spec.grid;
    std::string text = formatRow(grid.format).key;
    if (spec.isNone())
        return text;
    text += sharingText(grid, role);
    // asym is left out when a dialect says it; compressed_tensors exists in both kinds and zero is asym's own default.
    if (grid.dialect == Dialect::Zero)
        text += ":asym";
    if (grid.timing == Timing::Static)
        text += ":static";
    text += clipText(grid.clip);
    text += dialectText(grid);
    if (grid.mxRule != MxRule::Floor)
        text += ":rule=" + std::string(wordOf(kRules, grid.mxRule));
    if (grid.stepType != StepType::F64)
        text += ":scale=" + std::string(wordOf(kStepTypes, grid.stepType));
    if (grid.tail != TailRule::Short)
        text += ":tail=" + std::string(wordOf(kTails, grid.tail));
    return text;
}

double storedBits(const QuantSpec &spec, std::size_t rows, std::size_t cols)
{
    if (spec.isNone())
        return 16.0;
    const NumberGrid &grid = spec.grid;
    const FormatRow &row = formatRow(grid.format);
    if (row.block > 0)
        return row.bits + static_cast<double>(row.scaleBits) / static_cast<double>(row.block);
    const double elements = static_cast<double>(rows) * static_cast<double>(cols);
    if (elements == 0.0)
        return row.bits;
    double shares = static_cast<double>(rows);
    if (grid.sharing == Sharing::Tensor)
        shares = 1.0;
    else if (grid.sharing == Sharing::Channel)
        shares = static_cast<double>(cols);
    else if (grid.sharing == Sharing::Group)
        shares = static_cast<double>(rows) * static_cast<double>((cols + grid.group - 1) / grid.group);
    const int scaleBits = grid.stepType == StepType::F32 ? 32 : row.scaleBits;
    const int zeroBits = isAsymmetric(grid.dialect) ? row.bits : 0;
    return row.bits + shares * (scaleBits + zeroBits) / elements;
}

Expected<void> checkSharing(const QuantSpec &spec, Role role, std::size_t channels, const std::string &subject)
{
    const NumberGrid &grid = spec.grid;
    if (spec.isNone() || grid.sharing != Sharing::Group)
        return {};
    const std::string text = canonicalText(spec, role);
    if (grid.group > channels)
        return usageError(subject, text + " has groups larger than the " + std::to_string(channels) + " channels",
                          "expected a group from 2 to " + std::to_string(channels));
    if (grid.tail == TailRule::Reject && channels % grid.group != 0)
        return refusal(subject, std::to_string(channels) + " channels are not a multiple of group " + std::to_string(grid.group),
                       "expected a divisor, or tail=short", "divisibility");
    return {};
}

} // namespace planish
