#include "core/io/hdf5_dump.h"

#include "core/io/hdf5_file.h"
#include "core/io/layout_dump.h"

namespace planish {

Expected<std::shared_ptr<const Dump>> openHdf5Dump(const std::string &file, const OpenOptions &options,
                                                   const std::string &layoutFile)
{
    const auto opened = Hdf5File::open(file, options);
    if (!opened)
        return tl::make_unexpected(opened.error());
    const Expected<FileStructure> structure = readStructure(**opened);
    if (!structure)
        return tl::make_unexpected(structure.error());
    return openLayoutDump(*structure, makeBlockSource(*opened), layoutFile);
}

} // namespace planish
