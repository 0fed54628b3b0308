// Weights, biases and norms of a native dump.
#include <algorithm>
#include <map>
#include <set>

#include "core/io/layouts/attribute_reader.h"
#include "core/io/layouts/native_parts.h"
#include "core/io/layouts/stored_dtype.h"
#include "core/io/number_decode.h"
#include "core/io/printable.h"

namespace planish {

namespace {

constexpr std::string_view kWeights = "/weights/", kBiases = "/biases/", kNorms = "/norms/";

bool isReadableTensor(NativeReader &reader, const std::string &path, const DatasetInfo &dataset)
{
    if (!isNumeric(dataset.type)) {
        reader.refuse(path, dataset.typeText + " is no number type a tensor can have");
        return false;
    }
    if (dataset.shape.empty() || std::find(dataset.shape.begin(), dataset.shape.end(), 0U) != dataset.shape.end()) {
        reader.refuse(path, "shape " + shapeText(dataset.shape) + " is empty");
        return false;
    }
    return true;
}

/// Lists a tensor and remembers its dataset. The path is the name it was found under.
std::optional<TensorEntry> addTensor(NativeReader &reader, std::string_view prefix, const NamedDataset &named)
{
    const std::string path = std::string(prefix) + named.name;
    DatasetInfo dataset = withStoredDtype(*named.dataset, reader.result.info.notes);
    if (!isReadableTensor(reader, path, dataset))
        return std::nullopt;
    TensorEntry entry{TensorName{named.name}, path, reader.structure.file, dataset.shape, dataset.type, {}};
    reader.result.tensors.insert_or_assign(path, std::move(dataset));
    return entry;
}

const DatasetInfo *findByPath(const FileStructure &structure, const std::string &path)
{
    if (const DatasetInfo *dataset = structure.find(path))
        return dataset;
    const auto alias = structure.aliases.find(path);
    return alias == structure.aliases.end() ? nullptr : structure.find(alias->second);
}

/// An absolute path inside the file or a name under one of `groups`; empty when nothing is there.
std::string resolvePath(const FileStructure &structure, const std::string &stated, std::initializer_list<std::string_view> groups)
{
    if (stated.starts_with("/"))
        return findByPath(structure, stated) != nullptr ? stated : std::string();
    for (const std::string_view group : groups)
        if (findByPath(structure, std::string(group) + stated) != nullptr)
            return std::string(group) + stated;
    return {};
}

/// Dump name of the bias of a weight. Without an attribute a bias of the weight's own name is its bias.
std::string biasOf(NativeReader &reader, const TensorEntry &weight, const DatasetInfo &dataset)
{
    const std::string stated = AttributeReader(weight.path, dataset.attributes, reader.result.info.notes).text("bias");
    if (stated.empty())
        return findByPath(reader.structure, std::string(kBiases) + weight.name.value) != nullptr ? weight.name.value
                                                                                                 : std::string();
    const std::string path = resolvePath(reader.structure, stated, {kBiases});
    if (path.empty()) {
        reader.note(printable(weight.path) + ": its bias " + printable(stated) + " is not in the file");
        return {};
    }
    if (path.starts_with(kBiases))
        return path.substr(kBiases.size());
    // A bias kept elsewhere joins the list under its path.
    const std::vector<TensorEntry> &biases = reader.result.info.biases;
    const auto listed = std::find_if(biases.begin(), biases.end(), [&](const TensorEntry &bias) { return bias.path == path; });
    if (listed == biases.end())
        if (const auto entry = addTensor(reader, "", {path, findByPath(reader.structure, path)}))
            reader.result.info.biases.push_back(*entry);
    return path;
}

std::vector<double> readVector(NativeReader &reader, const std::string &path)
{
    const DatasetInfo *dataset = findByPath(reader.structure, path);
    if (dataset == nullptr)
        return {};
    Expected<std::vector<double>> values = readNumbers(reader.source, withStoredDtype(*dataset, reader.result.info.notes));
    if (values)
        return std::move(*values);
    reader.refuse(path, values.error().what + "; " + values.error().expected);
    return {};
}

std::set<std::string> biasesOfNorms(NativeReader &reader, const std::vector<NamedDataset> &norms)
{
    std::set<std::string> biases;
    std::set<std::string> names;
    for (const NamedDataset &norm : norms)
        names.insert(norm.name);
    for (const NamedDataset &norm : norms) {
        std::vector<std::string> ignored;
        const std::string stated = AttributeReader(norm.dataset->path, norm.dataset->attributes, ignored).text("bias");
        if (!stated.empty())
            biases.insert(resolvePath(reader.structure, stated, {kBiases, kNorms}));
        // The shared form: <name>.bias beside <name>, without a kind of its own.
        const std::string own = norm.name + ".bias";
        if (names.count(own) > 0)
            biases.insert(std::string(kNorms) + own);
    }
    return biases;
}

NormParameters readNorm(NativeReader &reader, const NamedDataset &named, const std::string &path)
{
    const AttributeReader attributes(path, named.dataset->attributes, reader.result.info.notes);
    const ModelInfo &model = reader.result.info.model;
    NormParameters norm;
    norm.kind = attributes.text("kind", model.normKind);
    norm.offset = static_cast<int>(attributes.integer("offset", model.normOffset));
    norm.eps = attributes.number("eps", model.normEps);
    norm.gain = readVector(reader, path);
    const std::string stated = attributes.text("bias");
    const std::string own = std::string(kNorms) + named.name + ".bias";
    const std::string bias = stated.empty() ? (findByPath(reader.structure, own) != nullptr ? own : std::string())
                                            : resolvePath(reader.structure, stated, {kBiases, kNorms});
    if (!stated.empty() && bias.empty())
        reader.note(printable(path) + ": its bias " + printable(stated) + " is not in the file");
    if (!bias.empty())
        norm.bias = readVector(reader, bias);
    if (!norm.bias.empty() && norm.bias.size() != norm.gain.size()) {
        reader.note(printable(path) + ": its bias has " + std::to_string(norm.bias.size()) + " entries, the gain " +
                    std::to_string(norm.gain.size()) + "; the bias is not used");
        norm.bias.clear();
    }
    return norm;
}

} // namespace

void readNativeTensors(NativeReader &reader)
{
    DumpInfo &info = reader.result.info;
    for (const NamedDataset &named : datasetsBelow(reader.structure, kBiases))
        if (const auto entry = addTensor(reader, kBiases, named))
            info.biases.push_back(*entry);
    for (const NamedDataset &named : datasetsBelow(reader.structure, kWeights)) {
        std::optional<TensorEntry> entry = addTensor(reader, kWeights, named);
        if (!entry)
            continue;
        entry->bias = biasOf(reader, *entry, *named.dataset);
        info.weights.push_back(std::move(*entry));
    }
    const std::vector<NamedDataset> norms = datasetsBelow(reader.structure, kNorms);
    const std::set<std::string> biases = biasesOfNorms(reader, norms);
    for (const NamedDataset &named : norms) {
        const std::string path = std::string(kNorms) + named.name;
        if (biases.count(path) > 0)
            continue;
        NormParameters norm = readNorm(reader, named, path);
        if (!norm.gain.empty())
            info.norms.emplace(named.name, std::move(norm));
    }
}

} // namespace planish
