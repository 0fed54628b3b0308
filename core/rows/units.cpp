#include "core/rows/units.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "core/io/file_key.h"

namespace planish {

namespace {

constexpr std::size_t kFewestUnits = 3; ///< calibration, held-out and sealed need one each

template <class Value> bool holds(const std::vector<Value> &values, Value value)
{
    return std::ranges::find(values, value) != values.end();
}

std::vector<Unit> unitsByRequest(const TokenTable &tokens, const std::vector<std::int64_t> &counted)
{
    std::vector<Unit> units;
    std::map<std::int32_t, std::size_t> place;
    for (const std::int64_t token : counted) {
        const std::int32_t request = tokens.hasRequest ? tokens.request[static_cast<std::size_t>(token)] : 0;
        const auto [found, isNew] = place.emplace(request, units.size());
        if (isNew)
            units.push_back({std::to_string(request), request, {}});
        units[found->second].tokens.push_back(token);
    }
    return units;
}

/// Each request cut into blocks of consecutive counted rows; the last block of a request may be short.
std::vector<Unit> blocksOf(const std::vector<Unit> &requests, std::size_t rows)
{
    const std::size_t size = std::clamp<std::size_t>((rows + 11) / 12, 16, 64);
    std::vector<Unit> blocks;
    for (const Unit &request : requests)
        for (std::size_t begin = 0; begin < request.tokens.size(); begin += size) {
            const std::size_t end = std::min(begin + size, request.tokens.size());
            const auto first = request.tokens.begin();
            blocks.push_back({request.id + "/" + std::to_string(begin / size),
                              request.request,
                              {first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end)}});
        }
    return blocks;
}

} // namespace

bool isCounted(const TokenTable &tokens, std::size_t token, const RowRequest &request)
{
    if (token < tokens.mask.size() && tokens.mask[token] == 0)
        return false;
    const int phase = token < tokens.phase.size() ? tokens.phase[token] : 0;
    if ((request.phase == Phase::Prefill && phase != 0) || (request.phase == Phase::Decode && phase != 1))
        return false;
    if (token < tokens.position.size() && holds(request.skipPositions, tokens.position[token]))
        return false;
    return !(tokens.hasId && token < tokens.id.size() && holds(request.skipIds, tokens.id[token]));
}

UnitList formUnits(const TokenTable &tokens, const RowRequest &request)
{
    std::vector<std::int64_t> counted;
    for (std::size_t token = 0; token < tokens.size(); ++token)
        if (isCounted(tokens, token, request))
            counted.push_back(static_cast<std::int64_t>(token));
    std::vector<Unit> requests = unitsByRequest(tokens, counted);
    if (tokens.hasRequest && requests.size() >= kFewestUnits)
        return {SplitUnit::Request, std::move(requests)};
    return {SplitUnit::Block, blocksOf(requests, counted.size())};
}

std::vector<std::int32_t> hashedOrder(const std::vector<Unit> &units, std::uint64_t seed)
{
    std::vector<std::pair<std::string, std::int32_t>> keyed;
    for (std::size_t i = 0; i < units.size(); ++i)
        keyed.emplace_back(sha256Hex(std::to_string(seed) + ":" + units[i].id), static_cast<std::int32_t>(i));
    std::ranges::sort(keyed);
    std::vector<std::int32_t> order;
    for (const auto &[hash, unit] : keyed)
        order.push_back(unit);
    return order;
}

} // namespace planish
