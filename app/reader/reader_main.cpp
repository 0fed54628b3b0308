// planish-reader: started by planish and planish-cli, never by hand. It alone lets libhdf5 read a file, so that whatever a damaged file
// does to that library ends here.
#include <fcntl.h>

#include <cstdio>

#include "core/io/hdf5_server.h"
#include "core/io/reader_protocol.h"

int main()
{
    if (::fcntl(planish::kReaderSocket, F_GETFD) < 0 || ::fcntl(planish::kReaderPage, F_GETFD) < 0) {
        std::fputs("error: planish-reader: is a helper of planish and planish-cli; it is started by them\n", stderr);
        return 2;
    }
    return planish::serveHdf5();
}
