// Makes small HDF5 files with the C library, for tests of readers: one good edge and whatever the test puts beside it.
#pragma once

#include <hdf5.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

#include "core/io/dump.h"
#include "core/io/hdf5_handle.h"

namespace planish {

inline constexpr hsize_t kRows = 8, kChannels = 16;

inline hid_t makeDataset(hid_t file, const char *path, hid_t type, const std::vector<hsize_t> &shape,
                         hid_t creation = H5P_DEFAULT)
{
    const hid_t space = H5Screate_simple(static_cast<int>(shape.size()), shape.data(), nullptr);
    const hid_t dataset = H5Dcreate2(file, path, type, space, H5P_DEFAULT, creation, H5P_DEFAULT);
    H5Sclose(space);
    return dataset;
}

inline void writeOnes(hid_t dataset, std::size_t count)
{
    const std::vector<float> ones(count, 1.0F);
    H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, ones.data());
}

inline hid_t chunked(const std::vector<hsize_t> &chunk)
{
    const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(creation, static_cast<int>(chunk.size()), chunk.data());
    return creation;
}

/// A file with /edges/good [8, 16] of ones and whatever `add` puts beside it; returns its path.
inline std::string makeHdf5(const std::string &file, const std::function<void(hid_t)> &add)
{
    const Hdf5Lock lock;
    const hid_t id = H5Fcreate(file.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    H5Gclose(H5Gcreate2(id, "/edges", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    const hid_t good = makeDataset(id, "/edges/good", H5T_IEEE_F32LE, {kRows, kChannels});
    writeOnes(good, kRows * kChannels);
    H5Dclose(good);
    add(id);
    H5Fclose(id);
    return file;
}

/// True when the last number of the good edge is the one that was written.
inline bool goodEdgeReads(const Dump &dump)
{
    const DumpEdge *good = dump.info().findEdge(EdgeId{"good"});
    const std::array<std::int64_t, 2> rows{0, 7};
    const auto read = good != nullptr ? dump.readRows(*good, rows) : Expected<MatrixD>();
    return read && read->rows() == 2 && (*read)(1, 15) == 1.0;
}

} // namespace planish
