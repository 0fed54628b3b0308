#include "core/io/layouts/native.h"

#include <set>

#include "core/io/layouts/attribute_reader.h"
#include "core/io/layouts/native_parts.h"
#include "core/io/number_decode.h"
#include "core/io/printable.h"

namespace planish {

namespace {

constexpr std::string_view kFormat = "planish-dump/1";
constexpr std::string_view kFormatFamily = "planish-dump/";

std::string formatAttribute(const FileStructure &structure)
{
    const auto root = structure.groups.find("/");
    if (root == structure.groups.end())
        return {};
    const auto format = root->second.find("format");
    const auto *text = format == root->second.end() ? nullptr : std::get_if<std::string>(&format->second);
    return text != nullptr ? *text : std::string();
}

const Attributes &attributesOf(const FileStructure &structure, const std::string &group)
{
    static const Attributes none;
    const auto found = structure.groups.find(group);
    return found == structure.groups.end() ? none : found->second;
}

/// One dataset may be looked at twice (a bias by its norm and by the list of biases); its note is said once.
void removeRepeats(std::vector<std::string> &notes)
{
    std::set<std::string> said;
    std::erase_if(notes, [&](const std::string &note) { return !said.insert(note).second; });
}

} // namespace

std::vector<NamedDataset> datasetsBelow(const FileStructure &structure, std::string_view prefix)
{
    std::vector<NamedDataset> found;
    for (const DatasetInfo &dataset : structure.datasets)
        if (dataset.path.starts_with(prefix))
            found.push_back({dataset.path.substr(prefix.size()), &dataset});
    for (const auto &[path, listed] : structure.aliases)
        if (path.starts_with(prefix) && !listed.starts_with(prefix))
            if (const DatasetInfo *dataset = structure.find(listed))
                found.push_back({path.substr(prefix.size()), dataset});
    return found;
}

Expected<std::vector<double>> readNumbers(BlockSource &source, const DatasetInfo &dataset)
{
    constexpr std::uint64_t kMost = std::uint64_t{1} << 28;
    std::uint64_t count = 0;
    if (!isNumeric(dataset.type) || !productFits(dataset.shape, kMost, &count))
        return dataError(dataset.path, "holds " + dataset.typeText + " " + shapeText(dataset.shape), "a list of numbers");
    std::vector<std::byte> bytes(static_cast<std::size_t>(count) * byteSize(dataset.type));
    const std::uint64_t rows = dataset.shape.empty() ? 1 : dataset.shape[0];
    if (Expected<void> read = source.readRows(dataset, 0, rows, bytes); !read)
        return tl::make_unexpected(read.error());
    std::vector<double> values(static_cast<std::size_t>(count));
    widen(bytes, dataset.type, dataset.order, std::span<double>(values));
    return values;
}

std::vector<std::int64_t> readIntegers(NativeReader &reader, const DatasetInfo &dataset)
{
    const Expected<std::vector<double>> numbers = readNumbers(reader.source, dataset);
    if (!numbers) {
        reader.note(printable(dataset.path) + ": not used (" + numbers.error().what + ")");
        return {};
    }
    constexpr double kLimit = 9007199254740992.0;
    std::vector<std::int64_t> values;
    values.reserve(numbers->size());
    for (const double number : *numbers)
        values.push_back(number > -kLimit && number < kLimit ? static_cast<std::int64_t>(number) : 0);
    return values;
}

void readNativeModel(NativeReader &reader)
{
    std::vector<std::string> &notes = reader.result.info.notes;
    ModelInfo &model = reader.result.info.model;
    const AttributeReader root("/", attributesOf(reader.structure, "/"), notes);
    model.model = root.text("model");
    model.revision = root.text("model_revision");
    model.tokenizer = root.text("tokenizer");
    model.corpus = root.text("corpus");
    model.createdBy = root.text("created_by");
    model.family = root.text("family");
    model.baseBasis = root.text("basis", "original");
    const AttributeReader facts("/model", attributesOf(reader.structure, "/model"), notes);
    model.hiddenSize = facts.integer("hidden_size", 0);
    model.numLayers = facts.integer("num_layers", 0);
    model.numHeads = facts.integer("num_heads", 0);
    model.numKvHeads = facts.integer("num_kv_heads", 0);
    model.headDim = facts.integer("head_dim", 0);
    model.ffnSize = facts.integer("ffn_size", 0);
    model.vocabSize = facts.integer("vocab_size", 0);
    model.numExperts = facts.integer("num_experts", 0);
    model.normKind = facts.text("norm_kind");
    model.normOffset = static_cast<int>(facts.integer("norm_offset", 0));
    model.activation = facts.text("activation");
    model.postNorm = facts.flag("post_norm");
    model.tiedEmbeddings = facts.flag("tied_embeddings");
    model.qkNorm = facts.flag("qk_norm");
    model.parallelBlock = facts.flag("parallel_block");
    model.ropeStyle = facts.text("rope_style");
    model.rotaryDim = facts.integer("rotary_dim", 0);
    model.ropeTheta = facts.number("rope_theta", 0.0);
    model.ropeScaling = facts.text("rope_scaling");
    model.normEps = facts.number("norm_eps", 0.0);
    for (const auto &[key, value] : attributesOf(reader.structure, "/model"))
        model.stated.push_back(key);
}

LayoutMatch recogniseNative(const FileStructure &structure)
{
    const std::string format = formatAttribute(structure);
    if (format.starts_with(kFormatFamily))
        return {1.0, "the file says format = " + printable(format)};
    const bool edges = structure.groups.count("/edges") > 0;
    if (edges && structure.groups.count("/tokens") > 0)
        return {0.8, "groups /edges and /tokens as in planish-dump/1, without its format attribute"};
    if (edges)
        return {0.5, "a group /edges as in planish-dump/1, without its format attribute and without /tokens"};
    return {};
}

Expected<LayoutResult> readNative(const FileStructure &structure, BlockSource &source)
{
    const std::string format = formatAttribute(structure);
    if (format.starts_with(kFormatFamily) && format != kFormat)
        return dataError(structure.file, "is of format " + printable(format),
                         std::string(kFormat) + ", or a newer version of this program");
    NativeReader reader{structure, source, {}};
    reader.result.info.refused = structure.refused;
    reader.result.info.notes = structure.notes;
    readNativeModel(reader);
    readNativeTensors(reader);
    readNativeEdges(reader);
    readNativeTokens(reader);
    checkNativeEdges(reader);
    inspectNativeRows(reader);
    removeRepeats(reader.result.info.notes);
    return std::move(reader.result);
}

} // namespace planish
