#include "core/quant/format_table.h"

#include <algorithm>

namespace planish {

namespace {

const std::vector<std::string> kActivationSharings = {"tensor", "token", "group", "channel"};
const std::vector<std::string> kWeightSharings = {"tensor", "row", "group"};

FormatRow integerRow(NumberFormat format, int bits)
{
    return {.format = format,
            .key = "int" + std::to_string(bits),
            .label = std::to_string(bits) + "-bit integer",
            .bits = bits,
            .scaleBits = 16,
            .activationSharings = kActivationSharings,
            .weightSharings = kWeightSharings,
            .activationDefault = "token",
            .weightDefault = "row",
            .options = {"sym", "asym", "static", "dynamic", "clip", "dialect", "scale", "tail"}};
}

FormatRow floatRow(NumberFormat format, std::string key, std::string label, int bits)
{
    return {.format = format,
            .key = std::move(key),
            .label = std::move(label),
            .bits = bits,
            .scaleBits = 16,
            .activationSharings = kActivationSharings,
            .weightSharings = kWeightSharings,
            .activationDefault = "token",
            .weightDefault = "row",
            .options = {"static", "dynamic", "clip", "scale", "tail"}};
}

FormatRow blockRow(NumberFormat format, std::string key, std::string label, int bits, std::size_t block,
                   std::vector<std::string> options)
{
    return {.format = format,
            .key = std::move(key),
            .label = std::move(label),
            .bits = bits,
            .block = block,
            .scaleBits = 8, // E8M0 or E4M3
            .options = std::move(options)};
}

std::vector<FormatRow> buildTable()
{
    using F = NumberFormat;
    return {
        {.format = F::None, .key = "none", .label = "not quantized"},
        integerRow(F::Int2, 2),
        integerRow(F::Int3, 3),
        integerRow(F::Int4, 4),
        integerRow(F::Int5, 5),
        integerRow(F::Int6, 6),
        integerRow(F::Int7, 7),
        integerRow(F::Int8, 8),
        floatRow(F::Fp8E4M3, "fp8_e4m3", "FP8 E4M3", 8),
        floatRow(F::Fp8E5M2, "fp8_e5m2", "FP8 E5M2", 8),
        floatRow(F::Fp6E2M3, "fp6_e2m3", "FP6 E2M3", 6),
        floatRow(F::Fp6E3M2, "fp6_e3m2", "FP6 E3M2", 6),
        floatRow(F::Fp4E2M1, "fp4_e2m1", "FP4 E2M1", 4),
        blockRow(F::MxFp4, "mxfp4", "MXFP4", 4, 32, {"rule"}),
        blockRow(F::MxFp6E2M3, "mxfp6_e2m3", "MXFP6 E2M3", 6, 32, {"rule"}),
        blockRow(F::MxFp6E3M2, "mxfp6_e3m2", "MXFP6 E3M2", 6, 32, {"rule"}),
        blockRow(F::MxFp8E4M3, "mxfp8_e4m3", "MXFP8 E4M3", 8, 32, {"rule"}),
        blockRow(F::MxFp8E5M2, "mxfp8_e5m2", "MXFP8 E5M2", 8, 32, {"rule"}),
        blockRow(F::MxInt8, "mxint8", "MXINT8", 8, 32, {"rule"}),
        blockRow(F::NvFp4, "nvfp4", "NVFP4", 4, 16, {"static", "dynamic", "dialect"}),
    };
}

} // namespace

const std::vector<FormatRow> &formatTable()
{
    static const std::vector<FormatRow> table = buildTable();
    return table;
}

const FormatRow &formatRow(NumberFormat format)
{
    return formatTable()[static_cast<std::size_t>(format)];
}

const FormatRow *findFormat(std::string_view key)
{
    const auto &table = formatTable();
    const auto found = std::ranges::find(table, key, &FormatRow::key);
    return found == table.end() ? nullptr : &*found;
}

} // namespace planish
