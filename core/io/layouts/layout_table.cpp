#include "core/io/layouts/layout_table.h"

#include <array>

#include "core/io/layouts/native.h"

namespace planish {

std::span<const Layout> layoutTable()
{
    static const std::array<Layout, 1> table{{
        {"native", "the attribute format = \"planish-dump/1\" with groups /edges and /tokens", recogniseNative, readNative},
    }};
    return table;
}

Expected<RecognisedLayout> recogniseLayout(const FileStructure &structure)
{
    RecognisedLayout best;
    std::string wanted;
    for (const Layout &layout : layoutTable()) {
        wanted += (wanted.empty() ? "" : ", or ") + std::string(layout.wanted);
        LayoutMatch match = layout.recognise(structure);
        if (match.confidence > best.match.confidence)
            best = {&layout, std::move(match)};
    }
    if (best.layout == nullptr)
        return dataError(structure.file,
                         "no known layout of activations among its " + std::to_string(structure.datasets.size()) + " datasets",
                         "looked for " + wanted);
    return best;
}

} // namespace planish
