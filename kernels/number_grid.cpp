#include "kernels/number_grid.h"

namespace planish {

int bitsOf(NumberFormat format)
{
    switch (format) {
    case NumberFormat::None:
        return 0;
    case NumberFormat::Int2:
        return 2;
    case NumberFormat::Int3:
        return 3;
    case NumberFormat::Int4:
        return 4;
    case NumberFormat::Int5:
        return 5;
    case NumberFormat::Int6:
        return 6;
    case NumberFormat::Int7:
        return 7;
    case NumberFormat::Fp4E2M1:
    case NumberFormat::MxFp4:
    case NumberFormat::NvFp4:
        return 4;
    case NumberFormat::Fp6E2M3:
    case NumberFormat::Fp6E3M2:
    case NumberFormat::MxFp6E2M3:
    case NumberFormat::MxFp6E3M2:
        return 6;
    case NumberFormat::Int8:
    case NumberFormat::Fp8E4M3:
    case NumberFormat::Fp8E5M2:
    case NumberFormat::MxFp8E4M3:
    case NumberFormat::MxFp8E5M2:
    case NumberFormat::MxInt8:
        return 8;
    }
    return 0;
}

bool isInteger(NumberFormat format)
{
    return format >= NumberFormat::Int2 && format <= NumberFormat::Int8;
}

bool isBlockFormat(NumberFormat format)
{
    return format >= NumberFormat::MxFp4;
}

bool isAsymmetric(Dialect dialect)
{
    return dialect >= Dialect::Zero;
}

} // namespace planish
