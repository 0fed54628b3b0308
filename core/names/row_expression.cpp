#include "core/names/row_expression.h"

#include <cctype>
#include <charconv>

namespace planish {

namespace {

class Parser {
public:
    Parser(std::string_view text, const RowVariables &variables, const std::string &where)
        : m_text(text), m_variables(variables), m_where(where)
    {
    }

    Expected<std::int64_t> whole()
    {
        auto value = sum();
        if (!value)
            return value;
        skipBlanks();
        if (m_at != m_text.size())
            return fault();
        return value;
    }

private:
    Expected<std::int64_t> sum()
    {
        auto value = product();
        while (value) {
            const bool plus = take('+');
            if (!plus && !take('-'))
                return value;
            const auto next = product();
            if (!next)
                return next;
            *value += plus ? *next : -*next;
        }
        return value;
    }

    Expected<std::int64_t> product()
    {
        auto value = atom();
        while (value && take('*')) {
            const auto next = atom();
            if (!next)
                return next;
            if (*next != 0 && std::abs(*value) > kLimit / std::abs(*next))
                return dataError(m_where, "row expression '" + std::string(m_text) + "' overflows", "fewer rows were expected");
            *value *= *next;
        }
        return value;
    }

    Expected<std::int64_t> atom()
    {
        if (take('(')) {
            auto value = sum();
            if (value && !take(')'))
                return fault();
            return value;
        }
        skipBlanks();
        const std::size_t begin = m_at;
        while (m_at < m_text.size() && (std::isalnum(static_cast<unsigned char>(m_text[m_at])) || m_text[m_at] == '_'))
            ++m_at;
        const std::string_view word = m_text.substr(begin, m_at - begin);
        if (word.empty())
            return fault();
        if (std::isdigit(static_cast<unsigned char>(word.front()))) {
            std::int64_t number = 0;
            const auto result = std::from_chars(word.data(), word.data() + word.size(), number);
            if (result.ec != std::errc() || result.ptr != word.data() + word.size() || number > kLimit)
                return fault();
            return number;
        }
        const auto found = m_variables.find(word);
        if (found == m_variables.end())
            return dataError(m_where,
                             "row expression '" + std::string(m_text) + "' needs " + std::string(word) + ", which is unknown",
                             "state it in /model or config.json");
        return found->second;
    }

    bool take(char c)
    {
        skipBlanks();
        if (m_at >= m_text.size() || m_text[m_at] != c)
            return false;
        ++m_at;
        return true;
    }

    void skipBlanks()
    {
        while (m_at < m_text.size() && m_text[m_at] == ' ')
            ++m_at;
    }

    tl::unexpected<Error> fault() const
    {
        return dataError(m_where, "row expression '" + std::string(m_text) + "' cannot be read",
                         "numbers, names, + - * and brackets were expected");
    }

    static constexpr std::int64_t kLimit = std::int64_t(1) << 40; // rows of any tensor, far inside int64
    std::string_view m_text;
    const RowVariables &m_variables;
    const std::string &m_where;
    std::size_t m_at = 0;
};

} // namespace

RowVariables rowVariables(const ModelInfo &model)
{
    RowVariables variables;
    const auto set = [&](const char *name, std::int64_t value) {
        if (value > 0)
            variables.emplace(name, value);
    };
    const std::int64_t kvHeads = model.numKvHeads > 0 ? model.numKvHeads : model.numHeads;
    set("hidden", model.hiddenSize);
    set("ffn", model.ffnSize);
    set("heads", model.numHeads);
    set("kv_heads", kvHeads);
    set("head_dim", model.headDim);
    set("q", model.numHeads * model.headDim);
    set("kv", kvHeads * model.headDim);
    return variables;
}

Expected<std::int64_t> evaluateRows(std::string_view expression, const RowVariables &variables, const std::string &where)
{
    return Parser(expression, variables, where).whole();
}

} // namespace planish
