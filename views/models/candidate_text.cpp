#include "views/models/candidate_text.h"

#include <algorithm>

#include "views/models/number_text.h"

namespace planish {

namespace {

bool isIdentity(const std::vector<ChainMember> &chain)
{
    return chain.empty() || (chain.size() == 1 && chain.front().method == "none");
}

/// `alpha=0.5` in a chain of one, `2.alpha=0.5` otherwise: valid on the command line whatever the chain is.
std::vector<std::string> setItems(const std::vector<ChainMember> &chain)
{
    std::vector<std::string> items;
    for (std::size_t i = 0; i < chain.size(); ++i) {
        for (const auto &[name, value] : chain[i].set) {
            items.push_back((chain.size() > 1 ? std::to_string(i + 1) + "." : std::string()) + name + "=" + value);
        }
    }
    return items;
}

QString openFlags(const OpenRequest &opened)
{
    QString text = shellQuoted(opened.file);
    if (!opened.weights.empty()) {
        text += " --weights " + shellQuoted(opened.weights);
    }
    if (opened.global.backend != "cpu") {
        text += " --backend " + toQString(opened.global.backend);
    }
    return text;
}

QString rowFlags(const RowRequest &rows)
{
    QString text;
    const RowRequest standard;
    if (rows.calibration != standard.calibration) {
        text += " --calibration " + QString::number(rows.calibration, 'g', 17);
    }
    if (rows.splitSeed != standard.splitSeed) {
        text += " --split-seed " + QString::number(rows.splitSeed);
    }
    if (rows.budget != standard.budget) {
        text += " --rows " + (rows.budget < 0 ? QStringLiteral("all") : QString::number(rows.budget));
    }
    return text;
}

QString candidateFlags(const EvaluateRequest &request)
{
    const Candidate &c = request.candidate;
    QString text;
    for (const std::string &edge : request.edges) {
        text += " --edge " + shellQuoted(edge);
    }
    text += " --method " + shellQuoted(isIdentity(c.chain) ? "none" : chainText(c.chain));
    for (const std::string &item : setItems(c.chain)) {
        text += " --set " + shellQuoted(item);
    }
    text += " --act " + toQString(canonicalText(c.act, Role::Activation)) + " --weight " +
            toQString(canonicalText(c.weight, Role::Weight));
    if (c.seed != 0) {
        text += " --seed " + QString::number(c.seed);
    }
    return text + rowFlags(request.options.rows);
}

} // namespace

std::string candidateLabel(const Candidate &candidate)
{
    if (isIdentity(candidate.chain)) {
        return "none";
    }
    std::string text = chainText(candidate.chain);
    for (const std::string &item : setItems(candidate.chain)) {
        text += " " + item;
    }
    if (candidate.seed != 0) {
        text += " seed=" + std::to_string(candidate.seed);
    }
    return text;
}

QString candidateKey(const Candidate &candidate)
{
    std::string text = isIdentity(candidate.chain) ? "none" : chainText(candidate.chain);
    for (const std::string &item : setItems(candidate.chain)) {
        text += "|" + item;
    }
    text += "|seed=" + std::to_string(candidate.seed) + "|" + canonicalText(candidate.act, Role::Activation) + "|" +
            canonicalText(candidate.weight, Role::Weight);
    return toQString(text);
}

QString requestKey(const EvaluateRequest &request)
{
    QString text = candidateKey(request.candidate) + rowFlags(request.options.rows);
    for (const std::string &edge : request.edges) {
        text += '|' + toQString(edge);
    }
    return text + (request.options.preview ? QStringLiteral("|preview") : QString());
}

std::string valueOf(const ChainMember &member, const std::string &parameter)
{
    const auto at = std::find_if(member.set.begin(), member.set.end(), [&](const auto &item) { return item.first == parameter; });
    return at == member.set.end() ? std::string() : at->second;
}

void setValue(ChainMember &member, const std::string &parameter, const std::string &value)
{
    const auto at = std::find_if(member.set.begin(), member.set.end(), [&](const auto &item) { return item.first == parameter; });
    if (at == member.set.end()) {
        member.set.emplace_back(parameter, value);
    } else {
        at->second = value;
    }
}

QString analyzeCommand(const OpenRequest &opened, const std::string &edge)
{
    return "planish-cli analyze " + openFlags(opened) + " --edge " + shellQuoted(edge);
}

QString evaluateCommand(const OpenRequest &opened, const EvaluateRequest &request)
{
    return "planish-cli evaluate " + openFlags(opened) + candidateFlags(request);
}

QString sweepCommand(const OpenRequest &opened, const SweepRequest &request)
{
    QStringList values;
    for (double value : request.values) {
        values << QString::number(value, 'g', 12);
    }
    return "planish-cli sweep " + openFlags(opened) + candidateFlags(request.base) + " --param " + toQString(request.parameter) +
           " --values " + values.join(',');
}

QString shellQuoted(const std::string &text)
{
    const QString value = toQString(text);
    const bool plain = std::all_of(value.begin(), value.end(),
                                   [](QChar c) { return c.isLetterOrNumber() || QStringLiteral("./_-+=:,").contains(c); });
    return plain && !value.isEmpty() ? value : "'" + QString(value).replace("'", "'\\''") + "'";
}

} // namespace planish
