#include <charconv>

#include "core/geometry/findings.h"
#include "core/io/nearest.h"

namespace planish {

RuleThresholds RuleThresholds::defaults()
{
    // evaluation.md 3, table and the list of --rule names below it.
    return {{{"value_outlier.ratio", 100.0},
             {"value_outlier.share", 1e-4},
             {"persistent_channel.threshold", 6.0},
             {"persistent_channel.occupancy", 0.06},
             {"persistent_channel.factor", 10.0},
             {"persistent_channel.rows", 0.5},
             {"rare_token.ratio", 64.0},
             {"massive_activation.floor", 100.0},
             {"massive_activation.ratio", 1000.0},
             {"massive_activation.soft", 500.0},
             {"super_weight_candidate.input", 50.0},
             {"super_weight_candidate.output", 50.0},
             {"asymmetric_channel.asymmetry", 0.9},
             {"weight_outlier.sigma", 9.0},
             {"weight_outlier.ratio", 10.0},
             {"sensitive_channel.top", 0.01},
             {"sensitive_channel.outside", 0.10},
             {"large_and_harmless.top", 0.01},
             {"sink_pressure.mass", 0.5},
             {"sink_pressure.eps", 0.1}}};
}

Expected<RuleThresholds> parseRules(const std::vector<std::string> &flags)
{
    RuleThresholds rules = RuleThresholds::defaults();
    for (const std::string &flag : flags) {
        const auto equals = flag.find('=');
        const std::string name = flag.substr(0, equals);
        const auto found = rules.values.find(name);
        if (found == rules.values.end()) {
            std::vector<std::string> names;
            for (const auto &[known, value] : rules.values)
                names.push_back(known);
            return usageError("--rule " + flag, "there is no rule threshold '" + name + "'", nearestText(name, names));
        }
        const std::string text = equals == std::string::npos ? "" : flag.substr(equals + 1);
        double value = 0.0;
        const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (text.empty() || fault != std::errc{} || end != text.data() + text.size() || !(value >= 0.0 && value < 1e300))
            return usageError("--rule " + flag, "'" + text + "' is not a threshold", "a finite number, not negative");
        found->second = value;
    }
    return rules;
}

} // namespace planish
