// Adam without weight decay, for learned methods: betas .9 and .999, eps 1e-8.
#pragma once

#include <cmath>
#include <span>
#include <vector>

namespace planish {

class Adam {
public:
    explicit Adam(std::size_t size) : m_first(size, 0.0), m_second(size, 0.0) {}

    /// One step on `values` along `slopes`, both of the size given at construction.
    void step(std::span<double> values, std::span<const double> slopes, double rate)
    {
        ++m_steps;
        const double first = 1 - std::pow(kFirst, double(m_steps)), second = 1 - std::pow(kSecond, double(m_steps));
        for (std::size_t i = 0; i < values.size(); ++i) {
            m_first[i] = kFirst * m_first[i] + (1 - kFirst) * slopes[i];
            m_second[i] = kSecond * m_second[i] + (1 - kSecond) * slopes[i] * slopes[i];
            values[i] -= rate * (m_first[i] / first) / (std::sqrt(m_second[i] / second) + kEps);
        }
    }

private:
    static constexpr double kFirst = 0.9, kSecond = 0.999, kEps = 1e-8;
    std::vector<double> m_first, m_second;
    int m_steps = 0;
};

} // namespace planish
