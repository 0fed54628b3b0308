#include "core/transform/random_stream.h"

#include <bit>
#include <cmath>
#include <numbers>
#include <string>
#include <utility>

#include "core/io/file_key.h"

namespace planish {

namespace {

/// Steele, Lea, Flood 2014; the filler its authors recommend for xoshiro states.
std::uint64_t splitMix64(std::uint64_t &state)
{
    std::uint64_t z = (state += 0x9e3779b97f4a7c15ULL);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
}

} // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view purpose, std::string_view id)
{
    std::string name = "planish/1:" + std::to_string(seed) + ":";
    name.append(purpose).append(":").append(id);
    // 16 hex digits in reading order are the first 8 bytes, big-endian.
    std::uint64_t state = std::stoull(sha256Hex(name).substr(0, 16), nullptr, 16);
    for (std::uint64_t &word : m_state)
        word = splitMix64(state);
}

/// xoshiro256++ (Blackman, Vigna 2019).
std::uint64_t RandomStream::next()
{
    const std::uint64_t result = std::rotl(m_state[0] + m_state[3], 23) + m_state[0];
    const std::uint64_t t = m_state[1] << 17;
    m_state[2] ^= m_state[0];
    m_state[3] ^= m_state[1];
    m_state[1] ^= m_state[2];
    m_state[0] ^= m_state[3];
    m_state[2] ^= t;
    m_state[3] = std::rotl(m_state[3], 45);
    return result;
}

std::int8_t RandomStream::sign()
{
    return (next() >> 63) != 0 ? -1 : 1;
}

double RandomStream::uniform()
{
    return static_cast<double>((next() >> 11) + 1) * 0x1p-53;
}

double RandomStream::normal()
{
    if (m_hasSpare) {
        m_hasSpare = false;
        return m_spare;
    }
    const double radius = std::sqrt(-2.0 * std::log(uniform()));
    const double angle = 2.0 * std::numbers::pi * uniform();
    m_spare = radius * std::sin(angle);
    m_hasSpare = true;
    return radius * std::cos(angle);
}

std::uint64_t RandomStream::below(std::uint64_t n)
{
    if (n < 2)
        return 0;
    const std::uint64_t rejected = (0 - n) % n; // 2^64 mod n: the draws that would favour small values
    std::uint64_t draw = next();
    while (draw < rejected)
        draw = next();
    return draw % n;
}

void RandomStream::shuffle(std::vector<std::int64_t> &values)
{
    for (std::size_t i = values.size(); i > 1; --i)
        std::swap(values[i - 1], values[below(i)]);
}

std::vector<std::int8_t> randomSigns(RandomStream &stream, std::size_t count)
{
    std::vector<std::int8_t> signs(count);
    for (std::int8_t &sign : signs)
        sign = stream.sign();
    return signs;
}

} // namespace planish
