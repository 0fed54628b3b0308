// The safetensors reader against files that break one rule each, the writer, and sharded folders.
#include <QtTest>

#include <QTemporaryDir>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "core/io/checkpoint.h"
#include "core/io/number_decode.h"
#include "core/io/safetensors.h"

using namespace planish;

namespace {

std::string withHeader(const std::string &header, std::size_t dataBytes, std::int64_t statedLength = -1)
{
    std::string file(8, '\0');
    const auto length = static_cast<std::uint64_t>(statedLength < 0 ? static_cast<std::int64_t>(header.size()) : statedLength);
    for (std::size_t i = 0; i < 8; ++i)
        file[i] = static_cast<char>(length >> (8 * i) & 0xFF);
    return file + header + std::string(dataBytes, '\1');
}

void save(const std::string &path, const std::string &bytes)
{
    std::ofstream(path, std::ios::binary) << bytes;
}

std::string oneTensor(const std::string &dtype, const std::string &shape, const std::string &offsets)
{
    return R"({"a":{"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
}

std::vector<std::byte> halves(std::initializer_list<double> values)
{
    const std::vector<double> list(values);
    std::vector<std::byte> bytes(list.size() * 2);
    narrow(std::span<const double>(list), StoredType::F16, bytes);
    return bytes;
}

} // namespace

class TestSafetensors : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string path(const std::string &name) const { return m_folder.path().toStdString() + "/" + name; }

    void writeShard(const std::string &file, const std::vector<std::string> &names)
    {
        std::vector<TensorSpec> specs;
        for (const std::string &name : names)
            specs.push_back({name, StoredType::F16, {1, 2}});
        auto writer = SafetensorsWriter::create(file, specs, {});
        QVERIFY(writer);
        for (const std::string &name : names)
            QVERIFY(writer->writeTensor(name, halves({1.5, -2.0})));
        QVERIFY(writer->finish());
    }

private slots:
    void brokenHeadersAreRefusedInOneSentence_data()
    {
        QTest::addColumn<QByteArray>("bytes");
        QTest::addColumn<QString>("mentions");
        const auto add = [](const char *name, const std::string &bytes, const char *mentions) {
            QTest::newRow(name) << QByteArray(bytes.data(), static_cast<int>(bytes.size())) << QString(mentions);
        };
        add("empty", "", "too short");
        add("length 2^63 - 1", withHeader("{}", 16, INT64_MAX), "header length");
        add("above 100 MB", withHeader("{}", 16, 100'000'001), "100000000");
        add("longer than the file", withHeader("{}", 16, 5000), "header claims 5000");
        add("no object", withHeader("[]", 0), "begin with {");
        add("no JSON", withHeader("{\"a\":", 0), "valid JSON");
        add("unknown dtype", withHeader(oneTensor("F17", "[2]", "[0,4]"), 4), "F17");
        add("negative shape", withHeader(oneTensor("F16", "[-2,-1]", "[0,4]"), 4), "shape holds the negative number -2");
        add("fractional shape", withHeader(oneTensor("F16", "[2.0]", "[0,4]"), 4), "shape holds the fraction 2.0");
        add("size mismatch", withHeader(oneTensor("F16", "[3]", "[0,4]"), 4), "range of 4 bytes");
        add("past the end", withHeader(oneTensor("F16", "[4]", "[0,8]"), 4), "past the end");
        add("overflow", withHeader(oneTensor("F16", "[4294967296,4294967296,4]", "[0,4]"), 4), "overflows");
        add("reversed range", withHeader(oneTensor("F16", "[0]", "[4,0]"), 4), "negative length");
        add("three offsets", withHeader(oneTensor("F16", "[2]", "[0,4,4]"), 4), "two data_offsets");
        add("unknown key", withHeader(R"({"a":{"dtype":"F16","shape":[2],"data_offsets":[0,4],"x":[1]}})", 4), "unknown key x");
        add("hole", withHeader(oneTensor("F16", "[2]", "[4,8]"), 8), "hole of 4 bytes");
        add("bytes behind", withHeader(oneTensor("F16", "[2]", "[0,4]"), 8), "4 bytes behind");
        add("duplicate name",
            withHeader(
                R"({"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]},"a":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                4),
            "duplicate name a");
        add("duplicate key", withHeader(R"({"a":{"dtype":"U8","dtype":"I8","shape":[2],"data_offsets":[0,2]}})", 2),
            "duplicate key dtype");
        add("overlap",
            withHeader(
                R"({"a":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"b":{"dtype":"U8","shape":[2],"data_offsets":[2,4]}})",
                4),
            "b overlaps a");
        add("metadata of numbers", withHeader(R"({"__metadata__":{"n":1}})", 0), "holds the number 1");
        std::string deep = R"({"a":{"dtype":)";
        for (int i = 0; i < 100000; ++i)
            deep += R"({"x":)";
        add("nested deep", withHeader(deep, 0), "too deep");
    }
    void brokenHeadersAreRefusedInOneSentence()
    {
        QFETCH(QByteArray, bytes);
        QFETCH(QString, mentions);
        const std::string file = path("broken.safetensors");
        save(file, bytes.toStdString());
        const auto opened = openCheckpoint(file);
        QVERIFY(!opened);
        QCOMPARE(exitCode(opened.error()), 1);
        const QString text = QString::fromStdString(toText(opened.error()));
        QVERIFY2(text.startsWith(QString::fromStdString(file) + ": "), qPrintable(text));
        QVERIFY2(text.contains(mentions), qPrintable(text));
    }

    void writtenTensorsComeBack()
    {
        const std::string file = path("good.safetensors");
        auto writer = SafetensorsWriter::create(
            file, {{"z", StoredType::F16, {2, 2}}, {"empty", StoredType::F32, {0, 3}}, {"a \"quoted\"", StoredType::U8, {3}}},
            {{"format", "pt"}, {"planish", "{\"k\": 1}"}});
        QVERIFY(writer);
        const std::vector<std::byte> z = halves({1.0, -2.5, 65504.0, 0.0});
        QVERIFY(writer->append(std::span(z).first(3)));
        QVERIFY(writer->append(std::span(z).subspan(3)));
        QVERIFY(writer->writeTensor("a \"quoted\"", std::vector<std::byte>{std::byte{1}, std::byte{2}, std::byte{255}}));
        QVERIFY(writer->finish());
        const auto opened = openCheckpoint(file);
        QVERIFY2(opened.has_value(), opened ? "" : toText(opened.error()).c_str());
        const CheckpointInfo &info = (*opened)->info();
        QCOMPARE(info.kind, std::string("file"));
        QCOMPARE(info.tensors.size(), std::size_t{3});
        QCOMPARE(info.tensors[0].name, std::string("a \"quoted\""));
        QCOMPARE(info.metadata.at("planish"), std::string("{\"k\": 1}"));
        const auto matrix = (*opened)->readMatrix(*info.find("z"));
        QVERIFY(matrix);
        QCOMPARE((*matrix)(0, 1), -2.5);
        QCOMPARE((*matrix)(1, 0), 65504.0);
        const auto vector = (*opened)->readMatrix(*info.find("a \"quoted\""));
        QVERIFY(vector && vector->rows() == 1 && vector->cols() == 3);
        QCOMPARE((*vector)(0, 2), 255.0);
        QCOMPARE(info.find("missing"), nullptr);
    }

    void headerIsPaddedToEightBytes()
    {
        const std::string file = path("padded.safetensors");
        writeShard(file, {"name"});
        const auto header = readSafetensorsHeader(file);
        QVERIFY(header);
        QCOMPARE(header->dataBegin % 8, std::uint64_t{0});
        QCOMPARE(header->tensors[0].offset, header->dataBegin);
    }

    void unfinishedWriterLeavesNothing()
    {
        const std::string file = path("unfinished.safetensors");
        {
            auto writer = SafetensorsWriter::create(file, {{"a", StoredType::F16, {2}}}, {});
            QVERIFY(writer);
            QVERIFY(writer->append(halves({1.0})));
            const auto finished = writer->finish();
            QVERIFY(!finished);
            QVERIFY(finished.error().what.find("a was not written") != std::string::npos);
        }
        for (const auto &entry : std::filesystem::directory_iterator(m_folder.path().toStdString()))
            QVERIFY(entry.path().string().find("unfinished") == std::string::npos);
    }

    void writerRefusesMoreBytesThanTheShape()
    {
        auto writer = SafetensorsWriter::create(path("more.safetensors"), {{"a", StoredType::F16, {2}}}, {});
        QVERIFY(writer);
        QVERIFY(!writer->append(halves({1.0, 2.0, 3.0})));
        QVERIFY(!writer->writeTensor("b", halves({1.0, 2.0})));
    }

    void folderWithoutIndexIsReadWhenNoNameRepeats()
    {
        const std::string folder = path("plain");
        std::filesystem::create_directory(folder);
        writeShard(folder + "/one.safetensors", {"a", "b"});
        writeShard(folder + "/two.safetensors", {"c"});
        const auto opened = openCheckpoint(folder);
        QVERIFY(opened);
        QCOMPARE((*opened)->info().tensors.size(), std::size_t{3});
        writeShard(folder + "/three.safetensors", {"b"});
        const auto repeated = openCheckpoint(folder);
        QVERIFY(!repeated);
        const std::string text = toText(repeated.error());
        QVERIFY(text.find("tensor b") != std::string::npos && text.find("one.safetensors") != std::string::npos);
    }

    void indexDecidesWhichShardHoldsATensor_data()
    {
        QTest::addColumn<QString>("map");
        QTest::addColumn<QString>("mentions");
        QTest::newRow("whole") << R"({"a":"1.safetensors","b":"1.safetensors","c":"2.safetensors"})"
                               << "";
        QTest::newRow("missing shard") << R"({"a":"1.safetensors","d":"3.safetensors"})"
                                       << "shard 3.safetensors is missing";
        QTest::newRow("not in its shard") << R"({"a":"1.safetensors","c":"1.safetensors"})"
                                          << "tensor c is not in its shard 1.safetensors";
        QTest::newRow("in two shards") << R"({"a":"1.safetensors","c":"2.safetensors","both":"1.safetensors"})"
                                       << "both is also in shard 2";
        QTest::newRow("outside the folder") << R"({"a":"../1.safetensors"})"
                                            << "points to no file of this folder";
        QTest::newRow("named twice") << R"({"a":"1.safetensors","a":"2.safetensors"})"
                                     << "a twice";
    }
    void indexDecidesWhichShardHoldsATensor()
    {
        QFETCH(QString, map);
        QFETCH(QString, mentions);
        const std::string folder = path(std::string("indexed ") + QTest::currentDataTag());
        std::filesystem::create_directory(folder);
        writeShard(folder + "/1.safetensors", {"a", "b", "both"});
        writeShard(folder + "/2.safetensors", {"c", "both"});
        save(folder + "/model.safetensors.index.json", "{\"weight_map\":" + map.toStdString() + "}");
        const auto opened = openCheckpoint(folder);
        QCOMPARE(opened.has_value(), mentions.isEmpty());
        if (opened) {
            QCOMPARE((*opened)->info().tensors.size(), std::size_t{3});
            QVERIFY((*opened)->readMatrix(*(*opened)->info().find("c")));
            return;
        }
        QVERIFY2(QString::fromStdString(toText(opened.error())).contains(mentions), toText(opened.error()).c_str());
    }

    void pickledCheckpointsAreRefusedWithTheWayOut()
    {
        save(path("weights.pt"), "\x80\x02}q\x00.");
        const auto file = openCheckpoint(path("weights.pt"));
        QVERIFY(!file);
        QVERIFY(toText(file.error()).find("safetensors.torch.save_file") != std::string::npos);
        const std::string folder = path("pickled");
        std::filesystem::create_directory(folder);
        save(folder + "/pytorch_model.bin", "PK\x03\x04");
        QVERIFY(!openCheckpoint(folder));
    }

    void configGivesModelFactsAndSaysWhichItStates()
    {
        const std::string folder = path("config");
        std::filesystem::create_directory(folder);
        writeShard(folder + "/model.safetensors", {"a"});
        save(folder + "/config.json", R"({"architectures":["LlamaForCausalLM"],"hidden_size":576,"num_attention_heads":9,
             "num_key_value_heads":3,"num_hidden_layers":30,"intermediate_size":1536,"rms_norm_eps":1e-5,"hidden_act":"silu",
             "tie_word_embeddings":true,"rope_theta":100000})");
        const auto opened = openCheckpoint(folder);
        QVERIFY2(opened.has_value(), opened ? "" : toText(opened.error()).c_str());
        const ModelInfo &model = (*opened)->info().config.value();
        QCOMPARE(model.headDim, std::int64_t{64});
        QCOMPARE(model.numKvHeads, std::int64_t{3});
        QCOMPARE(model.normKind, std::string("rmsnorm"));
        QCOMPARE(model.architectures.at(0), std::string("LlamaForCausalLM"));
        QVERIFY(model.tiedEmbeddings && model.states("tied_embeddings") && !model.states("head_dim"));
        save(folder + "/config.json", R"({"quantization_config":{"quant_method":"gptq"}})");
        const auto quantized = openCheckpoint(folder);
        QVERIFY(!quantized);
        QVERIFY(toText(quantized.error()).find("quantization_config (gptq)") != std::string::npos);
    }
};

QTEST_GUILESS_MAIN(TestSafetensors)
#include "tst_safetensors.moc"
