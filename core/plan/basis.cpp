#include "core/plan/basis.h"

#include <algorithm>
#include <array>

#include "core/plan/hashes.h"

namespace planish {

namespace {

/// Types a dump may have held the same values in: as stored, then all tensors in one type, then vectors in another than matrices.
constexpr std::array<StoredType, 4> kTypes = {StoredType::F16, StoredType::Bf16, StoredType::F32, StoredType::F64};

struct Types {
    std::optional<StoredType> matrix, vector; ///< nullopt = as stored
};

/// Values of a dump name as one row-major array in the type asked for.
Expected<void> addByDumpName(BasisHasher &hasher, const FoldMap &map, const std::string &name, const Types &types)
{
    const ResolvedTensor *tensor = map.weights().find({name});
    auto matrix = map.weights().read({name});
    if (!matrix)
        return tl::make_unexpected(matrix.error());
    const bool vector = tensor->shape.size() == 1;
    const std::string owner = name.ends_with(".bias") ? name.substr(0, name.size() - 5) : name;
    // A dump hands out norms as doubles without the type they were stored in.
    const StoredType type = map.isNorm(owner) ? StoredType::F64 : (vector ? types.vector : types.matrix).value_or(tensor->storedType);
    const std::vector<std::uint64_t> shape = vector ? std::vector<std::uint64_t>{matrix->cols()}
                                                    : std::vector<std::uint64_t>{matrix->rows(), matrix->cols()};
    hasher.add(name, type, shape, encodeStored(matrix->values(), type));
    return {};
}

Expected<std::string> basisByDumpNames(const FoldMap &map, const Types &types)
{
    BasisHasher hasher;
    for (const std::string &name : map.changed()) {
        if (auto added = addByDumpName(hasher, map, name, types); !added)
            return tl::make_unexpected(added.error());
    }
    return hasher.text();
}

} // namespace

std::vector<std::string> storedNames(const FoldMap &map)
{
    std::vector<std::string> names;
    for (const std::string &name : map.changed()) {
        const ResolvedTensor *tensor = map.weights().find({name});
        if (tensor && !tensor->checkpointName.empty())
            names.push_back(tensor->checkpointName);
    }
    std::sort(names.begin(), names.end());
    names.erase(std::unique(names.begin(), names.end()), names.end());
    return names;
}

Expected<std::string> basisOf(const FoldMap &map, BasisNames names)
{
    const auto &checkpoint = map.weights().checkpoint();
    if (checkpoint && names == BasisNames::OfSource)
        return basisHash(*checkpoint, storedNames(map));
    return basisByDumpNames(map, {});
}

Expected<void> checkBasis(const Plan &plan, const FoldMap &map, const std::string &subject)
{
    if (map.changed().empty())
        return {};
    auto same = [&](const Expected<std::string> &hash) -> Expected<bool> {
        if (!hash)
            return tl::make_unexpected(hash.error());
        return *hash == plan.basisIn;
    };
    const bool fromDump = plan.source.checkpoint.empty();
    auto found = same(basisOf(map, fromDump ? BasisNames::DumpNames : BasisNames::OfSource));
    if (!found)
        return tl::make_unexpected(found.error());
    for (std::size_t i = 0; fromDump && !*found && i < kTypes.size() * kTypes.size(); ++i) {
        found = same(basisByDumpNames(map, {kTypes[i / kTypes.size()], kTypes[i % kTypes.size()]}));
        if (!found)
            return tl::make_unexpected(found.error());
    }
    if (*found)
        return {};
    return refusal(subject, "its tensors are not those the plan was made from (basis differs)", "expected basis " + plan.basisIn, "basis_mismatch");
}

} // namespace planish
