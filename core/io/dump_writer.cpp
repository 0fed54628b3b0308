#include "core/io/dump_writer.h"

#include <hdf5.h>

#include <algorithm>
#include <utility>

#include "core/io/atomic_file.h"
#include "core/io/hdf5_write.h"
#include "core/io/number_decode.h"
#include "core/io/printable.h"

namespace planish {

namespace {

constexpr std::uint64_t kLargestChunk = std::uint64_t{16} << 20;
constexpr std::uint64_t kPieceBytes = std::uint64_t{8} << 20; ///< stored bytes converted and written at once

struct OpenEdge {
    Hdf5Handle dataset;
    std::vector<std::uint64_t> shape;
    StoredType type = StoredType::F16;
    std::uint64_t written = 0;
};

bool isWritable(StoredType type)
{
    return type == StoredType::F16 || type == StoredType::Bf16 || type == StoredType::F32 || type == StoredType::F64;
}

std::vector<std::uint64_t> chunkOf(const DatasetStorage &storage, std::uint64_t rows, std::uint64_t columns)
{
    if (storage.storage == DumpStorage::Contiguous || rows == 0 || columns == 0)
        return {};
    const std::uint64_t most = std::max<std::uint64_t>(1, kLargestChunk / (columns * byteSize(storage.type)));
    return {std::clamp<std::uint64_t>(storage.chunkRows, 1, std::min(rows, most)), columns};
}

/// /model attributes; zeros and empty texts say nothing and are left out.
Attributes modelAttributes(const ModelInfo &model)
{
    Attributes out;
    const auto integer = [&](const char *key, std::int64_t value) {
        if (value != 0)
            out.emplace(key, value);
    };
    const auto text = [&](const char *key, const std::string &value) {
        if (!value.empty())
            out.emplace(key, value);
    };
    integer("hidden_size", model.hiddenSize);
    integer("num_layers", model.numLayers);
    integer("num_heads", model.numHeads);
    integer("num_kv_heads", model.numKvHeads);
    integer("head_dim", model.headDim);
    integer("ffn_size", model.ffnSize);
    integer("vocab_size", model.vocabSize);
    integer("num_experts", model.numExperts);
    integer("rotary_dim", model.rotaryDim);
    integer("qk_norm", model.qkNorm ? 1 : 0);
    integer("parallel_block", model.parallelBlock ? 1 : 0);
    text("norm_kind", model.normKind);
    text("activation", model.activation);
    text("rope_style", model.ropeStyle);
    text("rope_scaling", model.ropeScaling);
    out.emplace("norm_offset", std::int64_t{model.normOffset});
    out.emplace("post_norm", std::int64_t{model.postNorm ? 1 : 0});
    out.emplace("tied_embeddings", std::int64_t{model.tiedEmbeddings ? 1 : 0});
    if (model.ropeTheta != 0.0)
        out.emplace("rope_theta", model.ropeTheta);
    if (model.normEps != 0.0)
        out.emplace("norm_eps", model.normEps);
    return out;
}

Attributes rootAttributes(const DumpHeader &header)
{
    Attributes out = header.root;
    out["format"] = std::string("planish-dump/1");
    const ModelInfo &model = header.model;
    for (const auto &[key, value] : {std::pair<const char *, const std::string &>{"model", model.model},
                                     {"model_revision", model.revision},
                                     {"tokenizer", model.tokenizer},
                                     {"corpus", model.corpus},
                                     {"created_by", model.createdBy},
                                     {"family", model.family}})
        if (!value.empty())
            out[key] = value;
    return out;
}

Attributes edgeAttributes(const DumpEdge &edge, StoredType type)
{
    Attributes out{{"layer", edge.layer},
                   {"site", edge.site},
                   {"producer", edge.producer},
                   {"consumers", edge.consumers},
                   {"basis", edge.basis},
                   {"stored_dtype", std::string(nameOf(type))},
                   {"axis", std::string("channel last")}};
    if (edge.heads > 0)
        out.emplace("heads", edge.heads);
    return out;
}

} // namespace

struct DumpWriter::State {
    std::string path, temporary;
    Hdf5Handle file;
    std::map<std::string, OpenEdge> edges;

    ~State()
    {
        if (temporary.empty())
            return;
        const Hdf5Lock lock;
        edges.clear();
        file = Hdf5Handle();
        removeQuietly(temporary);
    }

    Expected<void> attributes(const std::string &object, const Attributes &values)
    {
        const Hdf5Lock lock;
        const Hdf5Handle handle = openOrCreateGroup(file.get(), object);
        if (!handle)
            return hdf5WriteError(path, object);
        for (const auto &[key, value] : values)
            if (!writeAttribute(handle.get(), key, value))
                return hdf5WriteError(path, object + " attribute " + key);
        return {};
    }

    /// Converts and writes rows in pieces, so that memory stays small for any matrix.
    template <class T> Expected<void> rows(OpenEdge &edge, const std::string &name, MatrixView<const T> values)
    {
        const std::size_t size = byteSize(edge.type);
        const std::uint64_t step = std::max<std::uint64_t>(1, kPieceBytes / std::max<std::size_t>(values.cols * size, 1));
        std::vector<std::byte> bytes;
        for (std::size_t begin = 0; begin < values.rows; begin += step) {
            const std::size_t count = std::min<std::size_t>(step, values.rows - begin);
            bytes.resize(count * values.cols * size);
            for (std::size_t row = 0; row < count; ++row)
                narrow(std::span<const T>(values.row(begin + row)), edge.type,
                       std::span(bytes).subspan(row * values.cols * size, values.cols * size));
            const Hdf5Lock lock;
            if (!writeRows(edge.dataset.get(), edge.type, edge.shape, edge.written, count, bytes))
                return hdf5WriteError(path, printable(name));
            edge.written += count;
        }
        return {};
    }

    Expected<OpenEdge> dataset(const std::string &name, std::vector<std::uint64_t> shape, StoredType type,
                               std::vector<std::uint64_t> chunk, int gzipLevel, const Attributes &values)
    {
        const Hdf5Lock lock;
        if (!isNumeric(type))
            return dataError(path, printable(name) + " cannot be stored as " + std::string(nameOf(type)), "a number type");
        OpenEdge open;
        open.shape = std::move(shape);
        open.type = type;
        open.dataset = createDataset(file.get(), {name, open.shape, type, std::move(chunk), gzipLevel});
        if (!open.dataset)
            return hdf5WriteError(path, printable(name));
        for (const auto &[key, value] : values)
            if (!writeAttribute(open.dataset.get(), key, value))
                return hdf5WriteError(path, printable(name) + " attribute " + key);
        return open;
    }

    Expected<void> array(const std::string &name, std::span<const double> values, const std::vector<std::uint64_t> &shape,
                         StoredType type, const Attributes &more)
    {
        std::uint64_t count = 0;
        if (!productFits(shape, UINT64_MAX, &count) || count != values.size())
            return dataError(path, printable(name) + " has " + std::to_string(values.size()) + " values",
                             "shape " + shapeText(shape));
        Expected<OpenEdge> open = dataset(name, shape, type, {}, 0, more);
        if (!open)
            return tl::make_unexpected(open.error());
        std::vector<std::byte> bytes(values.size() * byteSize(type));
        narrow(values, type, bytes);
        const Hdf5Lock lock;
        const std::uint64_t rowCount = shape.empty() ? 1 : shape[0];
        if (!writeRows(open->dataset.get(), type, shape, 0, rowCount, bytes))
            return hdf5WriteError(path, printable(name));
        return {};
    }

    template <class T> Expected<void> column(const std::string &name, const std::vector<T> &values, StoredType type)
    {
        const std::vector<double> wide(values.begin(), values.end());
        return array(name, wide, {values.size()}, type, {});
    }

    Expected<void> tokens(const TokenTable &table);
    template <class T> Expected<void> append(const EdgeId &edge, MatrixView<const T> values);
};

Expected<void> DumpWriter::State::tokens(const TokenTable &table)
{
    Attributes unit;
    if (table.unit != "token")
        unit.emplace("unit", table.unit);
    Expected<void> done = attributes("/tokens", unit);
    if (done && table.hasId)
        done = column("/tokens/id", table.id, StoredType::I32);
    if (done && !table.request.empty())
        done = column("/tokens/request", table.request, StoredType::I32);
    if (done && !table.position.empty())
        done = column("/tokens/position", table.position, StoredType::I32);
    if (done && !table.phase.empty())
        done = column("/tokens/phase", table.phase, StoredType::U8);
    if (done && table.hasMask)
        done = column("/tokens/mask", table.mask, StoredType::U8);
    if (!done || table.text.empty())
        return done;
    const Hdf5Lock lock;
    if (!writeTexts(file.get(), "/tokens/text", table.text))
        return hdf5WriteError(path, "/tokens/text");
    return {};
}

template <class T> Expected<void> DumpWriter::State::append(const EdgeId &edge, MatrixView<const T> values)
{
    const auto found = edges.find(edge.value);
    if (found == edges.end())
        return dataError(path, "edge " + printable(edge.value) + " was not added", "addEdge before its rows");
    OpenEdge &open = found->second;
    if (values.cols != open.shape[1] || values.rows > open.shape[0] - open.written)
        return dataError(path, "edge " + printable(edge.value) + " gets rows of shape " + shapeText({values.rows, values.cols}),
                         "at most " + shapeText({open.shape[0] - open.written, open.shape[1]}));
    return rows(open, "/edges/" + edge.value, values);
}

DumpWriter::DumpWriter(std::unique_ptr<State> state) : m_state(std::move(state)) {}
DumpWriter::DumpWriter(DumpWriter &&) noexcept = default;
DumpWriter &DumpWriter::operator=(DumpWriter &&) noexcept = default;
DumpWriter::~DumpWriter() = default;

Expected<DumpWriter> DumpWriter::create(const std::string &file, const DumpHeader &header)
{
    auto state = std::make_unique<State>();
    state->path = file;
    {
        const Hdf5Lock lock;
        const std::string temporary = temporaryNameFor(file);
        state->file = Hdf5Handle(H5Fcreate(temporary.c_str(), H5F_ACC_EXCL, H5P_DEFAULT, H5P_DEFAULT), H5Fclose);
        if (!state->file)
            return hdf5WriteError(file, {});
        state->temporary = temporary;
    }
    Expected<void> done = state->attributes("/", rootAttributes(header));
    if (done)
        done = state->attributes("/model", modelAttributes(header.model));
    if (done)
        done = state->tokens(header.tokens);
    if (!done)
        return tl::make_unexpected(done.error());
    return DumpWriter(std::move(state));
}

Expected<void> DumpWriter::addEdge(const DumpEdge &edge, const DatasetStorage &storage)
{
    if (!isWritable(storage.type))
        return dataError(m_state->path,
                         "edge " + printable(edge.id.value) + " cannot be stored as " + std::string(nameOf(storage.type)),
                         "float16, bfloat16, float32 or float64");
    const std::string path = "/edges/" + edge.id.value;
    Expected<OpenEdge> open =
        m_state->dataset(path, {edge.rows, edge.channels}, storage.type, chunkOf(storage, edge.rows, edge.channels),
                         storage.gzipLevel, edgeAttributes(edge, storage.type));
    if (!open)
        return tl::make_unexpected(open.error());
    m_state->edges.insert_or_assign(edge.id.value, std::move(*open));
    if (edge.rowToToken.empty())
        return {};
    return m_state->column("/rows/" + edge.id.value, edge.rowToToken, StoredType::I32);
}

Expected<void> DumpWriter::appendRows(const EdgeId &edge, ConstViewD rows)
{
    return m_state->append(edge, rows);
}

Expected<void> DumpWriter::appendRows(const EdgeId &edge, ConstViewF rows)
{
    return m_state->append(edge, rows);
}

Expected<void> DumpWriter::addWeight(const TensorName &name, ConstViewD matrix, const DatasetStorage &storage,
                                     const std::string &bias)
{
    Attributes values{{"stored_dtype", std::string(nameOf(storage.type))}};
    if (!bias.empty())
        values.emplace("bias", "/biases/" + bias);
    const std::string path = "/weights/" + name.value;
    Expected<OpenEdge> open = m_state->dataset(path, {matrix.rows, matrix.cols}, storage.type,
                                               chunkOf(storage, matrix.rows, matrix.cols), storage.gzipLevel, values);
    if (!open)
        return tl::make_unexpected(open.error());
    return m_state->rows(*open, path, matrix);
}

Expected<void> DumpWriter::addBias(const TensorName &name, std::span<const double> values, StoredType type)
{
    return m_state->array("/biases/" + name.value, values, {values.size()}, type, {{"stored_dtype", std::string(nameOf(type))}});
}

Expected<void> DumpWriter::addNorm(const TensorName &name, const NormParameters &norm, StoredType type)
{
    const std::string path = "/norms/" + name.value;
    const std::string dtype(nameOf(type));
    Attributes values{{"stored_dtype", dtype}, {"kind", norm.kind}, {"offset", std::int64_t{norm.offset}}, {"eps", norm.eps}};
    if (!norm.bias.empty())
        values.emplace("bias", path + ".bias");
    Expected<void> done = m_state->array(path, norm.gain, {norm.gain.size()}, type, values);
    if (!done || norm.bias.empty())
        return done;
    return m_state->array(path + ".bias", norm.bias, {norm.bias.size()}, type, {{"stored_dtype", dtype}});
}

Expected<void> DumpWriter::addArray(const std::string &path, std::span<const double> values,
                                    const std::vector<std::uint64_t> &shape, StoredType type)
{
    Attributes more;
    if (type == StoredType::Bf16)
        more.emplace("stored_dtype", std::string(nameOf(type)));
    return m_state->array(path, values, shape, type, more);
}

Expected<void> DumpWriter::addTexts(const std::string &path, const std::vector<std::string> &texts)
{
    const Hdf5Lock lock;
    if (!writeTexts(m_state->file.get(), path, texts))
        return hdf5WriteError(m_state->path, printable(path));
    return {};
}

Expected<void> DumpWriter::addGroup(const std::string &path, const Attributes &attributes)
{
    return m_state->attributes(path, attributes);
}

Expected<void> DumpWriter::setAttribute(const std::string &path, const std::string &name, const AttributeValue &value)
{
    return m_state->attributes(path, {{name, value}});
}

Expected<void> DumpWriter::finish()
{
    for (const auto &[name, edge] : m_state->edges)
        if (edge.written != edge.shape[0])
            return dataError(m_state->path, "edge " + printable(name) + " got " + std::to_string(edge.written) + " rows",
                             std::to_string(edge.shape[0]) + " as declared");
    {
        const Hdf5Lock lock;
        m_state->edges.clear();
        if (H5Fflush(m_state->file.get(), H5F_SCOPE_GLOBAL) < 0)
            return hdf5WriteError(m_state->path, {});
        m_state->file = Hdf5Handle();
    }
    if (Expected<void> renamed = renameIntoPlace(m_state->temporary, m_state->path); !renamed)
        return renamed;
    m_state->temporary.clear();
    return {};
}

} // namespace planish
