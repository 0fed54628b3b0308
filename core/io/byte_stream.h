// Values to bytes and back, for messages between this program and its reader process. Reading never trusts a length: what does not
// fit marks the stream as bad, and from then on every value is zero or empty.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace planish {

class ByteWriter {
public:
    template <class T>
        requires std::is_arithmetic_v<T> || std::is_enum_v<T>
    void put(T value)
    {
        const auto *from = reinterpret_cast<const std::byte *>(&value);
        m_bytes.insert(m_bytes.end(), from, from + sizeof value);
    }
    void put(std::string_view text) { put(std::as_bytes(std::span(text.data(), text.size()))); }
    void put(std::span<const std::byte> bytes)
    {
        put(std::uint64_t{bytes.size()});
        m_bytes.insert(m_bytes.end(), bytes.begin(), bytes.end());
    }
    template <class T> void putAll(const std::vector<T> &values)
    {
        put(std::uint64_t{values.size()});
        for (const T &value : values) {
            if constexpr (std::is_arithmetic_v<T>)
                put(value);
            else
                put(std::string_view(value));
        }
    }
    std::size_t size() const { return m_bytes.size(); }
    std::vector<std::byte> take() { return std::move(m_bytes); }

private:
    std::vector<std::byte> m_bytes;
};

class ByteReader {
public:
    explicit ByteReader(std::span<const std::byte> bytes) : m_rest(bytes) {}

    template <class T>
        requires std::is_arithmetic_v<T>
    T get()
    {
        T value{};
        if (sizeof value > m_rest.size()) {
            m_bad = true;
            return value;
        }
        std::memcpy(&value, m_rest.data(), sizeof value);
        m_rest = m_rest.subspan(sizeof value);
        return value;
    }
    /// An enum of `count` values; anything else marks the stream as bad.
    template <class T> T getEnum(unsigned count)
    {
        const auto value = get<std::underlying_type_t<T>>();
        m_bad = m_bad || static_cast<std::uint64_t>(value) >= count;
        return m_bad ? T{} : static_cast<T>(value);
    }
    bool flag() { return get<std::uint8_t>() != 0; }
    std::span<const std::byte> bytes()
    {
        const std::size_t size = count(1);
        const std::span<const std::byte> taken = m_rest.first(size);
        m_rest = m_rest.subspan(size);
        return taken;
    }
    std::string text()
    {
        const std::span<const std::byte> taken = bytes();
        return {reinterpret_cast<const char *>(taken.data()), taken.size()};
    }
    template <class T> std::vector<T> all()
    {
        constexpr std::size_t kLeast = std::is_arithmetic_v<T> ? sizeof(T) : sizeof(std::uint64_t);
        std::vector<T> values(count(kLeast));
        for (T &value : values) {
            if constexpr (std::is_arithmetic_v<T>)
                value = get<T>();
            else
                value = text();
        }
        return values;
    }
    /// A number of items that take at least `leastBytes` each; 0 and a bad stream when so many cannot follow.
    std::size_t count(std::size_t leastBytes)
    {
        const auto stated = get<std::uint64_t>();
        m_bad = m_bad || stated > m_rest.size() / leastBytes;
        return m_bad ? 0 : static_cast<std::size_t>(stated);
    }
    bool bad() const { return m_bad; }
    /// True when everything was read and nothing is left.
    bool complete() const { return !m_bad && m_rest.empty(); }

private:
    std::span<const std::byte> m_rest;
    bool m_bad = false;
};

} // namespace planish
