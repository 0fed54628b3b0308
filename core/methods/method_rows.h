// One function per method that gives its row. method_table.cpp lists them; a new method adds a line here and there.
#pragma once

#include "core/methods/method.h"

namespace planish {

MethodRow noneRow();
MethodRow clipRow();
MethodRow llmInt8Row();
MethodRow smoothquantRow();
MethodRow hadamardRow();
MethodRow blockHadamardRow();
MethodRow haarRow();
MethodRow quarotRow();
MethodRow duquantRow();
MethodRow zigzagHadamardRow();
MethodRow smoothHadamardRow();
MethodRow wushRow();
MethodRow tokenClipRow();
MethodRow awqRow();
MethodRow gammaMigrationRow();
MethodRow osPlusRow();
MethodRow svdquantRow();
MethodRow magrRow();
MethodRow spinquantRow();
MethodRow omniquantRow();
MethodRow flatquantRow();

} // namespace planish
