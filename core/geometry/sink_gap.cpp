#include "core/geometry/sink_gap.h"

#include <cmath>

namespace planish {

Expected<double> neededSinkGap(double eps, std::int64_t tokens)
{
    if (!(eps > 0.0 && eps < 1.0))
        return usageError("sink_pressure.eps", std::to_string(eps) + " is not a share", "a number between 0 and 1");
    if (tokens < 2)
        return dataError("sink_pressure", std::to_string(tokens) + " token has no others to stand above", "at least two tokens");
    return std::log1p(-eps) - std::log(eps) + std::log(static_cast<double>(tokens - 1));
}

} // namespace planish
