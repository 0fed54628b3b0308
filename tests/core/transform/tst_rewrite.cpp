#include <QtTest>

#include "core/transform/exceptions.h"
#include "core/transform/rewrite.h"
#include "tests/support/operators.h"

using namespace planish;
using namespace planish::test;

namespace {

Rewrite ofOperators(std::vector<Operator> operators)
{
    Rewrite rewrite;
    rewrite.input.operators = std::move(operators);
    return rewrite;
}

SpecPair specsOf(const char *act, const char *weight)
{
    return {*parseQuantSpec(act, Role::Activation), *parseQuantSpec(weight, Role::Weight), std::nullopt};
}

using Flags = std::vector<std::uint8_t>;

} // namespace

class TestRewrite : public QObject {
    Q_OBJECT

private slots:
    void chainsApplyInOrderAndKeepWhatWasFound()
    {
        const auto all = everyOperator();
        Rewrite first = ofOperators({all[1].second}), second = ofOperators({all[4].second});
        first.fitted["1.alpha"] = 0.5;
        second.fitted["2.seed"] = std::int64_t{3};
        first.clamps["floor"] = 2;
        second.clamps["floor"] = 1;
        second.exceptions = Exceptions{StaticExceptions{{1, 2}}};
        second.output = Transform{{}, {*hadamardFor(8)}};
        const auto joined = first.then(second);
        QVERIFY(joined.has_value());
        QCOMPARE(joined->input.operators.size(), std::size_t{2});
        QCOMPARE(joined->fitted.size(), std::size_t{2});
        QCOMPARE(joined->clamps.at("floor"), std::int64_t{3});
        QVERIFY(joined->exceptions.has_value() && joined->output.has_value());
        const MatrixD x = randomMatrix(3, 24, "x");
        const MatrixD stepwise = applyToActivations(second.input, applyToActivations(first.input, x.view()).view());
        QVERIFY(distance(applyToActivations(joined->input, x.view()), stepwise) < 1e-12);
    }

    void clipsExceptionsAndBranchesMustBeLast()
    {
        const Rewrite plain = ofOperators({*hadamardFor(24)});
        Rewrite clipped, excepted, branched;
        clipped.clips.emplace_back();
        excepted.exceptions = Exceptions{DynamicExceptions{}};
        branched.lowRank = LowRank{};
        for (const Rewrite *first : {&clipped, &excepted, &branched}) {
            const auto joined = first->then(plain);
            QVERIFY(!joined);
            QCOMPARE(joined.error().code, ErrorCode::Refused);
            QVERIFY(plain.then(*first).has_value());
        }
    }

    void replacedWeightsMustBeFirst()
    {
        Rewrite magr;
        magr.replaced = {MatrixD(2, 24)};
        const Rewrite plain = ofOperators({*hadamardFor(24)});
        QVERIFY(magr.then(plain).has_value());
        QVERIFY(magr.then(plain)->replaced[0].has_value());
        QVERIFY(!plain.then(magr));
        QVERIFY(Rewrite{}.then(magr).has_value());
    }

    void membersOfOtherSpecsDoNotJoin()
    {
        Rewrite first, second;
        first.specs = specsOf("int8", "int8");
        QVERIFY(first.then(second)->specs == first.specs);
        QVERIFY(second.then(first)->specs == first.specs);
        second.specs = specsOf("int4", "int8");
        QVERIFY(!first.then(second));
        second.specs = first.specs;
        QVERIFY(first.then(second).has_value());
    }

    void staticExceptionsAreTheSameForAllRows()
    {
        const MatrixD x = randomMatrix(3, 4, "x");
        const std::vector<std::int32_t> requests = {0, 0, 1};
        const auto resolved = resolveExceptions(Exceptions{StaticExceptions{{1, 3}}}, x.view(), requests);
        QCOMPARE(resolved->activation.columns, (Flags{0, 1, 0, 1}));
        QVERIFY(resolved->rowUnit.empty());
        QCOMPARE(resolved->columnCount(0), std::size_t{2});
        QVERIFY(!resolveExceptions(Exceptions{StaticExceptions{{4}}}, x.view(), requests));
        QVERIFY(!resolveExceptions(Exceptions{StaticExceptions{{-1}}}, x.view(), requests));
    }

    void dynamicExceptionsBelongToTheirRequest()
    {
        const MatrixD x = matrixOf({{1, 6, 0}, {2, 0, -7}, {-6.5, 0, 1}});
        const std::vector<std::int32_t> requests = {4, 4, 2};
        const auto byRequest = resolveExceptions(Exceptions{DynamicExceptions{}}, x.view(), requests);
        QCOMPARE(byRequest->unitIds, (std::vector<std::int32_t>{4, 2}));
        QCOMPARE(byRequest->rowUnit, (std::vector<std::int32_t>{0, 0, 1}));
        QCOMPARE(byRequest->unitColumns, (std::vector<Flags>{{0, 1, 1}, {1, 0, 0}}));
        QCOMPARE(byRequest->activation.unitColumns, byRequest->unitColumns);

        Exceptions strict{DynamicExceptions{6.0, Comparator::Greater, ExceptionUnit::All}};
        QCOMPARE(resolveExceptions(strict, x.view(), requests)->activation.columns, (Flags{1, 0, 1}));
        strict.rule = DynamicExceptions{0.0, Comparator::GreaterEqual, ExceptionUnit::All};
        QCOMPARE(resolveExceptions(strict, x.view(), requests)->columnCount(0), std::size_t{0}); // 0: no decomposition
    }

    void weightsStayExactOrAsQuantized()
    {
        Exceptions paper{StaticExceptions{{0}}};
        QVERIFY(weightMask(paper, {1, 0}).keepExact);
        Exceptions bitsandbytes = paper;
        bitsandbytes.weight = Precision::Quantized;
        bitsandbytes.stepIgnores = StepIgnores::Elements;
        QVERIFY(!weightMask(bitsandbytes, {1, 0}).keepExact);
        const MatrixD x = matrixOf({{7, 1}});
        QVERIFY(resolveExceptions(bitsandbytes, x.view(), {})->activation.stepIgnoresElements);
        QCOMPARE(resolveExceptions(bitsandbytes, x.view(), {})->activation.threshold, 6.0);
    }
};

QTEST_GUILESS_MAIN(TestRewrite)
#include "tst_rewrite.moc"
