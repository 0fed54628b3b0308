#include "core/plan/folded_checkpoint.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "core/io/number_decode.h"
#include "core/io/safetensors.h"
#include "core/names/name_pattern.h"
#include "core/plan/hashes.h"

namespace planish {

namespace {

constexpr std::string_view kBiasSuffix = ".bias";

// transformers builds these linears with biases all together or not at all; the flag stands in config.json.
struct BiasGroup {
    const char *flag;
    std::array<std::string_view, 4> roles;
};
constexpr std::array<BiasGroup, 2> kGroups = {
    BiasGroup{"attention_bias", {"q_proj", "k_proj", "v_proj", "o_proj"}},
    BiasGroup{"mlp_bias", {"gate_proj", "up_proj", "down_proj", ""}},
};

std::string_view roleOf(std::string_view name)
{
    return name.substr(name.rfind('.') + 1);
}

const BiasGroup *groupOf(std::string_view name)
{
    for (const BiasGroup &group : kGroups) {
        if (std::find(group.roles.begin(), group.roles.end(), roleOf(name)) != group.roles.end())
            return &group;
    }
    return nullptr;
}

/// The linear or norm a bias belongs to; empty for a name that is no bias.
std::string ownerOfBias(const std::string &name)
{
    return name.ends_with(kBiasSuffix) ? name.substr(0, name.size() - kBiasSuffix.size()) : std::string();
}

/// Row of the stored tensor that holds logical row r, also where heads are interleaved.
std::size_t storedRow(const RowRangeOfTensor &rows, std::size_t r)
{
    const auto begin = static_cast<std::size_t>(rows.begin);
    if (rows.stride <= 0)
        return begin + r;
    const auto block = static_cast<std::size_t>(rows.block);
    return begin + r / block * static_cast<std::size_t>(rows.stride) + r % block;
}

} // namespace

std::uint64_t OutputTensor::elements() const
{
    std::uint64_t count = 1;
    for (std::uint64_t dimension : slot.shape)
        count *= dimension;
    return count;
}

std::uint64_t OutputTensor::bytes() const
{
    return source && slot.type == source->type ? source->bytes : elements() * byteSize(slot.type);
}

Expected<FoldedCheckpoint> FoldedCheckpoint::build(const FoldMap &map, StoreAs store)
{
    FoldedCheckpoint folded;
    folded.m_map = &map;
    folded.m_store = store;
    const auto &checkpoint = map.weights().checkpoint();
    if (!checkpoint)
        return dataError("apply", "no checkpoint is open", "expected --checkpoint");
    std::vector<const StoredTensor *> order;
    for (const StoredTensor &tensor : checkpoint->info().tensors)
        order.push_back(&tensor);
    std::stable_sort(order.begin(), order.end(),
                     [](const StoredTensor *a, const StoredTensor *b) { return std::tie(a->file, a->offset) < std::tie(b->file, b->offset); });
    for (const StoredTensor *tensor : order) {
        OutputTensor output{{tensor->name, tensor->type, tensor->shape}, tensor->file, tensor, {}, false};
        for (const std::string &name : map.changed()) {
            if (map.weights().find({name})->checkpointName == tensor->name)
                output.dumpNames.push_back(name);
        }
        output.counted = !output.dumpNames.empty();
        if (output.counted && store == StoreAs::F64)
            output.slot.type = StoredType::F64;
        folded.m_tensors.push_back(std::move(output));
    }
    if (auto added = folded.addCreated(); !added)
        return tl::make_unexpected(added.error());
    return folded;
}

Expected<void> FoldedCheckpoint::addCreated()
{
    std::vector<std::pair<std::string, bool>> wanted; ///< linear, carries a shift
    for (const std::string &name : m_map->created())
        wanted.emplace_back(name, true);
    for (const std::string &name : m_map->created()) {
        const BiasGroup *group = groupOf(name);
        if (!group || std::find(m_flags.begin(), m_flags.end(), group->flag) != m_flags.end())
            continue;
        m_flags.push_back(group->flag);
        for (const auto &[other, tensor] : m_map->weights().tensors()) {
            const bool known = std::any_of(wanted.begin(), wanted.end(), [&](const auto &each) { return each.first == other; });
            if (!known && groupOf(other) == group && m_map->weights().biasOf(other).empty() && !tensor.checkpointName.empty())
                wanted.emplace_back(other, false);
        }
    }
    for (const auto &[name, shifted] : wanted) {
        const ResolvedTensor *weight = m_map->weights().find({name});
        const StoredTensor *stored = m_map->weights().checkpoint()->info().find(weight->checkpointName);
        const std::string biasName = biasOfStored(weight->checkpointName);
        if (biasName.empty() || !stored || stored->shape.size() != 2)
            return refusal(name, "a bias would have to be created but has no place in this checkpoint", "expected a linear with a .weight name",
                           "bias_has_no_place");
        auto found = std::find_if(m_tensors.begin(), m_tensors.end(), [&](const OutputTensor &each) { return each.slot.name == biasName; });
        if (found == m_tensors.end()) {
            OutputTensor created;
            created.slot = {biasName, m_store == StoreAs::F64 && shifted ? StoredType::F64 : stored->type,
                            {weight->transposed ? stored->shape[1] : stored->shape[0]}};
            created.file = stored->file;
            const auto behind = std::find_if(m_tensors.begin(), m_tensors.end(), [&](const OutputTensor &each) { return each.source == stored; });
            found = m_tensors.insert(behind + 1, std::move(created));
        }
        if (shifted) {
            found->dumpNames.push_back(name + std::string(kBiasSuffix));
            found->counted = true;
        }
    }
    return {};
}

Expected<MatrixD> FoldedCheckpoint::valuesOf(const std::string &name) const
{
    const bool isBias = !ownerOfBias(name).empty();
    const std::string owner = isBias ? ownerOfBias(name) : name;
    if (m_map->isNorm(owner)) {
        auto norm = m_map->norm(owner);
        if (!norm)
            return tl::make_unexpected(norm.error());
        const std::vector<double> &values = isBias ? norm->bias : norm->gain;
        MatrixD row(1, values.size());
        std::copy(values.begin(), values.end(), row.data());
        return row;
    }
    if (m_cachedName != owner || !m_cached) {
        auto linear = m_map->linear(owner);
        if (!linear)
            return tl::make_unexpected(linear.error());
        m_cached = std::make_shared<const FoldMap::Linear>(std::move(*linear));
        m_cachedName = owner;
    }
    return isBias ? m_cached->bias : m_cached->weight;
}

Expected<void> FoldedCheckpoint::fill(const OutputTensor &tensor, const std::string &name, std::vector<double> &values,
                                      std::vector<std::uint8_t> &touched) const
{
    auto matrix = valuesOf(name);
    if (!matrix)
        return tl::make_unexpected(matrix.error());
    const ResolvedTensor *place = m_map->weights().find({name});
    const ResolvedTensor *owner = place ? place : m_map->weights().find({ownerOfBias(name)});
    const bool vector = tensor.slot.shape.size() == 1;
    const std::size_t width = vector ? 1 : tensor.slot.shape.back();
    const double limit = largestFinite(tensor.slot.type);
    for (std::size_t r = 0; r < matrix->rows(); ++r) {
        for (std::size_t c = 0; c < matrix->cols(); ++c) {
            const double value = (*matrix)(r, c);
            if (!(std::abs(value) <= limit))
                return refusal(tensor.slot.name, "a folded value (" + std::to_string(value) + ") is beyond " + std::string(nameOf(tensor.slot.type)),
                               "expected values the storage type can hold", "overflow");
            const std::size_t row = storedRow(owner->rows, vector ? c : r);
            const std::size_t index = vector ? row : owner->transposed ? c * width + row : row * width + c;
            if (index >= values.size())
                return refusal(tensor.slot.name, "is smaller than the plan needs", "expected the checkpoint the plan was made from", "basis_mismatch");
            values[index] = value;
            touched[index] = 1;
        }
    }
    return {};
}

Expected<std::vector<std::byte>> FoldedCheckpoint::bytesOf(const OutputTensor &tensor) const
{
    std::vector<std::byte> raw;
    if (tensor.source) {
        auto read = m_map->weights().checkpoint()->readRaw(*tensor.source);
        if (!read)
            return tl::make_unexpected(read.error());
        raw = std::move(*read);
    }
    if (tensor.source && tensor.dumpNames.empty())
        return raw;
    const std::size_t size = tensor.elements();
    std::vector<double> values(size, 0.0);
    if (tensor.source)
        widen(raw, tensor.source->type, ByteOrder::Little, std::span<double>(values));
    std::vector<std::uint8_t> touched(size, 0);
    for (const std::string &name : tensor.dumpNames) {
        if (auto filled = fill(tensor, name, values, touched); !filled)
            return tl::make_unexpected(filled.error());
    }
    std::vector<std::byte> bytes = encodeStored(values, tensor.slot.type);
    const std::size_t element = byteSize(tensor.slot.type);
    for (std::size_t i = 0; tensor.source && tensor.source->type == tensor.slot.type && i < size; ++i) {
        if (!touched[i])
            std::memcpy(bytes.data() + i * element, raw.data() + i * element, element);
    }
    return bytes;
}

} // namespace planish
