// The one source of random numbers: xoshiro256++ seeded by SplitMix64 from SHA-256 of `planish/1:<seed>:<purpose>:<id>`. design.md.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace planish {

class RandomStream {
public:
    /// First 8 bytes (big-endian) of SHA-256 of `planish/1:<seed>:<purpose>:<id>` seed SplitMix64, which fills the state.
    RandomStream(std::uint64_t seed, std::string_view purpose, std::string_view id);

    std::uint64_t next();
    std::int8_t sign();          ///< top bit of one draw: 1 is -1
    double uniform();            ///< 53 bits, in (0, 1]
    double normal();             ///< Box-Muller, cosine value then sine value of each pair
    std::uint64_t below(std::uint64_t n); ///< rejection
    void shuffle(std::vector<std::int64_t> &values); ///< Fisher-Yates from the end

private:
    std::array<std::uint64_t, 4> m_state{};
    double m_spare = 0.0;
    bool m_hasSpare = false;
};

std::vector<std::int8_t> randomSigns(RandomStream &stream, std::size_t count);

} // namespace planish
