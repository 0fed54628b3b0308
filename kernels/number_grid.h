// What a quantizer does to numbers, as plain data: the grid of codes, who shares a step, how the range is chosen.
// Parsing and canonical text: core/quant/quant_spec. Formulas: methods/diagonal.md 2 and formats.md.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace planish {

enum class NumberFormat {
    None, Int2, Int3, Int4, Int5, Int6, Int7, Int8,
    Fp8E4M3, Fp8E5M2, Fp6E2M3, Fp6E3M2, Fp4E2M1,
    MxFp4, MxFp6E2M3, MxFp6E3M2, MxFp8E4M3, MxFp8E5M2, MxInt8,
    NvFp4
};

/// Who shares one step. Token = one row (of X or W; `row` is the same thing on weights).
enum class Sharing { Tensor, Row, Channel, Group, Block };

/// Integer dialects of diagonal.md 2.2. Narrow..Signed are symmetric, Zero..Free asymmetric.
enum class Dialect { Narrow, Mixed, Half, Offset, Signed, Zero, Raw, Free };

/// Tool aliases change more than the grid: bitsandbytes casts input to f16, compressed_tensors rounds x/d + z together.
enum class ToolDialect { None, BitsAndBytes, CompressedTensors, LlmAwq, OmniQuant };

enum class ClipKind { Max, Mse, Percentile, Fixed };
enum class MxRule { Floor, Even, EvenElem, Ceil, FourThirds };
enum class StepType { F64, F32, F16, Bf16 };
enum class TailRule { Short, Pad, Reject };
enum class Timing { Dynamic, Static };

struct ClipRule {
    ClipKind kind = ClipKind::Max;
    double value = 1.0; ///< Percentile: Q in (0,1]; Fixed: F in (0,1]
    bool operator==(const ClipRule &) const = default;
};

/// One quantizer, complete. `bits()` and the ranges derive from format.
struct NumberGrid {
    NumberFormat format = NumberFormat::None;
    Sharing sharing = Sharing::Row;
    std::size_t group = 0; ///< elements along K for Group; 32 or 16 for Block
    Dialect dialect = Dialect::Narrow;
    ToolDialect tool = ToolDialect::None;
    ClipRule clip;
    MxRule mxRule = MxRule::Floor;
    StepType stepType = StepType::F64;
    TailRule tail = TailRule::Short;
    Timing timing = Timing::Dynamic;
    bool fourOverSix = false; ///< nvfp4:dialect=four_over_six
    bool operator==(const NumberGrid &) const = default;
};

/// Bits of one code (0 for None).
int bitsOf(NumberFormat format);
bool isInteger(NumberFormat format);
bool isBlockFormat(NumberFormat format);
bool isAsymmetric(Dialect dialect);

/// Lower and upper end of one share before any clip; the static range of calibration rows has one entry per share.
struct Range {
    double lo = 0.0;
    double hi = 0.0;
};

/// Ranges fitted elsewhere (static activations, learned clips): one per share in share order, replaces the max rule.
using FixedRanges = std::vector<Range>;

} // namespace planish
