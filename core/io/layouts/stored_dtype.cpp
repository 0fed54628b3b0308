#include "core/io/layouts/stored_dtype.h"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/io/layouts/attribute_reader.h"
#include "core/io/printable.h"

namespace planish {

namespace {

struct NameRow {
    std::string_view name;
    StoredType type;
};

constexpr std::array<NameRow, 40> kNames{{{"bfloat16", StoredType::Bf16},
                                          {"bf16", StoredType::Bf16},
                                          {"float16", StoredType::F16},
                                          {"f16", StoredType::F16},
                                          {"fp16", StoredType::F16},
                                          {"half", StoredType::F16},
                                          {"float32", StoredType::F32},
                                          {"f32", StoredType::F32},
                                          {"fp32", StoredType::F32},
                                          {"float", StoredType::F32},
                                          {"float64", StoredType::F64},
                                          {"f64", StoredType::F64},
                                          {"double", StoredType::F64},
                                          {"float8_e4m3fn", StoredType::Fp8E4M3},
                                          {"float8_e4m3", StoredType::Fp8E4M3},
                                          {"fp8_e4m3", StoredType::Fp8E4M3},
                                          {"f8_e4m3", StoredType::Fp8E4M3},
                                          {"e4m3fn", StoredType::Fp8E4M3},
                                          {"float8_e5m2", StoredType::Fp8E5M2},
                                          {"fp8_e5m2", StoredType::Fp8E5M2},
                                          {"f8_e5m2", StoredType::Fp8E5M2},
                                          {"e5m2", StoredType::Fp8E5M2},
                                          {"float8_e4m3fnuz", StoredType::Fp8E4M3Fnuz},
                                          {"f8_e4m3fnuz", StoredType::Fp8E4M3Fnuz},
                                          {"float8_e5m2fnuz", StoredType::Fp8E5M2Fnuz},
                                          {"f8_e5m2fnuz", StoredType::Fp8E5M2Fnuz},
                                          {"int8", StoredType::I8},
                                          {"i8", StoredType::I8},
                                          {"uint8", StoredType::U8},
                                          {"u8", StoredType::U8},
                                          {"int16", StoredType::I16},
                                          {"i16", StoredType::I16},
                                          {"uint16", StoredType::U16},
                                          {"u16", StoredType::U16},
                                          {"int32", StoredType::I32},
                                          {"i32", StoredType::I32},
                                          {"uint32", StoredType::U32},
                                          {"int64", StoredType::I64},
                                          {"uint64", StoredType::U64},
                                          {"bool", StoredType::Bool}}};

bool isRawStorage(const DatasetInfo &dataset)
{
    switch (dataset.type) {
    case StoredType::I8:
    case StoredType::U8:
    case StoredType::I16:
    case StoredType::U16:
        return true;
    case StoredType::Other:
        return dataset.typeText.starts_with("opaque");
    default:
        return false;
    }
}

std::string_view namingAttribute(const DatasetInfo &dataset)
{
    for (const std::string_view key : {"stored_dtype", "dtype", "torch_dtype", "original_dtype"})
        if (dataset.attributes.count(std::string(key)) > 0)
            return key;
    return {};
}

} // namespace

std::optional<StoredType> storedTypeByName(std::string_view name)
{
    std::string lower(name);
    std::transform(lower.begin(), lower.end(), lower.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    for (const std::string_view prefix : {"torch.", "numpy.", "np.", "<class 'numpy.", "ml_dtypes."})
        if (lower.starts_with(prefix))
            lower.erase(0, prefix.size());
    while (!lower.empty() && (lower.back() == '>' || lower.back() == '\''))
        lower.pop_back();
    const auto *const found = std::find_if(kNames.begin(), kNames.end(), [&](const NameRow &row) { return row.name == lower; });
    return found == kNames.end() ? std::nullopt : std::optional(found->type);
}

DatasetInfo withStoredDtype(const DatasetInfo &dataset, std::vector<std::string> &notes)
{
    DatasetInfo out = dataset;
    const std::string_view key = namingAttribute(dataset);
    if (key.empty() && dataset.type == StoredType::Other && dataset.typeText == "opaque of 2 bytes") {
        // float16 has a type of its own, so nothing but ml_dtypes' bfloat16 ends up like this.
        out.type = StoredType::Bf16;
        notes.push_back(printable(dataset.path) + ": opaque of 2 bytes without a dtype, read as bfloat16");
    }
    if (key.empty())
        return out;
    const std::string name = AttributeReader(dataset.path, dataset.attributes, notes).text(key);
    if (name.empty())
        return out;
    const std::optional<StoredType> named = storedTypeByName(name);
    const auto note = [&](const std::string &what) {
        notes.push_back(printable(dataset.path) + ": " + std::string(key) + " " + what);
    };
    if (!named) {
        note("names the unknown type '" + printable(name) + "'; read as " + dataset.typeText);
    } else if (*named != dataset.type) {
        if (isRawStorage(dataset) && byteSize(*named) == dataset.elementBytes)
            out.type = *named;
        else
            note("says " + std::string(nameOf(*named)) + ", the data are " + dataset.typeText + "; read as stored");
    }
    return out;
}

} // namespace planish
