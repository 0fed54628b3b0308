#include "core/io/hdf5_types.h"

#include <hdf5.h>

#include <array>

#include "core/io/hdf5_handle.h"
#include "core/io/printable.h"

namespace planish {

namespace {

struct FloatFields {
    std::size_t size, sign, exponentAt, exponentBits, mantissaAt, mantissaBits, bias;
    bool operator==(const FloatFields &) const = default;
};

struct FloatRow {
    FloatFields fields;
    StoredType type;
};

// 4-bit exponents are read as machine learning writes them (e4m3fn: 448 is finite), not as IEEE.
constexpr std::array<FloatRow, 8> kFloats{{{{2, 15, 10, 5, 0, 10, 15}, StoredType::F16},
                                           {{2, 15, 7, 8, 0, 7, 127}, StoredType::Bf16},
                                           {{4, 31, 23, 8, 0, 23, 127}, StoredType::F32},
                                           {{8, 63, 52, 11, 0, 52, 1023}, StoredType::F64},
                                           {{1, 7, 3, 4, 0, 3, 7}, StoredType::Fp8E4M3},
                                           {{1, 7, 2, 5, 0, 2, 15}, StoredType::Fp8E5M2},
                                           {{1, 7, 3, 4, 0, 3, 8}, StoredType::Fp8E4M3Fnuz},
                                           {{1, 7, 2, 5, 0, 2, 16}, StoredType::Fp8E5M2Fnuz}}};

StoredType integerType(std::size_t size, bool isSigned)
{
    switch (size) {
    case 1:
        return isSigned ? StoredType::I8 : StoredType::U8;
    case 2:
        return isSigned ? StoredType::I16 : StoredType::U16;
    case 4:
        return isSigned ? StoredType::I32 : StoredType::U32;
    case 8:
        return isSigned ? StoredType::I64 : StoredType::U64;
    default:
        return StoredType::Other;
    }
}

void describeFloat(std::int64_t typeId, Hdf5Type &out)
{
    FloatFields fields{};
    H5Tget_fields(typeId, &fields.sign, &fields.exponentAt, &fields.exponentBits, &fields.mantissaAt, &fields.mantissaBits);
    fields.size = out.elementBytes;
    fields.bias = H5Tget_ebias(typeId);
    const bool whole = H5Tget_precision(typeId) == 8 * fields.size && H5Tget_offset(typeId) == 0;
    for (const FloatRow &row : kFloats)
        if (whole && row.fields == fields)
            out.type = row.type;
    out.text = out.type != StoredType::Other
                   ? std::string(nameOf(out.type))
                   : "float of " + std::to_string(8 * fields.size) + " bits with " + std::to_string(fields.exponentBits) +
                         " exponent and " + std::to_string(fields.mantissaBits) + " mantissa bits";
}

void describeInteger(std::int64_t typeId, Hdf5Type &out)
{
    const bool whole = H5Tget_precision(typeId) == 8 * out.elementBytes && H5Tget_offset(typeId) == 0;
    if (whole)
        out.type = integerType(out.elementBytes, H5Tget_sign(typeId) == H5T_SGN_2);
    out.text = out.type != StoredType::Other ? std::string(nameOf(out.type))
                                             : "integer of " + std::to_string(H5Tget_precision(typeId)) + " bits";
}

/// NumPy's bool is an enum of two names over int8.
void describeEnum(std::int64_t typeId, Hdf5Type &out)
{
    out.text = "enum of " + std::to_string(H5Tget_nmembers(typeId)) + " names";
    if (out.elementBytes != 1 || H5Tget_nmembers(typeId) != 2)
        return;
    char *first = H5Tget_member_name(typeId, 0);
    if (first != nullptr && std::string_view(first) == "FALSE") {
        out.type = StoredType::Bool;
        out.text = "bool";
    }
    H5free_memory(first);
}

void describeCompound(std::int64_t typeId, Hdf5Type &out)
{
    constexpr int kShown = 6;
    constexpr int kMost = 256;
    const int members = H5Tget_nmembers(typeId);
    std::string names;
    for (int i = 0; i < members && i < kMost; ++i) {
        const auto index = static_cast<unsigned>(i);
        char *name = H5Tget_member_name(typeId, index);
        if (i < kShown)
            names += (i > 0 ? ", " : "") + printable(name != nullptr ? name : "?");
        const Hdf5Handle member(H5Tget_member_type(typeId, index), H5Tclose);
        const H5T_class_t kind = H5Tget_member_class(typeId, index);
        if (name != nullptr && member && (kind == H5T_INTEGER || kind == H5T_FLOAT || kind == H5T_ENUM)) {
            const Hdf5Type described = describeType(member.get());
            if (byteSize(described.type) > 0)
                out.members.push_back({name, H5Tget_member_offset(typeId, index), described.type, described.order});
        }
        H5free_memory(name);
    }
    if (members > kShown)
        names += ", …";
    out.text = (names == "r, i" ? "complex, a compound {" : "compound {") + names + "}";
}

void describeText(std::int64_t typeId, Hdf5Type &out)
{
    out.type = StoredType::Text;
    out.variableText = H5Tis_variable_str(typeId) > 0;
    out.text = out.variableText ? "text" : "text of " + std::to_string(out.elementBytes) + " bytes";
}

std::string sequenceText(std::int64_t typeId)
{
    const Hdf5Handle base(H5Tget_super(typeId), H5Tclose);
    return base ? describeType(base.get()).text : "unknown type";
}

} // namespace

Hdf5Type describeType(std::int64_t typeId)
{
    Hdf5Type out;
    out.elementBytes = H5Tget_size(typeId);
    out.order = H5Tget_order(typeId) == H5T_ORDER_BE ? ByteOrder::Big : ByteOrder::Little;
    switch (H5Tget_class(typeId)) {
    case H5T_FLOAT:
        describeFloat(typeId, out);
        break;
    case H5T_INTEGER:
        describeInteger(typeId, out);
        break;
    case H5T_ENUM:
        describeEnum(typeId, out);
        break;
    case H5T_STRING:
        describeText(typeId, out);
        break;
    case H5T_COMPOUND:
        describeCompound(typeId, out);
        break;
    case H5T_REFERENCE:
        out.text = H5Tequal(typeId, H5T_STD_REF_DSETREG) > 0 ? "region reference" : "object reference";
        break;
    case H5T_OPAQUE:
        out.text = "opaque of " + std::to_string(out.elementBytes) + " bytes";
        break;
    case H5T_VLEN:
        out.text = "variable-length rows of " + sequenceText(typeId);
        break;
    case H5T_ARRAY:
        out.text = "array of " + sequenceText(typeId);
        break;
    case H5T_BITFIELD:
        out.text = "bit field of " + std::to_string(out.elementBytes) + " bytes";
        break;
    default:
        out.text = "unknown type";
    }
    return out;
}

} // namespace planish
