// A dump that was written comes back number by number, in every storage; nothing is left of one that was not finished.
#include <QtTest>

#include <QTemporaryDir>

#include <cmath>
#include <filesystem>

#include "core/io/dump.h"
#include "core/io/dump_writer.h"
#include "core/io/number_decode.h"

using namespace planish;

namespace {

constexpr std::uint64_t kRows = 150, kChannels = 40;

/// Values every 16-bit type holds exactly (8 significant bits).
MatrixD exactValues(std::uint64_t rows, std::uint64_t channels)
{
    MatrixD values(rows, channels);
    for (std::uint64_t r = 0; r < rows; ++r)
        for (std::uint64_t c = 0; c < channels; ++c)
            values(r, c) = (static_cast<double>((r * 37 + c * 11) % 255) - 127.0) / 64.0;
    return values;
}

DumpHeader header()
{
    DumpHeader out;
    out.model.family = "llama";
    out.model.hiddenSize = kChannels;
    out.model.numLayers = 2;
    out.model.normKind = "layernorm";
    out.model.activation = "silu";
    out.model.ropeTheta = 1e4;
    out.model.tiedEmbeddings = true;
    for (std::uint64_t r = 0; r < kRows; ++r) {
        out.tokens.id.push_back(static_cast<std::int32_t>(r + 7));
        out.tokens.request.push_back(static_cast<std::int32_t>(r / 50));
        out.tokens.position.push_back(static_cast<std::int32_t>(r % 50));
        out.tokens.phase.push_back(r % 50 > 40 ? 1 : 0);
        out.tokens.mask.push_back(r % 50 == 3 ? 0 : 1);
        out.tokens.text.push_back("t" + std::to_string(r));
    }
    out.tokens.hasId = out.tokens.hasMask = true;
    return out;
}

DumpEdge edge(const std::string &id, std::uint64_t rows, std::uint64_t channels)
{
    DumpEdge out;
    out.id = EdgeId{id};
    out.layer = 1;
    out.site = "attn_in";
    out.producer = "layers.1.input_layernorm";
    out.consumers = {"layers.1.q_proj"};
    out.rows = rows;
    out.channels = channels;
    return out;
}

} // namespace

class TestDumpWriter : public QObject {
    Q_OBJECT

    QTemporaryDir m_folder;
    std::string path(const std::string &name) const { return m_folder.path().toStdString() + "/" + name; }

private slots:
    void edgesComeBackInEveryStorage_data()
    {
        QTest::addColumn<int>("type");
        QTest::addColumn<bool>("gzip");
        for (const StoredType type : {StoredType::F16, StoredType::Bf16, StoredType::F32, StoredType::F64})
            for (const bool gzip : {false, true})
                QTest::newRow((std::string(nameOf(type)) + (gzip ? " gzip" : " contiguous")).c_str())
                    << static_cast<int>(type) << gzip;
    }
    void edgesComeBackInEveryStorage()
    {
        QFETCH(int, type);
        QFETCH(bool, gzip);
        const auto stored = static_cast<StoredType>(type);
        const std::string file = path(std::string(QTest::currentDataTag()) + ".h5");
        const MatrixD values = exactValues(kRows, kChannels);
        auto writer = DumpWriter::create(file, header());
        QVERIFY2(writer.has_value(), writer ? "" : toText(writer.error()).c_str());
        const DumpEdge written = edge("layers.1.attn_in", kRows, kChannels);
        QVERIFY(writer->addEdge(written, {stored, gzip ? DumpStorage::Gzip : DumpStorage::Contiguous, 32}));
        QVERIFY(writer->appendRows(written.id, values.view().middleRows(0, 47)));
        MatrixF rest(kRows - 47, kChannels);
        for (std::size_t r = 0; r < rest.rows(); ++r)
            for (std::size_t c = 0; c < kChannels; ++c)
                rest(r, c) = static_cast<float>(values(r + 47, c));
        const MatrixF &constRest = rest;
        QVERIFY(writer->appendRows(written.id, constRest.view()));
        QVERIFY(writer->finish());
        const auto dump = openDump(file, {});
        QVERIFY2(dump.has_value(), dump ? "" : toText(dump.error()).c_str());
        checkEdge(**dump, values, stored);
    }

    void everyBlockIsVisitedOnceInOrder()
    {
        const std::string file = path("large.h5");
        constexpr std::uint64_t rows = 9000, channels = 2048;
        auto writer = DumpWriter::create(file, {});
        QVERIFY(writer);
        const DumpEdge written = edge("layers.1.attn_in", rows, channels);
        QVERIFY(writer->addEdge(written, {StoredType::F32, DumpStorage::Contiguous}));
        MatrixF block(1000, channels);
        for (std::uint64_t begin = 0; begin < rows; begin += block.rows()) {
            for (std::size_t r = 0; r < block.rows(); ++r)
                std::fill_n(block.row(r).begin(), channels, static_cast<float>(begin + r));
            const MatrixF &constBlock = block;
            QVERIFY(writer->appendRows(written.id, constBlock.view()));
        }
        QVERIFY(writer->finish());
        const auto dump = openDump(file, {});
        QVERIFY(dump);
        const DumpEdge &read = (*dump)->info().edges.at(0);
        std::uint64_t next = 0;
        std::size_t blocks = 0;
        bool right = true;
        const auto visited = (*dump)->visitRawBlocks(
            read,
            [&](std::uint64_t begin, std::uint64_t count, std::span<const std::byte> bytes) {
                right = right && begin == next && bytes.size() == count * channels * 4 && bytes.size() <= (std::size_t{32} << 20);
                float last = 0.0F;
                std::memcpy(&last, bytes.data() + bytes.size() - 4, 4);
                next = begin + count;
                right = right && last == static_cast<float>(next - 1);
                ++blocks;
                return true;
            },
            {});
        QVERIFY(visited && right && next == rows && blocks > 2);
    }

    void visitorStopsWhenAsked()
    {
        const auto dump = smallDump("stop.h5");
        const DumpEdge &read = dump->info().edges.at(0);
        std::stop_source source;
        source.request_stop();
        const auto stopped = dump->visitBlocks(
            read, [](const Block &) { return true; }, source.get_token());
        QVERIFY(!stopped);
        QCOMPARE(exitCode(stopped.error()), 3);
        int calls = 0;
        QVERIFY(dump->visitBlocks(read, [&](const Block &) { return ++calls > 5; }, {}));
        QCOMPARE(calls, 1);
    }

    void oneFileMayBeOpenTwice()
    {
        const auto first = smallDump("twice.h5");
        const std::array<std::int64_t, 1> rows{2};
        QVERIFY(first->readRows(first->info().edges.at(0), rows));
        const auto second = openDump(path("twice.h5"), {});
        QVERIFY(second && (*second)->info().edges.size() == 1);
        QVERIFY((*second)->readRows((*second)->info().edges.at(0), rows).value() ==
                first->readRows(first->info().edges.at(0), rows).value());
    }

    void rowsOutsideTheEdgeAreRefused()
    {
        const auto dump = smallDump("outside.h5");
        const std::array<std::int64_t, 2> rows{0, static_cast<std::int64_t>(kRows)};
        const auto read = dump->readRows(dump->info().edges.at(0), rows);
        QVERIFY(!read);
        QVERIFY(read.error().what.find("no row 150") != std::string::npos);
    }

    void tensorsNormsAndTokensComeBack()
    {
        const std::string file = path("parts.h5");
        auto writer = DumpWriter::create(file, header());
        QVERIFY(writer);
        const MatrixD weight = exactValues(12, kChannels);
        const std::vector<double> bias{1.0, -2.0, 0.5};
        QVERIFY(writer->addWeight(TensorName{"layers.1.q_proj"}, weight.view(), {StoredType::F16, DumpStorage::Gzip, 5},
                                  "layers.1.q_proj"));
        QVERIFY(writer->addBias(TensorName{"layers.1.q_proj"}, bias, StoredType::F32));
        NormParameters norm{"layernorm", 0, 1e-5, std::vector<double>(kChannels, 1.5), std::vector<double>(kChannels, -0.25)};
        QVERIFY(writer->addNorm(TensorName{"layers.1.input_layernorm"}, norm, StoredType::F16));
        QVERIFY(writer->addArray("/planted/channels", std::vector<double>{3, 17}, {2}, StoredType::I64));
        QVERIFY(writer->setAttribute("/planted", "seed", std::int64_t{42}));
        QVERIFY(writer->finish());
        const auto dump = openDump(file, {});
        QVERIFY2(dump.has_value(), dump ? "" : toText(dump.error()).c_str());
        const DumpInfo &info = (*dump)->info();
        QCOMPARE(info.layout, std::string("native"));
        QCOMPARE(info.weights.size(), std::size_t{1});
        QCOMPARE(info.weights[0].bias, std::string("layers.1.q_proj"));
        QVERIFY((*dump)->readTensor(info.weights[0]).value() == weight);
        QCOMPARE((*dump)->readTensor(info.biases.at(0)).value()(0, 1), -2.0);
        QCOMPARE(info.norms.size(), std::size_t{1});
        const NormParameters &read = info.norms.at("layers.1.input_layernorm");
        QCOMPARE(read.gain, norm.gain);
        QCOMPARE(read.bias, norm.bias);
        QCOMPARE(read.kind, norm.kind);
        checkTokens(info);
    }

    void rowRangesAndTransposesOfTensorsAreTaken()
    {
        const std::string file = path("oriented.h5");
        auto writer = DumpWriter::create(file, {});
        const MatrixD weight = exactValues(6, 4);
        QVERIFY(writer && writer->addWeight(TensorName{"w"}, weight.view(), {StoredType::F32}) && writer->finish());
        const auto dump = openDump(file, {});
        // No edges: still a dump by its format attribute.
        QVERIFY2(dump.has_value(), dump ? "" : toText(dump.error()).c_str());
        TensorEntry entry = (*dump)->info().weights.at(0);
        entry.transposed = true;
        entry.rowBegin = 1;
        entry.rowEnd = 3;
        const MatrixD part = (*dump)->readTensor(entry).value();
        QCOMPARE(part.rows(), std::size_t{2});
        QCOMPARE(part.cols(), std::size_t{6});
        QCOMPARE(part(0, 5), weight(5, 1));
    }

    void rowTablesOfDecodeOnlyEdgesComeBack()
    {
        const std::string file = path("rows.h5");
        auto writer = DumpWriter::create(file, header());
        DumpEdge decode = edge("layers.1.attn_in", 3, kChannels);
        decode.rowToToken = {41, 42, 149};
        const MatrixD values = exactValues(3, kChannels);
        QVERIFY(writer && writer->addEdge(decode, {}) && writer->appendRows(decode.id, values.view()) && writer->finish());
        const auto dump = openDump(file, {});
        QVERIFY(dump);
        QCOMPARE((*dump)->info().edges.at(0).rowToToken, decode.rowToToken);
        QCOMPARE((*dump)->info().tokens.size(), std::size_t{kRows});
    }

    void missingRowsAreRefusedAndNothingIsLeft()
    {
        const std::string file = path("short.h5");
        {
            auto writer = DumpWriter::create(file, header());
            QVERIFY(writer && writer->addEdge(edge("e", 5, 4), {}));
            const auto finished = writer->finish();
            QVERIFY(!finished);
            QVERIFY(toText(finished.error()).find("edge e got 0 rows") != std::string::npos);
        }
        for (const auto &entry : std::filesystem::directory_iterator(m_folder.path().toStdString()))
            QVERIFY(entry.path().string().find("short.h5") == std::string::npos);
    }

    void unwritableFolderIsNamed()
    {
        const auto writer = DumpWriter::create(path("none/out.h5"), {});
        QVERIFY(!writer);
        QCOMPARE(writer.error().subject, path("none/out.h5"));
    }

    void unwrittenTailAndUpcastAreNoted()
    {
        const std::string file = path("notes.h5");
        auto writer = DumpWriter::create(file, header());
        DumpEdge tail = edge("layers.1.attn_in", kRows, kChannels);
        MatrixD values = exactValues(kRows, kChannels);
        for (std::size_t r = kRows - 24; r < kRows; ++r)
            std::fill_n(values.row(r).begin(), kChannels, 0.0);
        const MatrixD &constValues = values;
        QVERIFY(writer && writer->addEdge(tail, {StoredType::F32, DumpStorage::Gzip, 16}) &&
                writer->appendRows(tail.id, constValues.view()));
        const auto attribute = writer->setAttribute("/edges/layers.1.attn_in", "write_index", std::int64_t{126});
        QVERIFY2(attribute.has_value(), attribute ? "" : toText(attribute.error()).c_str());
        QVERIFY(writer->finish());
        const auto dump = openDump(file, {});
        QVERIFY(dump);
        const std::string notes = [&] {
            std::string all;
            for (const std::string &note : (*dump)->info().notes)
                all += note + "\n";
            return all;
        }();
        QVERIFY2(notes.find("24 trailing all-zero rows") != std::string::npos, notes.c_str());
        QVERIFY2(notes.find("write_index is 126 of 150") != std::string::npos, notes.c_str());
        QVERIFY2(notes.find("upcast bf16") != std::string::npos, notes.c_str());
        QVERIFY((*dump)->info().edges.at(0).upcastBf16);
    }

private:
    std::shared_ptr<const Dump> smallDump(const std::string &name)
    {
        auto writer = DumpWriter::create(path(name), header());
        const DumpEdge written = edge("layers.1.attn_in", kRows, kChannels);
        const MatrixD values = exactValues(kRows, kChannels);
        const bool done =
            writer && writer->addEdge(written, {}) && writer->appendRows(written.id, values.view()) && writer->finish();
        return done ? openDump(path(name), {}).value() : nullptr;
    }

    static void checkEdge(const Dump &dump, const MatrixD &values, StoredType stored)
    {
        const DumpEdge &read = dump.info().edges.at(0);
        QCOMPARE(read.storedType, stored);
        QCOMPARE(read.site, std::string("attn_in"));
        QCOMPARE(read.consumers, std::vector<std::string>{"layers.1.q_proj"});
        MatrixD seen(kRows, kChannels);
        QVERIFY(dump.visitBlocks(read,
                                 [&](const Block &block) {
                                     std::copy_n(block.values.data(), block.values.size(), seen.row(block.begin).begin());
                                     return true;
                                 },
                                 {}));
        QVERIFY(seen == values);
        const std::vector<std::int64_t> wanted{149, 0, 31, 32, 33, 0, 95, 100};
        const auto rows = dump.readRows(read, wanted);
        QVERIFY(rows);
        for (std::size_t i = 0; i < wanted.size(); ++i)
            for (std::size_t c = 0; c < kChannels; ++c)
                QCOMPARE((*rows)(i, c), values(static_cast<std::size_t>(wanted[i]), c));
    }

    static void checkTokens(const DumpInfo &info)
    {
        const DumpHeader written = header();
        QCOMPARE(info.tokens.id, written.tokens.id);
        QCOMPARE(info.tokens.request, written.tokens.request);
        QCOMPARE(info.tokens.position, written.tokens.position);
        QCOMPARE(info.tokens.phase, written.tokens.phase);
        QCOMPARE(info.tokens.mask, written.tokens.mask);
        QCOMPARE(info.tokens.text, written.tokens.text);
        QCOMPARE(info.model.hiddenSize, written.model.hiddenSize);
        QCOMPARE(info.model.ropeTheta, 1e4);
        QVERIFY(info.model.tiedEmbeddings && info.model.states("tied_embeddings"));
    }
};

QTEST_GUILESS_MAIN(TestDumpWriter)
#include "tst_dump_writer.moc"
