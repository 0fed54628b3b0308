#include "core/plan/machine_profile.h"

#include <fstream>
#include <iterator>

#include "core/plan/strict_yaml.h"

namespace planish {

namespace {

constexpr const char *kMachineSchema = "planish-machine/1";

double positive(const YamlReader &entry)
{
    const double value = entry.number();
    if (!entry.errors().first && !(value > 0))
        entry.fail("is not above 0", "expected a number above 0");
    return value;
}

MachineProfile profileOf(const YamlReader &root)
{
    MachineProfile profile;
    root.onlyKeys({"schema", "name", "memory_gb_per_s", "tflop_per_s", "low_bit_tflop_per_s", "launch_us", "link_gb_per_s"});
    root.requireKeys({"schema", "name", "memory_gb_per_s", "tflop_per_s", "launch_us"});
    if (const std::string schema = root["schema"].text(); !root.errors().first && schema != kMachineSchema)
        root["schema"].fail("is " + schema, std::string("expected ") + kMachineSchema);
    profile.name = root["name"].text();
    profile.memoryGbPerS = positive(root["memory_gb_per_s"]);
    profile.tflopPerS = positive(root["tflop_per_s"]);
    profile.lowBitTflopPerS = root["low_bit_tflop_per_s"].present() ? positive(root["low_bit_tflop_per_s"]) : profile.tflopPerS;
    profile.launchUs = root["launch_us"].number();
    if (!root.errors().first && !(profile.launchUs >= 0))
        root["launch_us"].fail("is negative", "expected microseconds, 0 or more");
    profile.linkGbPerS = root["link_gb_per_s"].present() ? positive(root["link_gb_per_s"]) : 0;
    return profile;
}

} // namespace

Expected<MachineProfile> readMachineProfile(const std::string &file)
{
    std::ifstream in(file, std::ios::binary);
    if (!in)
        return dataError(file, "cannot be read", "expected a machine profile (planish-machine/1)");
    const std::string text((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
    auto tree = parseStrictYaml(file, text);
    if (!tree)
        return tl::make_unexpected(tree.error());
    YamlErrors errors{file, {}, {}};
    if (!tree->isMap())
        return dataError(file, "is no map", "expected a machine profile with schema: planish-machine/1");
    const MachineProfile profile = profileOf(YamlReader(errors, &*tree, ""));
    if (errors.first)
        return tl::make_unexpected(*errors.first);
    return profile;
}

} // namespace planish
