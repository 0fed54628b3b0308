// The reader process: answers requests about one HDF5 file over a socket until the other end closes. libhdf5 reads only here, so that
// what a damaged file does to it stays here. Messages: core/io/reader_protocol.h.
#pragma once

namespace planish {

/// Serves kReaderSocket and writes progress to kReaderPage. Returns the exit status.
int serveHdf5();

} // namespace planish
