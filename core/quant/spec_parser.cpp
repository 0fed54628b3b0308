#include "core/quant/quant_spec.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include "core/io/nearest.h"
#include "core/io/printable.h"
#include "core/quant/format_table.h"
#include "core/quant/spec_words.h"

namespace planish {

namespace {

std::string joined(const std::vector<std::string> &words)
{
    std::string text;
    for (const std::string &word : words)
        text += (text.empty() ? "" : ", ") + word;
    return text;
}

/// The whole of `text` as a finite number.
std::optional<double> numberOf(std::string_view text)
{
    double value = 0.0;
    const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = failure == std::errc() && end == text.data() + text.size();
    return whole && value - value == 0.0 ? std::optional(value) : std::nullopt;
}

std::vector<std::string> sharingsFor(const FormatRow &row, Role role)
{
    if (role == Role::Activation)
        return row.activationSharings;
    if (role == Role::Weight)
        return row.weightSharings;
    std::vector<std::string> all = row.activationSharings;
    for (const std::string &word : row.weightSharings)
        if (std::ranges::find(all, word) == all.end())
            all.push_back(word);
    return all;
}

/// Reads one spec word by word. Every rule of cli.md "QuantSpec" is one function.
class Parser
{
public:
    Parser(std::string_view text, Role role) : m_text(text), m_role(role) {}

    Expected<QuantSpec> parse();

private:
    tl::unexpected<Error> wrong(std::string what, std::string expected) const
    {
        return usageError("spec " + printable(m_text), std::move(what), std::move(expected));
    }
    tl::unexpected<Error> unknown(std::string_view kind, std::string_view word, const std::vector<std::string> &valid) const
    {
        return wrong("unknown " + std::string(kind) + " '" + printable(word) + "'",
                     "expected one of " + joined(valid) + "; nearest is " + nearestText(word, valid, 1));
    }

    Expected<std::vector<std::string_view>> words() const;
    Expected<void> readFormat(std::string_view word);
    Expected<bool> readSharing(std::string_view word);
    Expected<void> readOption(std::string_view word);
    Expected<void> readFlag(std::string_view word);
    Expected<void> readClip(std::string_view value);
    Expected<void> readDialect(std::string_view value);
    Expected<void> readValue(std::string_view name, std::string_view value);
    Expected<void> checkTiming() const;
    Expected<void> settleDialect();
    std::vector<std::string> validWords() const;
    bool takes(std::string_view option) const { return std::ranges::find(m_row->options, option) != m_row->options.end(); }

    std::string_view m_text;
    Role m_role;
    const FormatRow *m_row = nullptr;
    NumberGrid m_grid;
    std::vector<std::string> m_seen;  ///< option names already read
    std::optional<bool> m_asymmetric; ///< sym or asym was written
    std::optional<DialectWord> m_dialect;
};

Expected<std::vector<std::string_view>> Parser::words() const
{
    if (m_text.find_first_of(" \t\r\n") != std::string_view::npos)
        return wrong("contains a blank", "expected format[:sharing][:option]… without blanks");
    std::vector<std::string_view> words;
    for (std::size_t begin = 0; begin <= m_text.size();) {
        const std::size_t end = std::min(m_text.find(':', begin), m_text.size());
        if (end == begin)
            return wrong("has an empty word", "expected format[:sharing][:option]…");
        words.push_back(m_text.substr(begin, end - begin));
        begin = end + 1;
    }
    return words;
}

Expected<void> Parser::readFormat(std::string_view word)
{
    m_row = findFormat(word);
    if (m_row == nullptr) {
        std::vector<std::string> keys;
        for (const FormatRow &row : formatTable())
            keys.push_back(row.key);
        return unknown("format", word, keys);
    }
    m_grid.format = m_row->format;
    if (m_row->block > 0) {
        m_grid.sharing = Sharing::Block;
        m_grid.group = m_row->block;
    }
    return {};
}

/// The words that may follow the format, as the messages show them.
std::vector<std::string> Parser::validWords() const
{
    std::vector<std::string> valid;
    for (const std::string &word : sharingsFor(*m_row, m_role))
        valid.push_back(word == "group" ? "group<2..K>" : word);
    for (const std::string &option : m_row->options) {
        const bool timing = option == "static" || option == "dynamic";
        const bool hasValue =
            option == "clip" || option == "dialect" || option == "rule" || option == "scale" || option == "tail";
        if (!timing || m_role != Role::Weight)
            valid.push_back(hasValue ? option + "=…" : option);
    }
    return valid;
}

/// True when the word is a sharing; a sharing this format or role does not take is an error.
Expected<bool> Parser::readSharing(std::string_view word)
{
    const bool isGroup = word.starts_with("group");
    const std::string name(isGroup ? "group" : word);
    constexpr std::array<std::string_view, 5> kSharings = {"tensor", "token", "channel", "row", "group"};
    if (std::ranges::find(kSharings, name) == kSharings.end())
        return false;
    const std::vector<std::string> valid = sharingsFor(*m_row, m_role);
    if (valid.empty())
        return wrong(m_row->key + " takes no sharing, not '" + std::string(word) + "'",
                     m_row->block > 0 ? "its blocks are " + std::to_string(m_row->block) + " elements" : "expected none alone");
    if (std::ranges::find(valid, name) == valid.end())
        return wrong("sharing '" + std::string(word) + "' is not for " + (m_role == Role::Weight ? "weights" : "activations"),
                     "expected one of tensor, " + std::string(m_role == Role::Weight ? "row" : "token, channel") +
                         ", group<2..K>");
    if (isGroup) {
        const std::string_view digits = word.substr(5);
        const auto [end, failure] = std::from_chars(digits.data(), digits.data() + digits.size(), m_grid.group);
        if (failure != std::errc() || end != digits.data() + digits.size() || m_grid.group < 2 || digits.front() == '0')
            return wrong("sharing '" + printable(word) + "' has no size",
                         "expected group and a number from 2 to K, as in group32");
    }
    m_grid.sharing = isGroup             ? Sharing::Group
                     : name == "tensor"  ? Sharing::Tensor
                     : name == "channel" ? Sharing::Channel
                                         : Sharing::Row;
    return true;
}

Expected<void> Parser::readFlag(std::string_view word)
{
    if (word == "sym" || word == "asym") {
        if (m_asymmetric.has_value() && *m_asymmetric != (word == "asym"))
            return wrong("sym and asym contradict each other", "expected one of them");
        m_asymmetric = word == "asym";
        return {};
    }
    if (m_role == Role::Weight)
        return wrong("weights take neither static nor dynamic", "expected " + joined(validWords()));
    for (const std::string &seen : m_seen)
        if ((seen == "static" || seen == "dynamic") && seen != word)
            return wrong("static and dynamic contradict each other", "expected one of them");
    m_grid.timing = word == "static" ? Timing::Static : Timing::Dynamic;
    return {};
}

Expected<void> Parser::readClip(std::string_view value)
{
    if (value == "max" || value == "mse") {
        m_grid.clip = {value == "max" ? ClipKind::Max : ClipKind::Mse, 1.0};
        return {};
    }
    const bool percentile = value.starts_with("p");
    const std::optional<double> number = numberOf(percentile ? value.substr(1) : value);
    if (!number || *number <= 0.0 || *number > 1.0)
        return wrong("clip '" + printable(value) + "' is no rule",
                     "expected max, mse, pQ with 0 < Q <= 1 (p0.999) or a factor above 0, at most 1 (0.9)");
    m_grid.clip = {percentile ? ClipKind::Percentile : ClipKind::Fixed, *number};
    return {};
}

Expected<void> Parser::readDialect(std::string_view value)
{
    if (m_row->format == NumberFormat::NvFp4) {
        if (value != "four_over_six")
            return unknown("dialect", value, {"four_over_six"});
        m_grid.fourOverSix = true;
        return {};
    }
    const auto found = std::ranges::find(kDialects, value, &DialectWord::word);
    if (found == kDialects.end()) {
        std::vector<std::string> valid;
        for (const DialectWord &row : kDialects)
            if (row.word.find('-') == std::string_view::npos)
                valid.emplace_back(row.word);
        return unknown("dialect", value, valid);
    }
    m_dialect = *found;
    return {};
}

Expected<void> Parser::readValue(std::string_view name, std::string_view value)
{
    const auto lookUp = [&](const auto &table, auto &target) -> Expected<void> {
        for (const auto &[word, meaning] : table)
            if (word == value) {
                target = meaning;
                return {};
            }
        return unknown(name, value, wordsOf(table));
    };
    if (name == "clip")
        return readClip(value);
    if (name == "dialect")
        return readDialect(value);
    if (name == "rule")
        return lookUp(kRules, m_grid.mxRule);
    if (name == "scale")
        return lookUp(kStepTypes, m_grid.stepType);
    return lookUp(kTails, m_grid.tail);
}

Expected<void> Parser::readOption(std::string_view word)
{
    const std::size_t equals = word.find('=');
    const std::string name(word.substr(0, equals));
    const bool isFlag = name == "sym" || name == "asym" || name == "static" || name == "dynamic";
    const bool hasValue = name == "clip" || name == "dialect" || name == "rule" || name == "scale" || name == "tail";
    if ((isFlag && equals != std::string_view::npos) || (hasValue && equals == std::string_view::npos))
        return wrong("word '" + printable(word) + "' is incomplete or has a value it cannot have",
                     "expected " + joined(validWords()));
    if (!isFlag && !hasValue)
        return unknown("word", word, validWords());
    if (!takes(name))
        return wrong(m_row->key + " does not take '" + name + "'",
                     m_row->options.empty() ? "expected no option" : "expected " + joined(validWords()));
    if (std::ranges::find(m_seen, name) != m_seen.end())
        return wrong("option '" + name + "' is given twice", "expected each option at most once");
    const Expected<void> read = isFlag ? readFlag(word) : readValue(name, word.substr(equals + 1));
    m_seen.push_back(name);
    return read;
}

Expected<void> Parser::checkTiming() const
{
    const bool integerLike = m_row->block == 0;
    const bool onePerColumn = m_grid.sharing == Sharing::Tensor || m_grid.sharing == Sharing::Channel;
    if (m_grid.timing == Timing::Static && integerLike && !onePerColumn)
        return wrong("static needs a range that later rows share", "expected tensor:static or channel:static");
    const bool tailGiven = std::ranges::find(m_seen, "tail") != m_seen.end();
    if (tailGiven && m_grid.sharing != Sharing::Group)
        return wrong("tail is about the last short group", "expected it with group<2..K> only");
    return {};
}

/// A dialect implies sym or asym; without one, narrow and zero are the defaults.
Expected<void> Parser::settleDialect()
{
    if (!m_dialect) {
        m_grid.dialect = m_asymmetric.value_or(false) ? Dialect::Zero : Dialect::Narrow;
        return {};
    }
    m_grid.dialect = m_dialect->dialect;
    m_grid.tool = m_dialect->tool;
    if (m_grid.tool == ToolDialect::CompressedTensors) {
        m_grid.dialect = m_asymmetric.value_or(false) ? Dialect::Zero : Dialect::Half;
        return {};
    }
    const bool implied = isAsymmetric(m_grid.dialect);
    if (m_asymmetric && *m_asymmetric != implied)
        return wrong("dialect " + std::string(m_dialect->word) + " implies " + (implied ? "asym" : "sym") + ", not " +
                         (implied ? "sym" : "asym"),
                     implied ? "expected zero, raw or free with asym"
                             : "expected narrow, mixed, half, offset or signed with sym");
    return {};
}

Expected<QuantSpec> Parser::parse()
{
    const auto words = this->words();
    if (!words)
        return tl::make_unexpected(words.error());
    if (const auto format = readFormat(words->front()); !format)
        return tl::make_unexpected(format.error());
    for (std::size_t i = 1; i < words->size(); ++i) {
        const Expected<bool> sharing = readSharing((*words)[i]);
        if (!sharing)
            return tl::make_unexpected(sharing.error());
        if (*sharing && i > 1)
            return wrong("sharing '" + std::string((*words)[i]) + "' stands after an option or another sharing",
                         "expected it right after the format, once");
        if (*sharing)
            continue;
        if (const auto option = readOption((*words)[i]); !option)
            return tl::make_unexpected(option.error());
    }
    if (const auto timing = checkTiming(); !timing)
        return tl::make_unexpected(timing.error());
    if (const auto dialect = settleDialect(); !dialect)
        return tl::make_unexpected(dialect.error());
    return QuantSpec{m_grid};
}

} // namespace

Expected<QuantSpec> parseQuantSpec(std::string_view text, Role role)
{
    return Parser(text, role).parse();
}

} // namespace planish
