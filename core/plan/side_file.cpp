#include "core/plan/side_file.h"

#include <algorithm>
#include <cstring>
#include <filesystem>

#include "core/io/file_key.h"
#include "core/io/safetensors.h"

namespace planish {

namespace {

template <class T>
std::vector<std::byte> bytesOf(std::span<const T> values)
{
    std::vector<std::byte> bytes(values.size_bytes());
    if (!bytes.empty())
        std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
}

} // namespace

nlohmann::ordered_json SideTensors::addBytes(std::string key, StoredType type, std::vector<std::uint64_t> shape, std::vector<std::byte> bytes)
{
    const std::string stem = key;
    for (int count = 2; std::any_of(m_tensors.begin(), m_tensors.end(), [&](const SideTensor &t) { return t.key == key; }); ++count)
        key = stem + "." + std::to_string(count);
    nlohmann::ordered_json value = {{"file", ""}, {"key", key}, {"dtype", safetensorsName(type)}, {"shape", shape},
                                    {"sha256", sha256Hex(std::span<const std::byte>(bytes))}};
    m_tensors.push_back({std::move(key), type, std::move(shape), std::move(bytes)});
    return value;
}

nlohmann::ordered_json SideTensors::add(const std::string &key, std::span<const double> values, std::vector<std::uint64_t> shape)
{
    return addBytes(key, StoredType::F64, std::move(shape), bytesOf(values));
}

nlohmann::ordered_json SideTensors::add(const std::string &key, std::span<const std::int64_t> values, std::vector<std::uint64_t> shape)
{
    return addBytes(key, StoredType::I64, std::move(shape), bytesOf(values));
}

nlohmann::ordered_json SideTensors::add(const std::string &key, std::span<const std::int8_t> values, std::vector<std::uint64_t> shape)
{
    return addBytes(key, StoredType::I8, std::move(shape), bytesOf(values));
}

nlohmann::ordered_json SideTensors::add(const std::string &key, const MatrixD &matrix)
{
    return add(key, matrix.values(), {matrix.rows(), matrix.cols()});
}

void nameSideFile(nlohmann::ordered_json &tree, const std::string &file)
{
    if (tree.is_object() && tree.contains("file") && tree.contains("key") && tree.contains("dtype")) {
        tree["file"] = file;
        return;
    }
    if (tree.is_structured()) {
        for (auto &item : tree)
            nameSideFile(item, file);
    }
}

Expected<std::string> writeSideFile(const std::string &folder, const std::string &stem, const std::vector<SideTensor> &tensors)
{
    if (tensors.empty())
        return std::string();
    std::vector<const SideTensor *> order; // wide types first: every tensor is then aligned to its own size
    for (const SideTensor &tensor : tensors)
        order.push_back(&tensor);
    std::stable_sort(order.begin(), order.end(), [](const SideTensor *a, const SideTensor *b) {
        return byteSize(a->type) != byteSize(b->type) ? byteSize(a->type) > byteSize(b->type) : a->key < b->key;
    });
    std::vector<TensorSpec> specs;
    for (const SideTensor *tensor : order)
        specs.push_back({tensor->key, tensor->type, tensor->shape});
    const std::filesystem::path place(folder);
    const std::string unnamed = temporaryNameFor((place / (stem + ".safetensors")).string());
    auto writer = SafetensorsWriter::create(unnamed, std::move(specs), {{"format", "planish-plan/1"}});
    if (!writer)
        return tl::make_unexpected(writer.error());
    for (const SideTensor *tensor : order) {
        if (auto written = writer->writeTensor(tensor->key, tensor->bytes); !written)
            return tl::make_unexpected(written.error());
    }
    if (auto done = writer->finish(); !done)
        return tl::make_unexpected(done.error());
    const auto hash = sha256OfFile(unnamed);
    const std::string name = stem + "." + hash.value_or(std::string(8, '0')).substr(0, 8) + ".safetensors";
    const auto renamed = hash ? renameIntoPlace(unnamed, (place / name).string()) : Expected<void>(tl::make_unexpected(hash.error()));
    if (!renamed) {
        removeQuietly(unnamed);
        return tl::make_unexpected(renamed.error());
    }
    return name;
}

} // namespace planish
