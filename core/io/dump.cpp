#include "core/io/dump.h"

#include <algorithm>

#include "core/io/file_kind.h"
#include "core/io/hdf5_dump.h"

namespace planish {

bool ModelInfo::states(std::string_view key) const
{
    return std::find(stated.begin(), stated.end(), key) != stated.end();
}

const DumpEdge *DumpInfo::findEdge(const EdgeId &id) const
{
    const auto found = std::find_if(edges.begin(), edges.end(), [&](const DumpEdge &edge) { return edge.id == id; });
    return found == edges.end() ? nullptr : &*found;
}

Expected<std::shared_ptr<const Dump>> openDump(const std::string &file, const OpenOptions &options, const std::string &layoutFile)
{
    const Expected<FileKind> kind = fileKindOf(file);
    if (!kind)
        return tl::make_unexpected(kind.error());
    switch (*kind) {
    case FileKind::Pickle:
        return pickleError(file);
    case FileKind::Folder:
        return dataError(file, "is a folder", "a file with activations (a folder of weights goes to --weights)");
    case FileKind::Safetensors:
    case FileKind::Gguf:
    case FileKind::ImatrixDat:
        return dataError(file, "holds no activations this program reads", "an HDF5 dump (weights go to --weights)");
    case FileKind::Hdf5:
    case FileKind::Unknown:
        break;
    }
    return openHdf5Dump(file, options, layoutFile);
}

} // namespace planish
