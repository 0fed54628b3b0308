#include "core/io/hdf5_dump.h"

#include "core/io/hdf5_remote.h"
#include "core/io/layout_dump.h"

namespace planish {

Expected<std::shared_ptr<const Dump>> openHdf5Dump(const std::string &file, const OpenOptions &options,
                                                   const std::string &layoutFile)
{
    Expected<OpenedHdf5> opened = openHdf5(file, options);
    if (!opened)
        return tl::make_unexpected(opened.error());
    return openLayoutDump(opened->structure, std::move(opened->source), layoutFile);
}

} // namespace planish
