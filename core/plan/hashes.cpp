#include "core/plan/hashes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "core/io/number_decode.h"
#include "core/io/safetensors.h"
#include "core/plan/plan.h"

namespace planish {

namespace {

void addLittleEndian(Sha256 &hash, std::uint64_t value, std::size_t bytes)
{
    std::array<std::byte, 8> buffer;
    for (std::size_t i = 0; i < bytes; ++i)
        buffer[i] = static_cast<std::byte>(value >> (8 * i) & 0xff);
    hash.add(std::span<const std::byte>(buffer.data(), bytes));
}

} // namespace

std::string rowsSha256(const TokenTable &tokens, const std::vector<std::int64_t> &tokenRows)
{
    Sha256 hash;
    for (std::int64_t row : tokenRows) {
        const auto i = static_cast<std::size_t>(row);
        const std::int32_t request = i < tokens.request.size() ? tokens.request[i] : 0;
        const std::int32_t position = i < tokens.position.size() ? tokens.position[i] : static_cast<std::int32_t>(row);
        const std::int32_t id = i < tokens.id.size() ? tokens.id[i] : -1;
        for (std::int32_t value : {request, position, id})
            addLittleEndian(hash, static_cast<std::uint32_t>(value), 4);
    }
    return hash.hex();
}

void BasisHasher::add(std::string_view name, StoredType type, std::span<const std::uint64_t> shape, std::span<const std::byte> bytes)
{
    const std::string_view dtype = safetensorsName(type);
    addLittleEndian(m_hash, name.size(), 8);
    m_hash.add(name);
    addLittleEndian(m_hash, dtype.size(), 8);
    m_hash.add(dtype);
    addLittleEndian(m_hash, shape.size(), 8);
    for (std::uint64_t dimension : shape)
        addLittleEndian(m_hash, dimension, 8);
    addLittleEndian(m_hash, bytes.size(), 8);
    m_hash.add(bytes);
}

std::string BasisHasher::text()
{
    return "sha256:" + m_hash.hex();
}

Expected<std::string> basisHash(const Checkpoint &checkpoint, const std::vector<std::string> &names)
{
    std::vector<std::string> sorted = names;
    std::sort(sorted.begin(), sorted.end());
    sorted.erase(std::unique(sorted.begin(), sorted.end()), sorted.end());
    BasisHasher hasher;
    for (const std::string &name : sorted) {
        const StoredTensor *tensor = checkpoint.info().find(name);
        if (!tensor)
            return refusal(checkpoint.info().path, "has no tensor " + name, "expected the checkpoint the plan was made from",
                           "basis_mismatch");
        auto bytes = checkpoint.readRaw(*tensor);
        if (!bytes)
            return tl::make_unexpected(bytes.error());
        hasher.add(name, tensor->type, tensor->shape, *bytes);
    }
    return hasher.text();
}

std::vector<std::byte> encodeStored(std::span<const double> values, StoredType type)
{
    std::vector<std::byte> out(values.size() * byteSize(type));
    narrow(values, type, out);
    return out;
}

double largestFinite(StoredType type)
{
    switch (type) {
    case StoredType::F16: return std::nextafter(65520.0, 0.0);
    case StoredType::Bf16: return std::nextafter(std::ldexp(511.0 / 256.0, 127), 0.0);
    case StoredType::F32: return std::numeric_limits<float>::max();
    default: return std::numeric_limits<double>::max();
    }
}

} // namespace planish
