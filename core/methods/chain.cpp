// Chains of methods as text: `A+B` and `--set NAME=VALUE` with bare, keyed (B.alpha) and numbered (2.alpha) names.
#include <algorithm>
#include <charconv>

#include "core/io/nearest.h"
#include "core/methods/method_table.h"

namespace planish {
namespace {

bool isPublic(std::string_view key)
{
    return std::ranges::find(publicMethodKeys(), key) != publicMethodKeys().end();
}

Expected<ChainMember> memberOf(const std::string &key)
{
    if (key == "rms_scale")
        return ChainMember{.method = "smoothquant", .set = {{"stat", "rms"}}};
    if (!isPublic(key)) {
        std::vector<std::string> keys(publicMethodKeys().begin(), publicMethodKeys().end());
        return usageError(key.empty() ? "method" : key, "unknown method",
                          "one of the keys of `planish-cli methods`, nearest: " + nearestText(key, keys));
    }
    return ChainMember{.method = key, .set = {}};
}

bool hasParam(const ChainMember &member, const std::string &name)
{
    const MethodRow *row = findMethod(member.method);
    return row && std::ranges::find(row->params, name, &ParamRow::name) != row->params.end();
}

std::string allNames(const std::vector<ChainMember> &chain)
{
    std::string text;
    for (const ChainMember &member : chain)
        if (const MethodRow *row = findMethod(member.method))
            for (const ParamRow &param : row->params)
                text += (text.empty() ? "" : ", ") + (chain.size() > 1 ? member.method + "." : std::string()) + param.name;
    return text.empty() ? "no parameters" : text;
}

/// The member a prefix names: by position from 1, or by a key that occurs once.
Expected<std::size_t> memberAt(const std::vector<ChainMember> &chain, const std::string &prefix, const std::string &item)
{
    std::size_t position = 0;
    const auto done = std::from_chars(prefix.data(), prefix.data() + prefix.size(), position);
    if (done.ec == std::errc() && done.ptr == prefix.data() + prefix.size()) {
        if (position >= 1 && position <= chain.size())
            return position - 1;
        return usageError("--set " + item, "the chain has no member " + prefix,
                          "a position in 1.." + std::to_string(chain.size()));
    }
    const std::string key = prefix == "rms_scale" ? "smoothquant" : prefix;
    const auto count = std::ranges::count(chain, key, &ChainMember::method);
    if (count == 1)
        return static_cast<std::size_t>(std::ranges::find(chain, key, &ChainMember::method) - chain.begin());
    if (count > 1)
        return usageError("--set " + item, prefix + " occurs " + std::to_string(count) + " times",
                          "a position, such as 2.NAME=VALUE");
    return usageError("--set " + item, prefix + " is not in the chain", "one of " + chainText(chain));
}

Expected<std::size_t> memberWith(const std::vector<ChainMember> &chain, const std::string &name, const std::string &item)
{
    std::vector<std::size_t> owners;
    for (std::size_t i = 0; i < chain.size(); ++i)
        if (hasParam(chain[i], name))
            owners.push_back(i);
    if (owners.size() == 1)
        return owners.front();
    if (owners.size() > 1)
        return usageError("--set " + item, name + " belongs to several members of " + chainText(chain),
                          "METHOD.NAME=VALUE or POSITION.NAME=VALUE");
    if (chain.size() == 1 && !findMethod(chain.front().method))
        return std::size_t{0};
    return usageError("--set " + item, "unknown parameter " + name, "one of " + allNames(chain));
}

Expected<void> checkPlaces(const std::vector<ChainMember> &chain)
{
    for (std::size_t i = 0; i < chain.size(); ++i) {
        const MethodRow *row = findMethod(chain[i].method);
        const bool clipOff =
            std::ranges::find(chain[i].set, std::pair<std::string, std::string>("clip", "off")) != chain[i].set.end();
        if (row && row->mustBeLast && !clipOff && i + 1 != chain.size())
            return usageError(chainText(chain), row->key + " must be the last member",
                              "clips, exceptions and low-rank branches at the end of a chain");
        if (row && row->mustBeFirst && i != 0)
            return usageError(chainText(chain), row->key + " must be the first member",
                              "a method that replaces weights at the start of a chain");
    }
    return {};
}

} // namespace

Expected<std::vector<ChainMember>> parseChain(std::string_view methods, const std::vector<std::string> &sets)
{
    std::vector<ChainMember> chain;
    for (std::size_t begin = 0; begin <= methods.size();) {
        const std::size_t end = std::min(methods.find('+', begin), methods.size());
        auto member = memberOf(std::string(methods.substr(begin, end - begin)));
        if (!member)
            return tl::make_unexpected(member.error());
        chain.push_back(std::move(*member));
        begin = end + 1;
    }
    for (const std::string &item : sets) {
        const std::size_t equals = item.find('=');
        if (equals == std::string::npos || equals == 0)
            return usageError("--set " + item, "no value", "NAME=VALUE");
        std::string name = item.substr(0, equals);
        const std::size_t dot = name.find('.');
        auto index = dot == std::string::npos ? memberWith(chain, name, item) : memberAt(chain, name.substr(0, dot), item);
        if (!index)
            return tl::make_unexpected(index.error());
        if (dot != std::string::npos)
            name = name.substr(dot + 1);
        chain[*index].set.emplace_back(name, item.substr(equals + 1));
    }
    for (const ChainMember &member : chain)
        if (const MethodRow *row = findMethod(member.method))
            if (auto params = resolveParams(*row, member); !params)
                return tl::make_unexpected(params.error());
    if (auto places = checkPlaces(chain); !places)
        return tl::make_unexpected(places.error());
    return chain;
}

std::string chainText(const std::vector<ChainMember> &chain)
{
    std::string text;
    for (const ChainMember &member : chain)
        text += (text.empty() ? "" : "+") + member.method;
    return text;
}

} // namespace planish
