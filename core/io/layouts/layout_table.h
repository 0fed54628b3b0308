// Every layout this program reads, in order of preference. A new layout is one file and one row.
#pragma once

#include <span>

#include "core/io/layouts/layout.h"

namespace planish {

std::span<const Layout> layoutTable();

/// The row of highest confidence (first on a tie) with its match; an error lists what was looked for.
struct RecognisedLayout {
    const Layout *layout = nullptr;
    LayoutMatch match;
};
Expected<RecognisedLayout> recogniseLayout(const FileStructure &structure);

} // namespace planish
