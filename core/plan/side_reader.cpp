#include <cmath>
#include <filesystem>

#include "core/io/file_key.h"
#include "core/io/number_decode.h"
#include "core/io/safetensors.h"
#include "core/plan/side_file.h"

namespace planish {

namespace fs = std::filesystem;

namespace {

/// Sentence why a name may not be opened, empty when it may: one plain file name inside the manifest's folder.
std::string whyOutside(const std::string &name, const std::string &folder)
{
    const fs::path path(name);
    if (name.empty())
        return "is empty";
    if (path.is_absolute())
        return "is an absolute name: " + name;
    for (const fs::path &part : path) {
        if (part == "..")
            return "leads outside the plan's folder: " + name;
    }
    if (path.has_parent_path())
        return "is not in the plan's folder: " + name;
    std::error_code code;
    const fs::path real = fs::weakly_canonical(fs::path(folder) / path, code);
    const fs::path home = fs::weakly_canonical(fs::path(folder), code);
    if (!code && real.parent_path() != home)
        return "is a link that leads outside the plan's folder: " + name;
    return {};
}

std::string shapeText(const std::vector<std::uint64_t> &shape)
{
    std::string text = "[";
    for (std::size_t i = 0; i < shape.size(); ++i)
        text += (i ? ", " : "") + std::to_string(shape[i]);
    return text + "]";
}

/// Checks dtype and shape of the stored tensor against the manifest.
bool agrees(const YamlReader &reader, const StoredTensor &stored)
{
    const std::string dtype = reader["dtype"].text();
    if (dtype != safetensorsName(stored.type)) {
        reader["dtype"].fail(dtype + " but the side file holds " + std::string(safetensorsName(stored.type)), "expected the same data type in both");
        return false;
    }
    std::vector<std::uint64_t> shape;
    for (const YamlReader &item : reader["shape"].items())
        shape.push_back(item.unsignedOr(0));
    if (shape != stored.shape) {
        reader["shape"].fail(shapeText(shape) + " but the side file holds " + shapeText(stored.shape), "expected the same shape in both");
        return false;
    }
    return true;
}

} // namespace

const Checkpoint *SideReader::open(const YamlReader &file)
{
    const std::string name = file.text();
    if (file.errors().first)
        return nullptr;
    if (const std::string reason = whyOutside(name, m_folder); !reason.empty()) {
        file.fail(reason, "expected a relative name inside the plan's folder");
        return nullptr;
    }
    auto found = m_files.find(name);
    if (found == m_files.end()) {
        auto opened = openCheckpoint((fs::path(m_folder) / name).string());
        if (!opened) {
            file.fail("side file cannot be used: " + opened.error().subject + ": " + opened.error().what, opened.error().expected);
            return nullptr;
        }
        found = m_files.emplace(name, *opened).first;
    }
    return found->second.get();
}

SideReader::Array SideReader::read(const YamlReader &tensor)
{
    Array array;
    if (tensor.errors().first)
        return array;
    if (!tensor.isMap()) {
        tensor.fail("is no tensor", "expected {file, key, dtype, shape, sha256}");
        return array;
    }
    tensor.onlyKeys({"file", "key", "dtype", "shape", "sha256"});
    const Checkpoint *file = open(tensor["file"]);
    const std::string key = tensor["key"].text();
    if (!file || tensor.errors().first)
        return array;
    const StoredTensor *stored = file->info().find(key);
    if (!stored) {
        tensor["key"].fail("the side file has no tensor " + key, "expected a key of the side file");
        return array;
    }
    if (!agrees(tensor, *stored))
        return array;
    auto raw = file->readRaw(*stored);
    if (!raw) {
        tensor.fail(raw.error().what, raw.error().expected);
        return array;
    }
    const std::string promised = tensor["sha256"].node() ? tensor["sha256"].node()->text : std::string();
    if (sha256Hex(std::span<const std::byte>(*raw)) != promised) {
        tensor["sha256"].fail("hash differs from the side file's tensor " + key, "expected the sha256 of the tensor's bytes");
        return array;
    }
    array.shape = stored->shape;
    array.type = stored->type;
    array.values.resize(raw->size() / byteSize(stored->type));
    widen(*raw, stored->type, ByteOrder::Little, std::span<double>(array.values));
    for (std::size_t i = 0; i < array.values.size(); ++i) {
        if (!std::isfinite(array.values[i])) {
            tensor.fail("the value at " + std::to_string(i) + " is non-finite (" + (std::isnan(array.values[i]) ? "NaN" : "Inf") + ")",
                        "expected finite factors", "non_finite_factor");
            break;
        }
    }
    return array;
}

std::vector<double> SideReader::vector(const YamlReader &tensor)
{
    Array array = read(tensor);
    if (array.shape.size() != 1 && !tensor.errors().first)
        tensor.fail("is no vector", "expected shape [K]");
    return std::move(array.values);
}

MatrixD SideReader::matrix(const YamlReader &tensor)
{
    const Array array = read(tensor);
    if (array.shape.size() != 2) {
        tensor.fail("is no matrix", "expected a shape of two sizes");
        return {};
    }
    MatrixD matrix(array.shape[0], array.shape[1]);
    std::copy(array.values.begin(), array.values.end(), matrix.data());
    return matrix;
}

std::vector<std::int64_t> SideReader::integers(const YamlReader &tensor)
{
    const Array array = read(tensor);
    std::vector<std::int64_t> values;
    for (double value : array.values)
        values.push_back(static_cast<std::int64_t>(std::llround(value)));
    if (!array.values.empty() && array.type != StoredType::I64 && array.type != StoredType::I32 && array.type != StoredType::I8)
        tensor["dtype"].fail("is no integer type", "expected I64, I32 or I8");
    return values;
}

std::vector<std::int8_t> SideReader::bytes(const YamlReader &tensor)
{
    const Array array = read(tensor);
    std::vector<std::int8_t> values;
    for (double value : array.values) {
        if (value != 1.0 && value != -1.0) {
            tensor.fail("holds a value that is no sign", "expected +1 and -1 only");
            return {};
        }
        values.push_back(static_cast<std::int8_t>(value));
    }
    return values;
}

} // namespace planish
