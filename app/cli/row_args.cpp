// The `[rows]` flags of cli.md as a RowRequest.
#include <charconv>

#include "app/cli/args.h"

namespace planish::cli {

namespace {

template <class T>
bool parseNumber(std::string_view text, T &value)
{
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
    return code == std::errc() && end == text.data() + text.size();
}

std::vector<std::string> splitText(const std::string &text, char separator)
{
    std::vector<std::string> parts;
    std::size_t begin = 0;
    while (begin <= text.size()) {
        const std::size_t end = std::min(text.find(separator, begin), text.size());
        parts.push_back(text.substr(begin, end - begin));
        begin = end + 1;
    }
    return parts;
}

Expected<std::vector<std::int32_t>> parseIntegers(const std::string &text, const std::string &flag)
{
    std::vector<std::int32_t> values;
    if (text.empty())
        return values;
    for (const std::string &part : splitText(text, ',')) {
        std::int32_t value = 0;
        if (!parseNumber(std::string_view(part), value))
            return usageError(flag + " " + text, "`" + part + "` is no integer", "integers separated by commas");
        values.push_back(value);
    }
    return values;
}

} // namespace

Expected<std::vector<RowRange>> parseRanges(const std::string &text, const std::string &flag)
{
    std::vector<RowRange> ranges;
    for (const std::string &part : splitText(text, ',')) {
        const auto ends = splitText(part, ':');
        RowRange range;
        if (ends.size() != 2 || !parseNumber(std::string_view(ends[0]), range.first) || !parseNumber(std::string_view(ends[1]), range.second) ||
            range.first < 0 || range.second <= range.first)
            return usageError(flag + " " + text, "`" + part + "` is no range of rows", "A:B[,C:D] with 0 <= A < B");
        ranges.push_back(range);
    }
    return ranges;
}

Expected<RowRequest> rowRequest(const Arguments &a)
{
    RowRequest request;
    if (!(a.calibration > 0.0 && a.calibration < 1.0))
        return usageError("--calibration", "the share must lie inside 0 and 1", "for example .5");
    request.calibration = a.calibration;
    request.splitSeed = a.splitSeed;
    if (a.rows == "all")
        request.budget = -1;
    else if (!parseNumber(std::string_view(a.rows), request.budget) || request.budget < 1)
        return usageError("--rows " + a.rows, "no number of rows", "a positive integer or `all`");
    if (a.phase == "prefill")
        request.phase = Phase::Prefill;
    else if (a.phase == "decode")
        request.phase = Phase::Decode;
    else if (a.phase != "both")
        return usageError("--phase " + a.phase, "unknown phase", "prefill, decode or both");
    auto positions = parseIntegers(a.skipPositions, "--skip-positions");
    if (!positions)
        return tl::make_unexpected(positions.error());
    auto ids = parseIntegers(a.skipIds, "--skip-ids");
    if (!ids)
        return tl::make_unexpected(ids.error());
    request.skipPositions = *positions;
    request.skipIds = *ids;
    if (a.noBos && request.skipPositions.empty())
        request.skipPositions.push_back(0);
    if (a.fitRows.empty() != a.scoreRows.empty())
        return usageError(a.fitRows.empty() ? "--score-rows" : "--fit-rows", "given alone", "--fit-rows and --score-rows together");
    if (!a.fitRows.empty()) {
        auto fit = parseRanges(a.fitRows, "--fit-rows");
        auto score = parseRanges(a.scoreRows, "--score-rows");
        if (!fit)
            return tl::make_unexpected(fit.error());
        if (!score)
            return tl::make_unexpected(score.error());
        request.fitRows = *fit;
        request.scoreRows = *score;
        request.budget = -1;
    }
    return request;
}

} // namespace planish::cli
