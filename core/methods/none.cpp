// The identity: nothing is changed, only the specs quantize. Candidate 0 of every comparison.
#include "core/methods/method_rows.h"

namespace planish {
namespace {

Expected<Rewrite> fitNone(const FitInput &)
{
    return Rewrite{};
}

} // namespace

MethodRow noneRow()
{
    return {
        .key = "none", .label = "None", .source = "round to nearest, the baseline", .needs = {}, .params = {}, .fit = fitNone};
}

} // namespace planish
