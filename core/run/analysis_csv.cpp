#include "core/run/analysis_csv.h"

#include <cmath>
#include <cstdio>
#include <filesystem>

#include "core/io/atomic_file.h"
#include "core/run/analysis_fields.h"

namespace planish {

namespace {

std::string number(std::optional<double> value)
{
    if (!value || !std::isfinite(*value))
        return {};
    char text[40];
    std::snprintf(text, sizeof text, "%.17g", *value);
    return text;
}

// RFC 4180: quoted when it holds a comma, a quote or a line end.
std::string quoted(const std::string &text)
{
    if (text.find_first_of(",\"\r\n") == std::string::npos)
        return text;
    std::string out = "\"";
    for (char c : text)
        out += c == '"' ? std::string("\"\"") : std::string(1, c);
    return out + "\"";
}

// An edge id may hold characters that are not for file names.
std::string fileNameOf(const std::string &edge)
{
    std::string name = edge;
    for (char &c : name)
        if (c == '/' || c == '\\' || static_cast<unsigned char>(c) < 0x20)
            c = '_';
    return name;
}

} // namespace

std::string channelsCsv(const EdgeAnalysis &edge)
{
    const Statistics &s = *edge.statistics;
    std::string text = "channel";
    for (const ChannelField &field : channelFields())
        text += std::string(",") + field.name;
    const bool weights = !edge.weightMax.empty();
    text += weights ? ",weight_max,weight_energy\n" : "\n";
    for (std::size_t k = 0; k < s.channels; ++k) {
        text += std::to_string(k);
        for (const ChannelField &field : channelFields())
            text += "," + number(field.value(s, k));
        if (weights)
            text += "," + number(edge.weightMax[k]) + "," + number(edge.weightEnergy[k]);
        text += "\n";
    }
    return text;
}

std::string tokensCsv(const EdgeAnalysis &edge)
{
    const Statistics &s = *edge.statistics;
    const bool labels = !s.token.request.empty();
    std::string text = labels ? "row,request,position" : "row";
    for (const TokenField &field : tokenFields())
        text += std::string(",") + field.name;
    text += "\n";
    for (std::size_t r = 0; r < s.token.row.size(); ++r) {
        text += std::to_string(s.token.row[r]);
        if (labels)
            text += "," + std::to_string(s.token.request[r]) + "," + std::to_string(s.token.position[r]);
        for (const TokenField &field : tokenFields())
            text += "," + number(field.value(s, r));
        text += "\n";
    }
    return text;
}

std::string findingsCsv(const Analysis &analysis)
{
    std::string text = "id,kind,edge,where,rule,comparator,threshold,scope,value,sharing,stability,evidence,soft\n";
    for (const EdgeAnalysis &edge : analysis.edges)
        for (const Finding &f : edge.findings) {
            for (const std::string &cell :
                 {f.id, f.kind, edge.edge.value, f.where.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                  f.rule.text, f.rule.comparator, number(f.rule.threshold), f.rule.scope, number(f.value), f.sharing,
                  number(f.stability), f.evidence})
                text += quoted(cell) + ",";
            text += f.soft ? "true\n" : "false\n";
        }
    return text;
}

Expected<std::vector<std::string>> writeAnalysisCsv(const Analysis &analysis, const std::string &folder)
{
    std::error_code code;
    std::filesystem::create_directories(folder, code);
    if (code)
        return dataError(folder, "the folder cannot be made (" + code.message() + ")", "a folder that can be written");
    std::vector<std::string> written;
    const auto write = [&](const std::string &name, const std::string &text) -> Expected<void> {
        written.push_back((std::filesystem::path(folder) / name).string());
        return writeFileAtomically(written.back(), text);
    };
    for (const EdgeAnalysis &edge : analysis.edges) {
        const std::string base = fileNameOf(edge.edge.value);
        if (auto done = write(base + ".channels.csv", channelsCsv(edge)); !done)
            return tl::make_unexpected(done.error());
        if (auto done = write(base + ".tokens.csv", tokensCsv(edge)); !done)
            return tl::make_unexpected(done.error());
    }
    if (auto done = write("findings.csv", findingsCsv(analysis)); !done)
        return tl::make_unexpected(done.error());
    return written;
}

} // namespace planish
