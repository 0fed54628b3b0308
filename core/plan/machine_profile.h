// A machine as its user states it: bandwidth, arithmetic, launch cost. Turns a ledger into a time that is called an estimate.
// Numbers are typed in, never measured by this program.
#pragma once

#include <string>

#include "core/io/error.h"

namespace planish {

/// `planish-machine/1`: name, memory_gb_per_s, tflop_per_s, low_bit_tflop_per_s (else tflop_per_s), launch_us, link_gb_per_s.
struct MachineProfile {
    std::string name;
    double memoryGbPerS = 0, tflopPerS = 0, lowBitTflopPerS = 0, launchUs = 0;
    double linkGbPerS = 0; ///< between devices; 0 = not stated
};

/// Reads a profile strictly: unknown keys, duplicate keys, numbers not above 0 are errors with their path.
Expected<MachineProfile> readMachineProfile(const std::string &file);

} // namespace planish
