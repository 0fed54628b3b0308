#include "core/methods/method_table.h"

#include <algorithm>
#include <array>

#include "core/methods/method_rows.h"

namespace planish {
namespace {

// In the order of cli.md "Method keys".
constexpr std::array<std::string_view, 23> kPublicKeys = {"none",
                                                          "clip",
                                                          "token_clip",
                                                          "llm_int8",
                                                          "smoothquant",
                                                          "awq",
                                                          "gamma_migration",
                                                          "os_plus",
                                                          "omniquant",
                                                          "hadamard",
                                                          "block_hadamard",
                                                          "haar",
                                                          "quarot",
                                                          "duquant",
                                                          "spinquant",
                                                          "flatquant",
                                                          "affinequant",
                                                          "zigzag_hadamard",
                                                          "smooth_hadamard",
                                                          "wush",
                                                          "svdquant",
                                                          "magr",
                                                          "rms_scale"};

const std::vector<MethodRow> &rows()
{
    static const std::vector<MethodRow> table = {noneRow(), clipRow(), llmInt8Row(), smoothquantRow(), hadamardRow(), blockHadamardRow(), haarRow(),
                                                 quarotRow(), duquantRow(), zigzagHadamardRow(), smoothHadamardRow(), wushRow(), tokenClipRow(), awqRow(),
                                                 gammaMigrationRow(), osPlusRow(), svdquantRow(), magrRow(), spinquantRow(), omniquantRow(), flatquantRow()};
    return table;
}

} // namespace

std::span<const MethodRow> methodTable()
{
    return rows();
}

const MethodRow *findMethod(std::string_view key)
{
    const auto found = std::ranges::find(rows(), key, &MethodRow::key);
    return found == rows().end() ? nullptr : &*found;
}

std::span<const std::string_view> publicMethodKeys()
{
    return kPublicKeys;
}

} // namespace planish
