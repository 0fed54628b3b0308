// SHA-256 of what a plan promises: the rows of a part and the basis of a checkpoint. plan.md "Basis".
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/io/checkpoint.h"
#include "core/io/dump.h"
#include "core/io/file_key.h"

namespace planish {

/// (request, position, id) as int32 little-endian of token-table rows, in the order given.
std::string rowsSha256(const TokenTable &tokens, const std::vector<std::int64_t> &tokenRows);

/// Adds tensors one by one, by the caller in ascending byte order of names, and yields "sha256:…".
class BasisHasher {
public:
    void add(std::string_view name, StoredType type, std::span<const std::uint64_t> shape, std::span<const std::byte> bytes);
    std::string text();

private:
    Sha256 m_hash;
};

/// Doubles encoded as a stored type, round half to even, little-endian. Values beyond the type become infinite: check first.
std::vector<std::byte> encodeStored(std::span<const double> values, StoredType type);
/// Largest magnitude that still rounds to a finite number of a float type.
double largestFinite(StoredType type);

} // namespace planish
