#include "core/io/file_structure.h"

#include <algorithm>

namespace planish {

std::string_view nameOf(StoredType type)
{
    switch (type) {
    case StoredType::F16:
        return "float16";
    case StoredType::F32:
        return "float32";
    case StoredType::F64:
        return "float64";
    case StoredType::Bf16:
        return "bfloat16";
    case StoredType::I8:
        return "int8";
    case StoredType::U8:
        return "uint8";
    case StoredType::I16:
        return "int16";
    case StoredType::U16:
        return "uint16";
    case StoredType::I32:
        return "int32";
    case StoredType::U32:
        return "uint32";
    case StoredType::I64:
        return "int64";
    case StoredType::U64:
        return "uint64";
    case StoredType::Bool:
        return "bool";
    case StoredType::Fp8E4M3:
        return "float8_e4m3fn";
    case StoredType::Fp8E5M2:
        return "float8_e5m2";
    case StoredType::Fp8E4M3Fnuz:
        return "float8_e4m3fnuz";
    case StoredType::Fp8E5M2Fnuz:
        return "float8_e5m2fnuz";
    case StoredType::Text:
        return "text";
    case StoredType::Other:
        return "other";
    }
    return "other";
}

std::size_t byteSize(StoredType type)
{
    switch (type) {
    case StoredType::I8:
    case StoredType::U8:
    case StoredType::Bool:
    case StoredType::Fp8E4M3:
    case StoredType::Fp8E5M2:
    case StoredType::Fp8E4M3Fnuz:
    case StoredType::Fp8E5M2Fnuz:
        return 1;
    case StoredType::F16:
    case StoredType::Bf16:
    case StoredType::I16:
    case StoredType::U16:
        return 2;
    case StoredType::F32:
    case StoredType::I32:
    case StoredType::U32:
        return 4;
    case StoredType::F64:
    case StoredType::I64:
    case StoredType::U64:
        return 8;
    case StoredType::Text:
    case StoredType::Other:
        return 0;
    }
    return 0;
}

const DatasetInfo *FileStructure::find(std::string_view path) const
{
    const auto found = std::find_if(datasets.begin(), datasets.end(), [&](const DatasetInfo &d) { return d.path == path; });
    return found == datasets.end() ? nullptr : &*found;
}

std::string shapeText(const std::vector<std::uint64_t> &shape)
{
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i)
        text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

bool productFits(const std::vector<std::uint64_t> &factors, std::uint64_t limit, std::uint64_t *product)
{
    std::uint64_t value = 1;
    for (const std::uint64_t factor : factors) {
        if (__builtin_mul_overflow(value, factor, &value))
            return false;
    }
    if (product != nullptr)
        *product = value;
    return value <= limit;
}

} // namespace planish
