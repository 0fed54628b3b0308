// External scores of edges (KL, perplexity) that stand beside the measured damage: `edge,name,value`. cli.md `--join`.
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>

#include "core/evaluate/sensitivity.h"

namespace planish {

namespace {

tl::unexpected<Error> badLine(const std::string &file, std::size_t number, const std::string &what)
{
    return dataError(file, "line " + std::to_string(number) + " " + what, "edge,name,value with a finite number");
}

/// Both halves of the text around its last comma; an edge id holds none, a name may.
bool splitLast(const std::string &text, std::string &head, std::string &tail)
{
    const std::size_t comma = text.rfind(',');
    if (comma == std::string::npos)
        return false;
    head = text.substr(0, comma);
    tail = text.substr(comma + 1);
    return true;
}

} // namespace

Expected<Scores> parseScores(const std::string &text, const std::string &file)
{
    Scores scores;
    std::istringstream lines(text);
    std::string line, head, value;
    for (std::size_t number = 1; std::getline(lines, line); ++number) {
        if (!line.empty() && line.back() == '\r')
            line.pop_back();
        if (line.empty() || (number == 1 && line == "edge,name,value"))
            continue;
        const std::size_t comma = line.find(',');
        if (!splitLast(line, head, value) || comma == line.rfind(',') || comma == 0)
            return badLine(file, number, "does not have three fields");
        double score = 0;
        const auto [end, code] = std::from_chars(value.data(), value.data() + value.size(), score);
        if (code != std::errc() || end != value.data() + value.size() || !std::isfinite(score))
            return badLine(file, number, "has no number in its third field");
        scores[line.substr(0, comma)][head.substr(comma + 1)] = score;
    }
    return scores;
}

Expected<Scores> readScores(const std::string &file)
{
    std::ifstream stream(file, std::ios::binary);
    if (!stream)
        return dataError(file, "cannot be read", "a CSV file edge,name,value");
    std::ostringstream text;
    text << stream.rdbuf();
    return parseScores(text.str(), file);
}

} // namespace planish
