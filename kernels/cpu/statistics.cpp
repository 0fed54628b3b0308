#include "kernels/statistics.h"

namespace planish {

void accumulateRows(StoredKind kind, const std::byte *data, std::size_t rows, std::size_t strideBytes, BlockStatistics &into, int)
{
    accumulateRowsReference(kind, data, rows, strideBytes, into);
}

} // namespace planish
