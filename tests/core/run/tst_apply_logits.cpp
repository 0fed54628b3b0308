// The whole road on complete tiny models: synth, plan, apply, and the logits of an independent forward pass before and after.
#include <QTemporaryDir>
#include <QtTest>

#include <cmath>

#include "core/io/checkpoint.h"
#include "core/run/engine.h"
#include "core/run/run_synth.h"
#include "core/synth/reference_forward.h"
#include "core/synth/synth_dump.h"

using namespace planish;

namespace {

struct Road {
    QTemporaryDir folder;
    std::string dump, model, plan, out;
    Road()
        : dump(folder.filePath("d.h5").toStdString()), model(folder.filePath("m.safetensors").toStdString()),
          plan(folder.filePath("p.yaml").toStdString()), out(folder.filePath("o.safetensors").toStdString())
    {
    }
};

Candidate smooth()
{
    Candidate candidate;
    candidate.name = "smooth";
    candidate.chain = {{"smoothquant", {{"alpha", "0.5"}}}};
    candidate.act = *parseQuantSpec("int8:tensor", Role::Activation);
    candidate.weight = *parseQuantSpec("int8:row", Role::Weight);
    return candidate;
}

Candidate identity()
{
    Candidate candidate = smooth();
    candidate.name = "none";
    candidate.chain = {{"none", {}}};
    return candidate;
}

/// The model with the tensors of a checkpoint instead of its own.
Expected<SynthModel> withTensorsOf(SynthModel model, const std::string &file)
{
    auto checkpoint = openCheckpoint(file);
    if (!checkpoint)
        return tl::make_unexpected(checkpoint.error());
    for (const StoredTensor &tensor : (*checkpoint)->info().tensors) {
        auto values = (*checkpoint)->readMatrix(tensor);
        if (!values)
            return tl::make_unexpected(values.error());
        model.tensors[tensor.name] = std::move(*values);
    }
    return model;
}

double relativeChange(const MatrixD &a, const MatrixD &b)
{
    double difference = 0, norm = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
        difference += (a.values()[i] - b.values()[i]) * (a.values()[i] - b.values()[i]);
        norm += a.values()[i] * a.values()[i];
    }
    return std::sqrt(difference / norm);
}

#define REQUIRE(result) QVERIFY2((result).has_value(), (result) ? "" : toText((result).error()).c_str())

} // namespace

class TestApplyLogits : public QObject {
    Q_OBJECT
private slots:
    void foldsKeepTheLogits_data()
    {
        QTest::addColumn<QString>("family");
        QTest::addColumn<bool>("tied");
        for (const std::string &family : synthFamilies())
            QTest::newRow(family.c_str()) << QString::fromStdString(family) << false;
        QTest::newRow("llama tied") << QString("llama") << true;
    }

    void foldsKeepTheLogits()
    {
        QFETCH(QString, family);
        QFETCH(bool, tied);
        const Road road;
        const SynthRequest request{.out = road.dump, .modelOut = road.model, .family = family.toStdString(), .tokens = 192, .layers = 2, .tied = tied};
        auto files = runSynth(request, {}, {});
        REQUIRE(files);
        auto engine = Engine::create({.threads = 1});
        REQUIRE(engine);
        auto opened = (*engine)->open({.file = road.dump, .weights = road.model, .global = {}}, {}, {});
        REQUIRE(opened);
        PlanOptions options;
        options.candidates = {identity(), smooth()};
        options.acceptJoint = true;
        auto plan = (*engine)->plan(**opened, options, {}, {});
        REQUIRE(plan);
        auto written = writePlan(*plan, road.plan);
        REQUIRE(written);
        auto read = readPlan(road.plan);
        REQUIRE(read);
        auto applied = applyPlan(road.plan, *read, road.model, road.out, StoreAs::F64, (*opened)->families, {}, {});
        REQUIRE(applied);
        QVERIFY(applied->tensorsRewritten > 0);

        auto model = makeSynthModel({family.toStdString(), 2, tied, 0});
        REQUIRE(model);
        auto before = withTensorsOf(*model, road.model);
        auto after = withTensorsOf(*model, road.out);
        REQUIRE(before);
        REQUIRE(after);
        const SynthTokens tokens = synthTokens(*model, 64, 7);
        const MatrixD original = referenceForward(*before, tokens.ids, tokens.lengths).logits;
        const MatrixD folded = referenceForward(*after, tokens.ids, tokens.lengths).logits;
        QVERIFY2(relativeChange(original, folded) <= 1e-11, qPrintable(QString::number(relativeChange(original, folded))));
    }

    void aBrokenFoldChangesTheLogits()
    {
        auto model = makeSynthModel({"llama", 2, false, 0});
        REQUIRE(model);
        SynthModel broken = *model;
        broken.tensors["model.layers.0.input_layernorm.weight"](0, 3) *= 1.01;
        const SynthTokens tokens = synthTokens(*model, 64, 7);
        const double change = relativeChange(referenceForward(*model, tokens.ids, tokens.lengths).logits,
                                             referenceForward(broken, tokens.ids, tokens.lengths).logits);
        QVERIFY(change > 1e-6);
    }
};

QTEST_GUILESS_MAIN(TestApplyLogits)
#include "tst_apply_logits.moc"
