#include <algorithm>
#include <set>

#include "core/names/name_pattern.h"
#include "core/names/resolve_parts.h"

namespace planish {

namespace {

/// One way a stored name becomes a dump name: the family's pattern or that of its bias.
struct Way {
    const std::string *dumpPattern;
    const NamePattern *pattern;
    std::string stored;
    std::size_t rank; ///< position among the patterns of one dump name; lower wins
    bool bias;
};

std::vector<Way> waysOf(const Family &family)
{
    std::vector<Way> ways;
    for (const auto &[dumpPattern, patterns] : family.names)
        for (std::size_t i = 0; i < patterns.size(); ++i) {
            const NamePattern &pattern = patterns[i];
            if (pattern.pattern.empty())
                continue;
            ways.push_back({&dumpPattern, &pattern, pattern.pattern, i, false});
            const std::string bias = biasOfStored(pattern.pattern);
            if (!bias.empty())
                ways.push_back({&dumpPattern, &pattern, bias, i, true});
        }
    return ways;
}

bool needsExpert(const std::string &pattern)
{
    return pattern.find("{e}") != std::string::npos;
}

class Collector {
public:
    Collector(const Family *family, const RowVariables &variables, CheckpointNames &out)
        : m_family(family), m_variables(variables), m_out(out)
    {
        if (family)
            m_ways = waysOf(*family);
    }

    Expected<void> add(const StoredTensor &tensor)
    {
        bool taken = false;
        for (std::size_t p = 0; m_family && p < m_family->prefixes.size(); ++p) {
            const std::string &prefix = m_family->prefixes[p];
            if (!std::string_view(tensor.name).starts_with(prefix))
                continue;
            const std::string_view rest = std::string_view(tensor.name).substr(prefix.size());
            for (const Way &way : m_ways)
                if (const auto numbers = matchPattern(way.stored, rest)) {
                    taken = true;
                    if (const auto done = take(tensor, way, *numbers); !done)
                        return done;
                }
        }
        if (!taken)
            m_out.unmatched.push_back(tensor.name);
        return {};
    }

private:
    Expected<void> take(const StoredTensor &tensor, const Way &way, PatternNumbers numbers)
    {
        // A stacked tensor [experts, rows, channels] holds every expert under one name.
        const bool stacked = needsExpert(*way.dumpPattern) && numbers.expert < 0;
        if (stacked && tensor.shape.size() < 2) {
            m_out.notes.push_back(tensor.name + ": is no stack of experts; left out");
            return {};
        }
        const std::int64_t experts = stacked ? static_cast<std::int64_t>(tensor.shape[0]) : 1;
        for (std::int64_t e = 0; e < experts; ++e) {
            if (stacked)
                numbers.expert = e;
            if (const auto done = takeOne(tensor, way, numbers, stacked); !done)
                return done;
        }
        return {};
    }

    Expected<void> takeOne(const StoredTensor &tensor, const Way &way, PatternNumbers numbers, bool stacked)
    {
        const std::string name = fillPattern(*way.dumpPattern, numbers) + (way.bias ? ".bias" : "");
        const auto known = m_rank.find(name);
        if (known != m_rank.end() && known->second <= way.rank)
            return {};
        ResolvedTensor resolved;
        resolved.name = {name};
        resolved.checkpointName = tensor.name;
        resolved.storedType = tensor.type;
        std::vector<std::uint64_t> shape = tensor.shape;
        std::int64_t first = 0;
        if (stacked) {
            first = numbers.expert * static_cast<std::int64_t>(shape[1]);
            shape.erase(shape.begin());
        }
        resolved.transposed = way.pattern->inOut && shape.size() == 2;
        if (resolved.transposed)
            std::swap(shape[0], shape[1]);
        const auto rows = rowsOfPattern(*way.pattern, m_variables, shape, tensor.name);
        if (!rows) { // heads unknown: the part cannot be named, the whole tensor still can
            m_out.notes.push_back(toText(rows.error()) + ": " + name + " left out");
            return {};
        }
        resolved.rows = *rows;
        if (resolved.rows.end >= 0)
            shape[0] = rowCount(resolved.rows);
        if (stacked) {
            const std::int64_t end = resolved.rows.end < 0 ? static_cast<std::int64_t>(shape[0]) : resolved.rows.end;
            resolved.rows.end = first + end;
            resolved.rows.begin += first;
        }
        resolved.shape = shape;
        m_rank[name] = way.rank;
        m_out.tensors[name] = std::move(resolved);
        return {};
    }

    const Family *m_family;
    const RowVariables &m_variables;
    CheckpointNames &m_out;
    std::vector<Way> m_ways;
    std::map<std::string, std::size_t> m_rank;
};

bool isDumpName(const Family &family, const std::string &name)
{
    return std::any_of(family.names.begin(), family.names.end(),
                       [&](const auto &entry) { return matchPattern(entry.first, name).has_value(); });
}

/// Names no pattern took that are a dump name as they stand; a native dump used as a checkpoint has them below /weights.
void takeExactNames(const CheckpointInfo &info, const Family *family, const std::vector<std::string> &wanted,
                    CheckpointNames &out)
{
    std::vector<std::string> left;
    for (const std::string &stored : out.unmatched) {
        std::string name = stored;
        std::string suffix;
        for (const auto &[folder, end] : {std::pair<std::string_view, std::string_view>{"/weights/", ""},
                                          {"weights/", ""},
                                          {"/norms/", ""},
                                          {"norms/", ""},
                                          {"/biases/", ".bias"},
                                          {"biases/", ".bias"}})
            if (std::string_view(stored).starts_with(folder)) {
                name = stored.substr(folder.size());
                suffix = end;
                break;
            }
        std::string base = name;
        if (base.ends_with(".bias"))
            base.resize(base.size() - 5);
        const bool fits = std::find(wanted.begin(), wanted.end(), base) != wanted.end() || (family && isDumpName(*family, base));
        const StoredTensor *tensor = info.find(stored);
        if (!fits || !tensor || out.tensors.count(name + suffix)) {
            left.push_back(stored);
            continue;
        }
        ResolvedTensor resolved;
        resolved.name = {name + suffix};
        resolved.checkpointName = stored;
        resolved.storedType = tensor->type;
        resolved.shape = tensor->shape;
        out.tensors[name + suffix] = std::move(resolved);
    }
    out.unmatched = std::move(left);
}

void takeTied(const Family &family, const ModelInfo &model, CheckpointNames &out)
{
    for (const auto &[name, patterns] : family.names)
        for (const NamePattern &pattern : patterns) {
            if (pattern.tiedTo.empty() || out.tensors.count(name))
                continue;
            const auto table = out.tensors.find(pattern.tiedTo);
            if (table == out.tensors.end())
                continue;
            if (!model.tiedEmbeddings)
                out.notes.push_back(name + ": not in the checkpoint; taken to be the table " + table->second.checkpointName);
            ResolvedTensor tied = table->second;
            tied.name = {name};
            tied.tied = true;
            out.tensors[name] = std::move(tied);
        }
}

} // namespace

std::uint64_t rowCount(const RowRangeOfTensor &rows)
{
    const std::int64_t span = rows.end - rows.begin;
    if (rows.stride <= 0)
        return static_cast<std::uint64_t>(span);
    return static_cast<std::uint64_t>((span + rows.stride - rows.block) / rows.stride * rows.block);
}

Expected<RowRangeOfTensor> rowsOfPattern(const NamePattern &pattern, RowVariables variables,
                                         const std::vector<std::uint64_t> &shape, const std::string &where)
{
    RowRangeOfTensor rows;
    if (pattern.rowBegin.empty())
        return rows;
    if (!variables.count("ffn") && !shape.empty() && shape[0] % 2 == 0)
        variables["ffn"] = static_cast<std::int64_t>(shape[0] / 2); // [gate, up] halves whatever the width
    const std::pair<const std::string *, std::int64_t *> parts[] = {{&pattern.rowBegin, &rows.begin},
                                                                    {&pattern.rowEnd, &rows.end},
                                                                    {&pattern.block, &rows.block},
                                                                    {&pattern.stride, &rows.stride}};
    for (const auto &[expression, value] : parts) {
        if (expression->empty())
            continue;
        const auto number = evaluateRows(*expression, variables, where);
        if (!number)
            return tl::make_unexpected(number.error());
        *value = *number;
    }
    const auto available = static_cast<std::int64_t>(shape.empty() ? 0 : shape[0]);
    if (rows.begin < 0 || rows.end <= rows.begin || rows.end > available)
        return dataError(where,
                         "rows [" + std::to_string(rows.begin) + ":" + std::to_string(rows.end) + "] are not inside its " +
                             std::to_string(available) + " rows",
                         "the fused rows of the model's heads were expected");
    return rows;
}

Expected<CheckpointNames> namesOfCheckpoint(const Checkpoint &checkpoint, const Family *family, const RowVariables &variables,
                                            const std::vector<std::string> &wanted, const ModelInfo &model)
{
    CheckpointNames out;
    Collector collector(family, variables, out);
    for (const StoredTensor &tensor : checkpoint.info().tensors)
        if (const auto done = collector.add(tensor); !done)
            return tl::make_unexpected(done.error());
    takeExactNames(checkpoint.info(), family, wanted, out);
    if (family)
        takeTied(*family, model, out);
    return out;
}

std::string dumpNameOf(const Family &family, const std::string &stored)
{
    const std::vector<Way> ways = waysOf(family);
    for (const std::string &prefix : family.prefixes) {
        if (!std::string_view(stored).starts_with(prefix))
            continue;
        for (const Way &way : ways)
            if (way.pattern->rowBegin.empty())
                if (const auto numbers = matchPattern(way.stored, std::string_view(stored).substr(prefix.size())))
                    return fillPattern(*way.dumpPattern, *numbers) + (way.bias ? ".bias" : "");
    }
    return {};
}

} // namespace planish
