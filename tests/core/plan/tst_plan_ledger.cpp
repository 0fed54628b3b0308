// The ledger of a plan by hand: phases apart, on-chip fit, layers, conversion, shards, and the estimate of a typed-in machine.
#include <QtTest>

#include "core/plan/manifest.h"
#include "core/plan/plan_ledger.h"
#include "core/transform/hadamard_orders.h"
#include "tests/support/plan_road.h"

using namespace planish;
using namespace planish::test;

namespace {

/// K = 512, N = 128, 8 bit weights, one online Hadamard of the whole width: 512 x 9 flops, 2 + 2 bytes a channel.
Assignment rotated(const std::string &edge, std::size_t channels = 512)
{
    Assignment a;
    a.edge = {edge};
    a.candidate = candidateOf("hadamard", "int8:token", "int8:row");
    a.channels = static_cast<std::int64_t>(channels);
    a.weightElements = static_cast<std::int64_t>(channels) * 128;
    a.placement.online = {orThrow(hadamardFor(channels))};
    a.ledger.onlineFlopsPerToken = 512 * 9;
    a.ledger.onlineBytesPerToken = 4 * 512;
    a.ledger.launches = 1;
    a.ledger.weightBits = 8;
    return a;
}

Plan planOf(std::vector<Assignment> assignments)
{
    Plan plan;
    plan.assignments = std::move(assignments);
    plan.ledgerOptions = {.prefillTokens = 100, .batch = 2, .sramKib = 164};
    return plan;
}

} // namespace

class TestPlanLedger : public QObject {
    Q_OBJECT
private slots:
    void prefillAndDecodeAreChargedApart()
    {
        const PlanLedger ledger = ledgerOf(planOf({rotated("layers.3.mlp_down")}));
        QCOMPARE(ledger.prefill.tokens, 100);
        QCOMPARE(ledger.prefill.flops, 100 * 512 * 9.0);
        QCOMPARE(ledger.prefill.bytes, 100 * 4 * 512.0);
        QCOMPARE(ledger.prefill.launches, 1.0);
        QCOMPARE(ledger.decode.flops, 2 * 512 * 9.0);
        QCOMPARE(ledger.decode.bytes, 2 * 4 * 512.0);
        QCOMPARE(ledger.onlineFlopsPerToken, 512 * 9.0);
        QCOMPARE(ledger.weightBytes, 512 * 128.0);
        QCOMPARE(*ledger.weightBits, 8.0);
    }

    void aGatherOfColumnsIsSharedByTheTokensOfACall()
    {
        Assignment a = rotated("layers.0.mlp_in");
        a.placement.online.clear();
        a.ledger.exceptionColumns = 3;
        const PlanLedger ledger = ledgerOf(planOf({a}));
        QCOMPARE(ledger.prefill.bytes, 2 * 3 * (100 + 128.0)); // 2 |O| (1 + N/rows) a token
        QCOMPARE(ledger.decode.bytes, 2 * 3 * (2 + 128.0));    // the columns are fetched for two tokens only
    }

    void aFactorThatDoesNotFitOnChipPaysTwoPasses()
    {
        Assignment a = rotated("layers.0.mlp_down");
        a.placement.online = {Operator{DenseOp{MatrixD(512, 512), MatrixD(512, 512)}}}; // 512 KiB in 16 bit
        const PlanLedger ledger = ledgerOf(planOf({a}));
        QVERIFY(!ledger.edges[0].online[0].fits);
        QCOMPARE(ledger.edges[0].online[0].factorBytes, 2 * 512 * 512.0);
        QCOMPARE(ledger.edges[0].online[0].tileBytes, 4 * 512.0);
        QCOMPARE(ledger.prefill.bytes, 2 * 100 * 4 * 512.0);
        QCOMPARE(ledger.prefill.launches, 2.0);
        QVERIFY(ledgerOf(planOf({rotated("layers.0.mlp_down")})).edges[0].online[0].fits);
        Plan small = planOf({rotated("layers.0.mlp_down")});
        small.ledgerOptions.sramKib = 1; // a tile of 2 KiB
        QVERIFY(!ledgerOf(small).edges[0].online[0].fits);
    }

    void layersAddUpToTheTotal()
    {
        const PlanLedger ledger =
            ledgerOf(planOf({rotated("layers.7.mlp_down"), rotated("layers.2.mlp_down"), rotated("layers.7.attn_out")}));
        QCOMPARE(ledger.layers.size(), std::size_t(2));
        QCOMPARE(ledger.layers[0].layer, 2);
        QCOMPARE(ledger.layers[1].prefill.flops, 2 * ledger.layers[0].prefill.flops);
        QCOMPARE(ledger.layers[0].decode.bytes + ledger.layers[1].decode.bytes, ledger.decode.bytes);
        QCOMPARE(ledger.layers[0].weightBytes + ledger.layers[1].weightBytes, ledger.weightBytes);
    }

    void theEstimateAddsItsPartsAndAssumesNoOverlap()
    {
        const MachineProfile machine{"typed", 1, 1, 2, 10, 0}; // 1 GB/s, 1 and 2 TFLOP/s, 10 us a launch
        const PlanLedger ledger = ledgerOf(planOf({rotated("layers.3.mlp_down")}), &machine);
        const TimeEstimate &time = *ledger.prefill.time;
        QVERIFY(qAbs(time.transform - (100 * 512 * 9 / 1e6 + 10)) < 1e-9);
        QVERIFY(qAbs(time.gemm - (2.0 * 512 * 128 * 100 / 2e6 + 512 * 128 / 1e3 + 10)) < 1e-9);
        QVERIFY(qAbs(time.epilogue - 128 * 100 * 2 / 1e3) < 1e-9);
        QVERIFY(qAbs(time.traffic - 100 * 4 * 512 / 1e3) < 1e-9);
        QCOMPARE(time.communication, 0.0);
        QVERIFY(qAbs(time.total() - (time.transform + time.quantize + time.gemm + time.epilogue + time.traffic)) < 1e-9);
        const auto json = ledgerJson(ledger);
        QVERIFY(json["machine"]["claim"].get<std::string>().find("estimate") != std::string::npos);
        QVERIFY(!ledgerJson(ledgerOf(planOf({rotated("layers.3.mlp_down")})))["prefill"].contains("estimate_us"));
    }

    void aFullWidthFactorListsItsShardChoices()
    {
        const auto choices = shardChoices(rotated("layers.3.mlp_down", 1536), 2); // shards of 768 = 12 x 64
        QCOMPARE(choices.size(), std::size_t(5));
        QCOMPARE(choices[0].choice, std::string("rank_local"));
        QVERIFY(choices[0].possible && choices[0].sentence.find("768") != std::string::npos);
        QCOMPARE(choices[1].choice, std::string("communication"));
        QCOMPARE(choices[1].bytesPerToken, 2 * 2 * 1536 / 2.0);       // there and back, half of the row, 2 bytes
        QVERIFY(!choices[2].possible);                                // a rotation cannot be resharded offline
        QVERIFY(shardChoices(rotated("layers.3.mlp_in"), 2).empty()); // column parallel: every device holds the row
        QVERIFY(shardChoices(rotated("layers.3.mlp_down"), 1).empty());
        Assignment blocks = rotated("layers.3.mlp_down");
        blocks.placement.online = {orThrow(blockHadamardFor(512, 64))};
        QVERIFY(shardChoices(blocks, 2).empty());
    }

    void profilesAreReadStrictly()
    {
        const QTemporaryDir folder;
        const std::string file = folder.filePath("m.yaml").toStdString();
        const std::string good = "schema: planish-machine/1\nname: card\nmemory_gb_per_s: 900\ntflop_per_s: 60\nlaunch_us: 4\n";
        writeText(file, good);
        const MachineProfile profile = orThrow(readMachineProfile(file));
        QCOMPARE(profile.memoryGbPerS, 900.0);
        QCOMPARE(profile.lowBitTflopPerS, 60.0);
        for (const auto &[from, to] :
             {std::pair{"launch_us", "lanch_us"}, {"900", "-1"}, {"60", ".inf"}, {"machine/1", "machine/2"}}) {
            writeText(file, replaced(good, from, to));
            const auto bad = readMachineProfile(file);
            QVERIFY2(!bad, to);
            QVERIFY(toText(bad.error()).find("m.yaml") != std::string::npos);
        }
    }

    void theManifestKeepsWhatTheLedgerNeeds()
    {
        const PlanRoad road;
        PlanOptions options = PlanRoad::options("hadamard");
        options.allowOnline = true;
        const Plan made = orThrow(makePlan(road.open(), options, PlanRoad::backend(), {}, {}));
        orThrow(writePlan(made, road.planFile()));
        const Plan read = orThrow(readPlan(road.planFile()));
        QVERIFY(ledgerOf(made).prefill.flops > 0);
        QCOMPARE(ledgerJson(ledgerOf(read)).dump(), ledgerJson(ledgerOf(made)).dump());
    }
};

QTEST_GUILESS_MAIN(TestPlanLedger)
#include "tst_plan_ledger.moc"
