#include "core/io/file_lock.h"

namespace planish {

bool isLockFailure(std::string_view reason)
{
    return reason.find("unable to lock file") != std::string_view::npos ||
           reason.find("already open for") != std::string_view::npos || reason.find("file locking") != std::string_view::npos;
}

tl::unexpected<Error> lockError(const std::string &file, std::string_view reason)
{
    if (reason.find("already open for") != std::string_view::npos)
        return dataError(file, "is marked as open for writing, by a program that still runs or one that was cut off",
                         "a closed file: end the writer, or clear the mark of a dead one with h5clear -s");
    return dataError(file, "is locked by another program (a writer that still runs, or a network disk without locks)",
                     "the lock to be free; --no-lock reads without it");
}

} // namespace planish
