// Foreign dumps give the edges, shapes, largest values and masks that were measured on the source arrays (tests/golden/foreign).
#include <QtTest>

#include <nlohmann/json.hpp>

#include <QTemporaryDir>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/io/dump.h"
#include "core/io/layouts/layout_table.h"

using namespace planish;
using Json = nlohmann::json;

namespace {

std::string folder()
{
    return qEnvironmentVariable("PLANISH_FOREIGN_DIR", PLANISH_GOLDEN_DIR "/foreign").toStdString();
}

DatasetInfo dataset(const std::string &path, std::vector<std::uint64_t> shape, StoredType type = StoredType::F32)
{
    DatasetInfo info;
    info.path = path;
    info.shape = std::move(shape);
    info.type = type;
    info.elementBytes = byteSize(type);
    return info;
}

std::size_t tokenOf(const DumpEdge &edge, std::size_t row)
{
    return edge.rowToToken.empty() ? row : static_cast<std::size_t>(edge.rowToToken[row]);
}

/// "/prompt_*/layer_2" stands for every prompt.
bool pathFits(const std::string &edge, const std::string &wanted)
{
    const std::size_t star = edge.find('*');
    if (star == std::string::npos || edge == wanted)
        return edge == wanted || wanted.ends_with("-> " + edge);
    const std::string tail = edge.substr(star + 1);
    return wanted.starts_with(edge.substr(0, star)) && (wanted.ends_with(tail) || wanted.find(tail + "/") != std::string::npos);
}

/// The k-th edge of this path: stacks list their layers in order.
const DumpEdge *edgeOf(const DumpInfo &info, const Json &wanted)
{
    std::int64_t skip = wanted.contains("fixed") ? wanted["fixed"]["layer"].get<std::int64_t>() : 0;
    for (const DumpEdge &edge : info.edges)
        if (pathFits(edge.path, wanted["path"].get<std::string>()) && skip-- == 0)
            return &edge;
    return nullptr;
}

struct Measured {
    std::uint64_t rows = 0, nonfinite = 0;
    std::vector<std::uint64_t> at{0, 0};
    double value = 0.0, sum = 0.0;
    double unmaskedValue = 0.0, unmaskedSum = 0.0;
    std::uint64_t masked = 0;
};

Measured measure(const DumpInfo &info, const DumpEdge &edge, const MatrixD &values, const Json &wanted)
{
    Measured out;
    std::set<std::int32_t> requests;
    for (std::size_t row = 0; row < values.rows(); ++row)
        requests.insert(info.tokens.request[tokenOf(edge, row)]);
    std::vector<std::int32_t> order(requests.begin(), requests.end());
    const bool part = edge.path.find('*') != std::string::npos && wanted.contains("request");
    for (std::size_t row = 0; row < values.rows(); ++row) {
        const std::size_t token = tokenOf(edge, row);
        if (part && info.tokens.request[token] != order[wanted["request"].get<std::size_t>()])
            continue;
        if (wanted.contains("phase") && (info.tokens.phase[token] == 1) != (wanted["phase"] == "decode"))
            continue;
        const bool real = info.tokens.mask[token] != 0;
        out.masked += real ? 0 : 1;
        for (std::size_t column = 0; column < values.cols(); ++column) {
            const double value = values(row, column);
            if (!std::isfinite(value)) {
                ++out.nonfinite;
                continue;
            }
            out.sum += value;
            out.unmaskedSum += real ? value : 0.0;
            if (std::fabs(value) > std::fabs(out.value)) {
                out.value = value;
                out.at = {out.rows, column};
            }
            if (real && std::fabs(value) > std::fabs(out.unmaskedValue))
                out.unmaskedValue = value;
        }
        ++out.rows;
    }
    return out;
}

bool near(double got, double wanted)
{
    return std::fabs(got - wanted) <= 1e-6 * (1.0 + std::fabs(wanted));
}

} // namespace

class TestForeign : public QObject {
    Q_OBJECT

private slots:
    void filesGiveTheNumbersOfTheirSource_data()
    {
        QTest::addColumn<QString>("file");
        QTest::addColumn<QString>("expected");
        std::ifstream in(PLANISH_GOLDEN_DIR "/foreign/expected.json");
        const Json all = Json::parse(in);
        std::size_t present = 0;
        for (const auto &[file, expected] : all.items()) {
            if (!std::filesystem::exists(folder() + "/" + file))
                continue;
            ++present;
            QTest::newRow(file.c_str()) << QString::fromStdString(file) << QString::fromStdString(expected.dump());
        }
        QVERIFY(present >= 20);
    }
    void filesGiveTheNumbersOfTheirSource()
    {
        QFETCH(QString, file);
        QFETCH(QString, expected);
        const Json wanted = Json::parse(expected.toStdString());
        const std::string layout = wanted["layout"].get<std::string>();
        const auto dump = openDump(folder() + "/" + file.toStdString(), {});
        if (layout == "ambiguous" || layout == "vlen_flat") {
            QVERIFY(!dump);
            const QString text = QString::fromStdString(toText(dump.error()));
            QVERIFY2(text.contains(layout == "ambiguous" ? "--layout" : "variable"), qPrintable(text));
            return;
        }
        QVERIFY2(dump.has_value(), dump ? "" : toText(dump.error()).c_str());
        const DumpInfo &info = (*dump)->info();
        const bool storageCase = layout == "number_types" || layout == "storage" || layout.starts_with("filters");
        QCOMPARE(QString::fromStdString(info.layout), QString::fromStdString(storageCase ? "native" : layout));
        for (const Json &edge : wanted["edges"])
            checkEdge(**dump, edge);
        for (const Json &weight : wanted["weights"])
            checkWeight(**dump, weight);
    }

    void layoutsAreRecognisedFromTheirStructure_data()
    {
        QTest::addColumn<QString>("layout");
        QTest::addColumn<int>("which");
        int which = 0;
        for (const char *layout :
             {"per_layer_2d", "per_layer_2d_dotted", "transposed", "stacked_layers_first", "batch_seq_k", "appended_columns",
              "heads_4d", "one_group_per_sample", "one_vector_per_prompt", "one_dataset_per_sentence", "requests_prefill_decode",
              "offsets", "transformerlens", "hf_modules", "state_dict_flat", "gpt2_conv1d", "keras3_weights", "ambiguous"})
            QTest::newRow(layout) << layout << which++;
    }
    void layoutsAreRecognisedFromTheirStructure()
    {
        QFETCH(QString, layout);
        QFETCH(int, which);
        const std::vector<std::vector<DatasetInfo>> files{
            {dataset("/acts/layer_3", {40, 64})},
            {dataset("/layers.2.mlp.down_proj.input", {9, 64}), dataset("/layers.3.mlp.down_proj.input", {9, 64})},
            {dataset("/acts/l2", {64, 9}), dataset("/weights/l2.v_proj", {16, 64})},
            {dataset("/hidden_states", {3, 2, 9, 64}), dataset("/attention_mask", {2, 9}, StoredType::I64)},
            {dataset("/x", {2, 9, 64}), dataset("/attention_mask", {2, 9}, StoredType::I64)},
            {dataset("/acts/layer_3", {2, 9, 66})},
            {dataset("/layer2/z", {1, 9, 4, 16})},
            {dataset("/sample_0/h", {3, 9, 64}), dataset("/sample_1/h", {3, 8, 64})},
            {dataset("/prompt_0/layer_2", {64}), dataset("/prompt_1/layer_2", {64})},
            {dataset("/0", {3, 9, 64}), dataset("/1", {3, 8, 64})},
            {dataset("/requests/a/layers.2/prefill", {9, 64}), dataset("/requests/a/layers.2/decode", {4, 1, 64})},
            {dataset("/layers.2.attn_in/values", {9, 64}), dataset("/layers.2.attn_in/offsets", {3}, StoredType::I64)},
            {dataset("/blocks.0.hook_resid_pre", {2, 9, 64})},
            {dataset("/model/layers/2/mlp/gate_proj/input", {1, 9, 64})},
            {dataset("/model.layers.2.self_attn.k_proj.weight", {16, 64})},
            {dataset("/transformer.h.0.attn.c_attn.weight", {64, 192})},
            {dataset("/layers/dense/vars/0", {64, 16})},
            {dataset("/a", {64, 64})}};
        FileStructure structure;
        structure.datasets = files[static_cast<std::size_t>(which)];
        structure.groups["/"] = {};
        const auto recognised = recogniseLayout(structure);
        QVERIFY2(recognised.has_value(), recognised ? "" : toText(recognised.error()).c_str());
        QCOMPARE(QString::fromStdString(std::string(recognised->layout->key)), layout);
        QVERIFY(recognised->match.confidence > 0.0 && recognised->match.confidence < 1.0);
        QVERIFY(!recognised->match.reason.empty());
    }

    void theLineOfTheRefusalSettlesTheAxes()
    {
        QTemporaryDir out;
        const std::string layout = out.path().toStdString() + "/axes.yaml";
        std::ofstream(layout) << "datasets: [{path: \"/a\", axes: [channel, token]}, {path: /w, axes: [out, in]}]\n";
        const auto dump = openDump(folder() + "/square_ambiguous.h5", {}, layout);
        QVERIFY2(dump.has_value(), dump ? "" : toText(dump.error()).c_str());
        const DumpEdge &edge = (*dump)->info().edges.at(0);
        const std::array<std::int64_t, 1> rows{7};
        // The largest value lies at [0, 7] on disk, so at token 7 and channel 0 of the turned reading.
        QCOMPARE((*dump)->readRows(edge, rows).value()(0, 0), 2.125);
        QCOMPARE((*dump)->info().weights.size(), std::size_t{1});
    }

private:
    static void checkEdge(const Dump &dump, const Json &wanted)
    {
        const std::string path = wanted["path"].get<std::string>();
        const DumpEdge *edge = edgeOf(dump.info(), wanted);
        // What the library itself cannot read is refused by name; the policy of the file asks for exactly that sentence.
        for (const RefusedObject &object : dump.info().refused) {
            if (!edge && object.path == path && object.reason.find("written by a newer HDF5") != std::string::npos)
                return;
        }
        QVERIFY2(edge != nullptr, path.c_str());
        MatrixD values(static_cast<std::size_t>(edge->rows), static_cast<std::size_t>(edge->channels));
        const auto visited =
            dump.visitBlocks(*edge,
                             [&](const Block &block) {
                                 for (std::size_t row = 0; row < block.values.rows(); ++row)
                                     std::ranges::copy(block.values.row(row), values.row(block.begin + row).begin());
                                 return true;
                             },
                             {});
        QVERIFY2(visited.has_value(), visited ? "" : toText(visited.error()).c_str());
        const Measured got = measure(dump.info(), *edge, values, wanted);
        QVERIFY2(got.rows == wanted["tokens"].get<std::uint64_t>() && edge->channels == wanted["channels"].get<std::uint64_t>(),
                 path.c_str());
        QVERIFY2(got.nonfinite == wanted["nonfinite"].get<std::uint64_t>(), path.c_str());
        QVERIFY2(got.at == wanted["at"].get<std::vector<std::uint64_t>>() && near(got.value, wanted["value"].get<double>()),
                 (path + " " + std::to_string(got.value) + " at " + shapeText(got.at)).c_str());
        QVERIFY2(near(got.sum, wanted["sum"].get<double>()), path.c_str());
        if (wanted.contains("layer"))
            QVERIFY2(edge->layer == wanted["layer"].get<std::int64_t>(), path.c_str());
        if (wanted.contains("masked_out_rows"))
            QVERIFY2(got.masked == wanted["masked_out_rows"].get<std::uint64_t>(), path.c_str());
        if (wanted.contains("unmasked_max"))
            QVERIFY2(near(got.unmaskedValue, wanted["unmasked_max"].get<double>()) &&
                         near(got.unmaskedSum, wanted["unmasked_sum"].get<double>()),
                     path.c_str());
    }

    static void checkWeight(const Dump &dump, const Json &wanted)
    {
        const std::string path = wanted["path"].get<std::string>();
        std::size_t rows = 0;
        Measured best;
        std::uint64_t columns = 0;
        for (const TensorEntry &weight : dump.info().weights) {
            if (weight.path != path)
                continue;
            const auto values = dump.readTensor(weight);
            QVERIFY2(values.has_value(), values ? "" : toText(values.error()).c_str());
            columns = values->cols();
            for (std::size_t row = 0; row < values->rows(); ++row, ++rows)
                for (std::size_t column = 0; column < values->cols(); ++column)
                    if (std::fabs((*values)(row, column)) > std::fabs(best.value)) {
                        best.value = (*values)(row, column);
                        best.at = {rows, column};
                    }
        }
        QVERIFY2(rows == wanted["out_features"].get<std::size_t>() && columns == wanted["in_features"].get<std::uint64_t>(),
                 path.c_str());
        QVERIFY2(best.at == wanted["at"].get<std::vector<std::uint64_t>>() && near(best.value, wanted["value"].get<double>()),
                 path.c_str());
    }
};

QTEST_GUILESS_MAIN(TestForeign)
#include "tst_foreign.moc"
