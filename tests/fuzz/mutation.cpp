#include "tests/fuzz/mutation.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>

#include "core/transform/random_stream.h"

namespace planish {

namespace {

std::size_t place(RandomStream &random, std::size_t size)
{
    return static_cast<std::size_t>(random.below(std::max<std::size_t>(size, 1)));
}

void putNumber(std::string &bytes, RandomStream &random)
{
    constexpr std::array<std::uint64_t, 10> kExtremes{0,      1,      0x7F,   0xFF,       0x7FFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF,
                                                      1ULL << 63, ~std::uint64_t{0}};
    const std::uint64_t value = kExtremes[place(random, kExtremes.size())];
    const std::size_t size = std::min(std::size_t{1} << random.below(4), bytes.size());
    const std::size_t at = place(random, bytes.size() - size + 1);
    std::memcpy(bytes.data() + at, &value, size);
}

/// Where the line that holds `at` begins and how long it is, its end included.
std::pair<std::size_t, std::size_t> lineAt(const std::string &bytes, std::size_t at)
{
    const std::size_t before = at == 0 ? std::string::npos : bytes.rfind('\n', at - 1);
    const std::size_t begin = before == std::string::npos ? 0 : before + 1;
    const std::size_t end = bytes.find('\n', at);
    return {begin, (end == std::string::npos ? bytes.size() : end + 1) - begin};
}

void change(std::string &bytes, RandomStream &random)
{
    const std::size_t at = place(random, bytes.size());
    const std::size_t run = std::min(bytes.size() - at, 1 + place(random, 64));
    switch (random.below(10)) {
    case 0:
        bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
        break;
    case 1:
        bytes[at] = static_cast<char>(random.below(256));
        break;
    case 2:
    case 3:
        putNumber(bytes, random);
        break;
    case 4:
        bytes.resize(at);
        break;
    case 5:
        bytes.erase(at, run);
        break;
    case 6:
        bytes.insert(at, bytes.substr(place(random, bytes.size()), run));
        break;
    case 7:
        bytes.replace(at, run, bytes.substr(place(random, bytes.size() - run + 1), run));
        break;
    case 8: {
        const auto [begin, size] = lineAt(bytes, at);
        bytes.erase(begin, std::min<std::size_t>(size, 4096));
        break;
    }
    default: {
        const auto [begin, size] = lineAt(bytes, at);
        bytes.insert(begin, bytes.substr(begin, std::min<std::size_t>(size, 4096)));
    }
    }
}

} // namespace

std::string mutant(const std::string &good, std::size_t seed, const std::string &name)
{
    RandomStream random(seed, "mutant", name);
    std::string bytes = good;
    for (std::uint64_t left = 1 + random.below(8); left > 0 && !bytes.empty(); --left)
        change(bytes, random);
    return bytes;
}

} // namespace planish
