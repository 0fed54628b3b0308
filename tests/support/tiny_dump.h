// A small native dump on disk for tests of the upper floors: one layer, four requests, two edges with weights, planted outliers.
#pragma once

#include <cmath>
#include <filesystem>
#include <stdexcept>
#include <string>

#include "core/io/dump_writer.h"
#include "core/transform/random_stream.h"

namespace planish::test {

struct TinyDump {
    std::size_t requests = 4, rowsPerRequest = 16, channels = 32, outputs = 24;
};

inline MatrixD plantedRows(std::size_t rows, std::size_t channels, const char *id)
{
    RandomStream stream(7, "test", id);
    MatrixD x(rows, channels);
    for (double &value : x.values())
        value = stream.normal();
    for (std::size_t r = 0; r < rows; ++r)
        x(r, 5) *= 40.0; // one persistent channel
    return x;
}

template <class T>
void orThrow(const Expected<T> &result)
{
    if (!result)
        throw std::runtime_error(toText(result.error()));
}

/// Writes the dump and returns its path; throws when the writer refuses.
inline std::string writeTinyDump(const std::filesystem::path &folder, const TinyDump &tiny = {})
{
    const std::string file = (folder / "tiny.h5").string();
    const std::size_t rows = tiny.requests * tiny.rowsPerRequest;
    DumpHeader header;
    header.model.model = "tiny";
    header.model.hiddenSize = static_cast<std::int64_t>(tiny.channels);
    for (std::size_t r = 0; r < rows; ++r) {
        header.tokens.id.push_back(static_cast<std::int32_t>(r));
        header.tokens.request.push_back(static_cast<std::int32_t>(r / tiny.rowsPerRequest));
        header.tokens.position.push_back(static_cast<std::int32_t>(r % tiny.rowsPerRequest));
        header.tokens.phase.push_back(0);
        header.tokens.mask.push_back(1);
        header.tokens.text.push_back("t" + std::to_string(r));
    }
    header.tokens.hasId = header.tokens.hasRequest = header.tokens.hasPosition = header.tokens.hasPhase = header.tokens.hasMask = true;
    auto writer = DumpWriter::create(file, header);
    orThrow(writer);
    const DatasetStorage storage{.type = StoredType::F32};
    for (const auto &[site, consumer] : {std::pair<std::string, std::string>{"attn_in", "q_proj"}, {"mlp_down", "down_proj"}}) {
        DumpEdge edge;
        edge.id = {"layers.0." + site};
        edge.layer = 0;
        edge.site = site;
        edge.consumers = {"layers.0." + consumer};
        edge.rows = rows;
        edge.channels = tiny.channels;
        edge.storedType = StoredType::F32;
        orThrow(writer->addEdge(edge, storage));
        const MatrixD x = plantedRows(rows, tiny.channels, site.c_str());
        orThrow(writer->appendRows(edge.id, x.view()));
        RandomStream stream(7, "test", consumer);
        MatrixD w(tiny.outputs, tiny.channels);
        for (double &value : w.values())
            value = stream.normal() * 0.1;
        orThrow(writer->addWeight({"layers.0." + consumer}, w.view(), storage));
    }
    orThrow(writer->finish());
    return file;
}

} // namespace planish::test
