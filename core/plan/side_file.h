// The arrays of a plan: gathered under `<edge>.<what>` while a manifest is written, checked and handed out while one is read.
// A side file is only ever opened inside the folder of its manifest.
#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "core/io/checkpoint.h"
#include "core/plan/strict_yaml.h"

namespace planish {

struct SideTensor {
    std::string key;
    StoredType type = StoredType::F64;
    std::vector<std::uint64_t> shape;
    std::vector<std::byte> bytes;
};

/// Collects arrays; every add returns the `tensor` value of the manifest (its `file` is filled in by `nameFile`).
class SideTensors {
public:
    nlohmann::ordered_json add(const std::string &key, std::span<const double> values, std::vector<std::uint64_t> shape);
    nlohmann::ordered_json add(const std::string &key, std::span<const std::int64_t> values, std::vector<std::uint64_t> shape);
    nlohmann::ordered_json add(const std::string &key, std::span<const std::int8_t> values, std::vector<std::uint64_t> shape);
    nlohmann::ordered_json add(const std::string &key, const MatrixD &matrix);
    const std::vector<SideTensor> &tensors() const { return m_tensors; }

private:
    nlohmann::ordered_json addBytes(std::string key, StoredType type, std::vector<std::uint64_t> shape, std::vector<std::byte> bytes);
    std::vector<SideTensor> m_tensors;
};

/// Puts the file name into every tensor value of a manifest tree.
void nameSideFile(nlohmann::ordered_json &tree, const std::string &file);

/// Writes the arrays to `<stem>.<hash8>.safetensors` in `folder` and returns that name; no arrays give "".
Expected<std::string> writeSideFile(const std::string &folder, const std::string &stem, const std::vector<SideTensor> &tensors);

/// Reads `tensor` values. Errors go to the reader's YamlErrors with the path of the offending field.
class SideReader {
public:
    explicit SideReader(std::string folder) : m_folder(std::move(folder)) {}
    struct Array {
        std::vector<std::uint64_t> shape;
        StoredType type = StoredType::F64;
        std::vector<double> values; ///< finite; integers up to 2^53 exactly
        std::size_t size() const { return values.size(); }
    };
    Array read(const YamlReader &tensor);
    std::vector<double> vector(const YamlReader &tensor);
    MatrixD matrix(const YamlReader &tensor); ///< rank 2
    std::vector<std::int64_t> integers(const YamlReader &tensor);
    std::vector<std::int8_t> bytes(const YamlReader &tensor);

private:
    const Checkpoint *open(const YamlReader &file);
    std::string m_folder;
    std::map<std::string, std::shared_ptr<const Checkpoint>> m_files;
};

} // namespace planish
