// What a dump holds under dump names.
#include "core/names/name_pattern.h"
#include "core/names/resolve_parts.h"

namespace planish {

namespace {

ResolvedTensor tensorOfDump(TensorEntry entry, const std::string &name)
{
    ResolvedTensor resolved;
    resolved.name = {name};
    resolved.storedType = entry.storedType;
    resolved.shape = entry.shape;
    resolved.transposed = entry.transposed && entry.shape.size() == 2;
    if (resolved.transposed)
        std::swap(resolved.shape[0], resolved.shape[1]);
    if (entry.rowEnd >= 0 && !resolved.shape.empty())
        resolved.shape[0] = static_cast<std::uint64_t>(entry.rowEnd - entry.rowBegin);
    resolved.inDump = std::move(entry);
    return resolved;
}

/// Parts of fused weights (and of their biases) the family names: q, k, v of a c_attn the dump holds whole.
void addParts(const Family &family, const RowVariables &variables, TensorMap &tensors)
{
    TensorMap parts;
    for (const auto &[wholePattern, ways] : family.names)
        for (const auto &[name, whole] : tensors) {
            const auto numbers = matchPattern(wholePattern, name);
            if (!numbers || !ways.front().rowBegin.empty() || !whole.rows.whole())
                continue;
            for (const auto &[partPattern, partWays] : family.names) {
                const NamePattern &way = partWays.front();
                const std::string part = fillPattern(partPattern, *numbers);
                if (way.rowBegin.empty() || way.pattern != ways.front().pattern || part.empty() || tensors.count(part))
                    continue;
                const auto rows = rowsOfPattern(way, variables, whole.shape, name);
                if (!rows)
                    continue; // heads unknown: the part has no rows to name
                const auto add = [&](ResolvedTensor tensor, const std::string &as) {
                    tensor.name = {as};
                    tensor.rows = *rows;
                    tensor.shape[0] = rowCount(*rows);
                    parts.emplace(as, std::move(tensor));
                };
                add(whole, part);
                if (const auto bias = tensors.find(name + ".bias"); bias != tensors.end() && !bias->second.shape.empty())
                    add(bias->second, part + ".bias");
            }
        }
    tensors.merge(parts);
}

} // namespace

TensorMap namesOfDump(const DumpInfo &info, const Family *family, const RowVariables &variables)
{
    TensorMap out;
    const auto add = [&](const TensorEntry &entry, const std::string &name) { out.emplace(name, tensorOfDump(entry, name)); };
    std::map<std::string, const TensorEntry *> biases;
    for (const TensorEntry &bias : info.biases) {
        biases.emplace(bias.name.value, &bias);
        biases.emplace(bias.path, &bias);
    }
    for (const TensorEntry &weight : info.weights) {
        std::vector<std::string> names{weight.name.value};
        if (const std::string canonical = family ? dumpNameOf(*family, weight.name.value) : std::string(); !canonical.empty())
            names.push_back(canonical);
        const auto bias = biases.find(weight.bias.empty() ? weight.name.value : weight.bias);
        for (const std::string &name : names) {
            add(weight, name);
            if (bias != biases.end())
                add(*bias->second, name + ".bias");
        }
    }
    for (const auto &[name, norm] : info.norms) {
        TensorEntry entry; // no path: its values are in info.norms
        entry.name = {name};
        entry.file = info.file;
        entry.storedType = StoredType::F64;
        entry.shape = {norm.gain.size()};
        add(entry, name);
        if (!norm.bias.empty())
            add(entry, name + ".bias");
    }
    if (family)
        addParts(*family, variables, out);
    return out;
}

} // namespace planish
