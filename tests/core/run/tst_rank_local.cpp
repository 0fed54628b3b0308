// Rank-local twins: a full-width rotation and what its smaller mixing loses stand side by side in the choice log.
#include <QtTest>

#include "core/run/engine.h"
#include "core/run/rank_local.h"
#include "tests/support/plan_road.h"

using namespace planish;
using namespace planish::test;

class TestRankLocal : public QObject {
    Q_OBJECT
private slots:
    void onlyRowParallelEdgesGetATwin()
    {
        const PlanRoad road;
        const Opened opened = road.open();
        const std::vector<Candidate> candidates = PlanRoad::options("hadamard", {"signs=none"}).candidates;
        QCOMPARE(orThrow(withRankLocal(opened.graph, candidates, 1)).size(), candidates.size());
        const auto twins = orThrow(withRankLocal(opened.graph, candidates, 2));
        QCOMPARE(twins.size(), candidates.size() + 2); // attn_out 96/2, mlp_down 160/2
        for (const Candidate &twin : {twins[2], twins[3]}) {
            QCOMPARE(twin.chain.front().method, std::string("block_hadamard"));
            QVERIFY(twin.name.find("rank-local") != std::string::npos);
            for (const std::string &edge : twin.edges)
                QVERIFY(edge.ends_with(twin.name.ends_with(" 48") ? "attn_out" : "mlp_down"));
        }
    }

    void thePlanShowsTheLossOfMixing()
    {
        const PlanRoad road;
        const auto engine = orThrow(Engine::create({}));
        PlanOptions options = PlanRoad::options("hadamard");
        options.pins.clear();
        options.allowOnline = true;
        options.evaluate.tensorParallel = 2;
        const Plan plan = orThrow(engine->plan(road.open(), options, {}, {}));
        int pairs = 0;
        for (const ChoiceLog &log : plan.choices) {
            const ChoiceEntry *full = nullptr, *local = nullptr;
            for (const ChoiceEntry &entry : log.candidates) {
                if (entry.name == "candidate")
                    full = &entry;
                else if (entry.name.starts_with("candidate rank-local"))
                    local = &entry;
            }
            if (!local)
                continue;
            ++pairs;
            QCOMPARE(full->status, std::string("refused"));
            QVERIFY2(full->reason.find("crosses_shards") != std::string::npos, full->reason.c_str());
            QCOMPARE(local->status, std::string("ok"));
            QVERIFY(full->relativeFrobenius && local->relativeFrobenius);
        }
        QCOMPARE(pairs, 4); // two row-parallel edges in each of two layers
    }
};

QTEST_GUILESS_MAIN(TestRankLocal)
#include "tst_rank_local.moc"
