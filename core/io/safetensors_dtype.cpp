#include "core/io/safetensors_dtype.h"

#include <algorithm>
#include <array>

#include "core/io/safetensors.h"

namespace planish {

namespace {

// E4M3 means the FN form; E8M0, FP6, FP4 and complex numbers are listed but never read as matrices.
constexpr std::array<SafetensorsDtype, 21> kTypes{{{"BOOL", 8, StoredType::Bool},
                                                   {"U8", 8, StoredType::U8},
                                                   {"I8", 8, StoredType::I8},
                                                   {"I16", 16, StoredType::I16},
                                                   {"U16", 16, StoredType::U16},
                                                   {"F16", 16, StoredType::F16},
                                                   {"BF16", 16, StoredType::Bf16},
                                                   {"I32", 32, StoredType::I32},
                                                   {"U32", 32, StoredType::U32},
                                                   {"F32", 32, StoredType::F32},
                                                   {"F64", 64, StoredType::F64},
                                                   {"I64", 64, StoredType::I64},
                                                   {"U64", 64, StoredType::U64},
                                                   {"F8_E4M3", 8, StoredType::Fp8E4M3},
                                                   {"F8_E5M2", 8, StoredType::Fp8E5M2},
                                                   {"F8_E4M3FNUZ", 8, StoredType::Fp8E4M3Fnuz},
                                                   {"F8_E5M2FNUZ", 8, StoredType::Fp8E5M2Fnuz},
                                                   {"F8_E8M0", 8, StoredType::Other},
                                                   {"C64", 64, StoredType::Other},
                                                   {"F4", 4, StoredType::Other},
                                                   {"F6_E2M3", 6, StoredType::Other}}};

} // namespace

std::optional<SafetensorsDtype> safetensorsDtype(std::string_view name)
{
    if (name == "F6_E3M2")
        name = "F6_E2M3"; // same width, neither is read
    const auto *const found =
        std::find_if(kTypes.begin(), kTypes.end(), [&](const SafetensorsDtype &row) { return row.name == name; });
    return found == kTypes.end() ? std::nullopt : std::optional(*found);
}

std::string_view safetensorsName(StoredType type)
{
    const auto *const found =
        std::find_if(kTypes.begin(), kTypes.end(), [&](const SafetensorsDtype &row) { return row.type == type; });
    return found == kTypes.end() || type == StoredType::Other ? std::string_view() : found->name;
}

} // namespace planish
