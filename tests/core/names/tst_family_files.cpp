// The family files shipped, and faults in one's own.
#include <QtTest>

#include <set>

#include "core/names/family.h"
#include "core/names/name_pattern.h"

using namespace planish;

namespace {

const std::string kResources = std::string(PLANISH_SOURCE_DIR) + "/resources";

Expected<Family> readText(QTemporaryDir &dir, const std::string &text)
{
    const QString path = dir.filePath("own.yaml");
    QFile file(path);
    if (file.open(QIODevice::WriteOnly))
        file.write(text.c_str());
    file.close();
    return readFamily(path.toStdString());
}

} // namespace

class FamilyFilesTest : public QObject {
    Q_OBJECT

private slots:
    void everyFamilyOfTheTableIsShipped()
    {
        const auto list = FamilyList::load(kResources);
        QVERIFY2(list.has_value(), list ? "" : toText(list.error()).c_str());
        for (const char *key :
             {"llama", "mistral", "qwen2", "qwen3",  "gemma",   "gemma2",   "gemma3", "olmo",    "phi", "phi3",
              "gpt2",  "opt",     "bloom", "falcon", "mixtral", "qwen_moe", "bert",   "roberta", "t5",  "whisper"})
            QVERIFY2(list->find(key), key);
        QCOMPARE(list->all().size(), std::size_t(16));
        QVERIFY(!list->find("nosuch"));
    }

    void everyRoleOfAnEdgeIsAName()
    {
        const auto list = FamilyList::load(kResources).value();
        for (const auto &family : list.all()) {
            const auto known = [&](const std::string &role, const std::string &site) {
                const std::string prefix = site.starts_with("decoder.") ? "decoder." : "";
                std::string own = role.substr(role.find(':') == std::string::npos ? 0 : role.find(':') + 1);
                for (const char *star : {"experts.*", "layers.*"})
                    if (const auto at = own.find(star); at != std::string::npos)
                        own.replace(at, std::strlen(star),
                                    std::string(star, std::strlen(star) - 1) + (star[0] == 'e' ? "{e}" : "{l}"));
                return family->names.count(prefix + "layers.{l}." + own) || family->names.count(own);
            };
            std::vector<std::map<std::string, FamilyEdge>> all{family->edges};
            for (const FamilyVariant &variant : family->variants)
                all.push_back(variant.edges);
            for (const auto &edges : all)
                for (const auto &[site, edge] : edges) {
                    const std::string where = family->key + " " + site;
                    for (const std::string &role : edge.consumers)
                        QVERIFY2(known(role, site), (where + " " + role).c_str());
                    for (const std::string &reader : edge.otherReaders)
                        QVERIFY2(reader == "residual" || known(reader, site), (where + " " + reader).c_str());
                    QVERIFY2(edge.gate.empty() || known(edge.gate, site), where.c_str());
                    const std::string producer = fillPattern(edge.producer, {1, 1});
                    bool found = !family->normHasScale && site != "mlp_down" && site != "attn_out";
                    for (const auto &[pattern, ways] : family->names)
                        found = found || matchPattern(pattern, producer);
                    QVERIFY2(found, (where + " " + producer).c_str());
                }
        }
    }

    void aPatternMayBeStoredTheOtherWayRound()
    {
        const auto list = FamilyList::load(kResources).value();
        const auto gpt2 = list.find("gpt2");
        QVERIFY(gpt2->inOut); // Conv1D
        QVERIFY(gpt2->names.at("layers.{l}.c_attn").front().inOut);
        for (const char *table : {"embed", "embed_positions", "head"})
            QVERIFY2(!gpt2->names.at(table).front().inOut, table); // tables are [vocabulary, hidden]
    }

    void namesOfATargetAreNamesOfTheFamily()
    {
        const auto list = FamilyList::load(kResources).value();
        for (const auto &family : list.all())
            for (const auto &[target, names] : family->targets)
                for (const auto &[dump, stored] : names)
                    QVERIFY2(family->names.count(dump), (family->key + " " + target + " " + dump).c_str());
    }

    void unknownKeysAreNamedWithFileAndPath()
    {
        QTemporaryDir dir;
        const auto family = readText(dir, "family: x\nnames: {embed: [e]}\nedges: {attn_in: {producer: n, consumer: [q]}}\n");
        QVERIFY(!family);
        const std::string text = toText(family.error());
        QVERIFY2(text.find("own.yaml") != std::string::npos && text.find("edges.attn_in.consumer") != std::string::npos,
                 text.c_str());
    }

    void brokenFilesAreRefusedNotThrown()
    {
        QTemporaryDir dir;
        for (const char *text :
             {"", "[1, 2]", "family: x", "family: x\nnames: {a: []}\nedges: {}",
              "family: x\nnames: {a: [b]}\nedges: {m: {ties: maybe}}", "family: x\nnames: {a: [{rows: [0, 1]}]}\nedges: {}",
              "family: x\nfamily: y\nnames: {a: [b]}\nedges: {}", "{{{",
              "family: x\nnames: {a: [b]}\nedges: {}\nnorm: {kind: batchnorm}"})
            QVERIFY2(!readText(dir, text), text);
    }

    void ownFolderReplacesAFamilyOfTheSameKey()
    {
        QTemporaryDir dir;
        QVERIFY(readText(dir, "family: llama\nalso: [mine]\nnames: {embed: [table]}\nedges: {}\n"));
        const auto list = FamilyList::load(kResources, dir.path().toStdString());
        QVERIFY2(list.has_value(), list ? "" : toText(list.error()).c_str());
        QCOMPARE(list->all().size(), std::size_t(16));
        QVERIFY(list->find("llama")->names.count("embed"));
        QCOMPARE(list->find("mine")->key, std::string("llama"));
    }

    void aFamilyIsMatchedByKeyThenArchitectureThenNames()
    {
        const auto list = FamilyList::load(kResources).value();
        QCOMPARE(list.match("mistral", {"BertModel"}, {})->key, std::string("llama"));
        QCOMPARE(list.match("", {"BertModel"}, {})->key, std::string("bert"));
        QCOMPARE(list.match("", {}, {"transformer.h.0.attn.c_attn.weight"})->key, std::string("gpt2"));
        QVERIFY(!list.match("", {}, {"something.else"}));
        const std::string gate = "model.layers.2.mlp.gate_proj.weight";
        QCOMPARE(list.match("", {}, {gate})->key, std::string("llama"));
        QCOMPARE(list.match("", {}, {gate, "model.layers.2.self_attn.q_norm.weight"})->key, std::string("qwen3"));
        QCOMPARE(list.match("", {},
                            {gate, "model.layers.2.self_attn.q_norm.weight", "model.layers.2.pre_feedforward_layernorm.weight"})
                     ->key,
                 std::string("gemma2"));
        QCOMPARE(list.match("", {},
                            {"model.encoder.layers.0.self_attn_layer_norm.weight",
                             "model.decoder.layers.0.self_attn_layer_norm.weight"})
                     ->key,
                 std::string("whisper"));
    }

    void aNormOrderChoosesTheVariant()
    {
        const auto list = FamilyList::load(kResources).value();
        const auto opt = list.find("opt");
        const auto nothing = [](const std::string &) { return false; };
        ModelInfo model;
        QCOMPARE(opt->edge("attn_in", model, nothing)->producer, std::string("layers.{l}.self_attn_layer_norm"));
        model.postNorm = true;
        QVERIFY(opt->edge("attn_in", model, nothing)->shortcut());
        const auto falcon = list.find("falcon");
        QCOMPARE(falcon->edge("mlp_in", model, nothing)->producer, std::string("layers.{l}.input_layernorm"));
        QCOMPARE(falcon->edge("mlp_in", model, [](const std::string &) { return true; })->producer,
                 std::string("layers.{l}.ln_mlp"));
    }
};

QTEST_GUILESS_MAIN(FamilyFilesTest)
#include "tst_family_files.moc"
