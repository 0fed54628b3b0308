#include <semaphore>
#include <thread>

#include <QSignalSpy>
#include <QTest>

#include "views/models/lanes.h"

using namespace planish;

namespace {
Lanes::Work note(QStringList &log, const QString &name)
{
    return [&log, name](std::stop_token, const ProgressSink &) -> Lanes::Delivery { return [&log, name] { log << name; }; };
}

Lanes::Work noteAfter(std::binary_semaphore &gate, QStringList &log, const QString &name)
{
    return [&gate, &log, name](std::stop_token, const ProgressSink &) -> Lanes::Delivery {
        gate.acquire();
        return [&log, name] { log << name; };
    };
}

/// Runs until it is stopped, then reports whether it was.
Lanes::Work untilStopped(std::atomic<bool> &stopped, std::binary_semaphore &started, QStringList &log, const QString &name)
{
    return [&, name](std::stop_token stop, const ProgressSink &) -> Lanes::Delivery {
        started.release();
        while (!stop.stop_requested()) {
            std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
        stopped = true;
        return [&log, name] { log << name; };
    };
}
} // namespace

class TestLanes : public QObject {
    Q_OBJECT
private slots:
    void ioLaneKeepsTheOrder()
    {
        QStringList log;
        Lanes lanes;
        for (const char *name : {"a", "b", "c"}) {
            lanes.post(LaneKind::Io, "same key", name, note(log, name));
        }
        QTRY_VERIFY(lanes.idle());
        QCOMPARE(log, QStringList({"a", "b", "c"}));
    }

    void previewFinishesThenTakesTheNewest()
    {
        QStringList log;
        std::binary_semaphore gate(0);
        Lanes lanes;
        lanes.post(LaneKind::Preview, "k", "first", noteAfter(gate, log, "first"));
        QTRY_VERIFY(lanes.busy(LaneKind::Preview));
        QTest::qWait(20);
        lanes.post(LaneKind::Preview, "k", "second", note(log, "second"));
        lanes.post(LaneKind::Preview, "k", "third", note(log, "third"));
        gate.release();
        QTRY_VERIFY(lanes.idle());
        QCOMPARE(log, QStringList({"first", "third"}));
    }

    void newerFullRequestCancelsTheOlderOfItsKey()
    {
        QStringList log;
        std::atomic<bool> stopped = false;
        std::binary_semaphore started(0);
        Lanes lanes;
        lanes.post(LaneKind::Full, "k", "old", untilStopped(stopped, started, log, "old"));
        started.acquire();
        lanes.post(LaneKind::Full, "k", "new", note(log, "new"));
        QTRY_VERIFY(lanes.idle());
        QVERIFY(stopped);
        QCOMPARE(log, QStringList({"new"})); // the stale result never arrives
    }

    void anotherKeyCancelsNothing()
    {
        QStringList log;
        std::binary_semaphore gate(0);
        Lanes lanes;
        lanes.post(LaneKind::Full, "a", "a", noteAfter(gate, log, "a"));
        lanes.post(LaneKind::Full, "b", "b", note(log, "b"));
        gate.release();
        QTRY_VERIFY(lanes.idle());
        QCOMPARE(log, QStringList({"a", "b"}));
    }

    void cancelStopsTheRunningJobWhichStillReports()
    {
        std::atomic<bool> stopped = false;
        Lanes lanes;
        Error seen;
        std::binary_semaphore started(0);
        lanes.submit<int>(
            LaneKind::Full, "k", "long",
            [&](std::stop_token stop, const ProgressSink &) -> Expected<int> {
                started.release();
                while (!stop.stop_requested()) {
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                }
                stopped = true;
                return cancelled("long");
            },
            [&](const Expected<std::shared_ptr<const int>> &result) { seen = result ? Error{} : result.error(); });
        started.acquire();
        lanes.cancel("k");
        QTRY_VERIFY(lanes.idle());
        QVERIFY(stopped);
        QCOMPARE(seen.code, ErrorCode::Cancelled);
    }

    void discardedResultsNeverArrive()
    {
        QStringList log;
        std::atomic<bool> stopped = false;
        std::binary_semaphore started(0);
        Lanes lanes;
        lanes.post(LaneKind::Io, "k", "running", untilStopped(stopped, started, log, "running"));
        lanes.post(LaneKind::Io, "k", "waiting", note(log, "waiting"));
        started.acquire();
        lanes.discardAll();
        lanes.post(LaneKind::Io, "k", "next", note(log, "next"));
        QTRY_VERIFY(lanes.idle());
        QCOMPARE(log, QStringList({"next"}));
    }

    void resultsAreSharedValues()
    {
        Lanes lanes;
        std::shared_ptr<const std::string> kept;
        QThread *where = nullptr;
        lanes.submit<std::string>(
            LaneKind::Io, "k", "value", [](std::stop_token, const ProgressSink &) -> Expected<std::string> { return std::string("value"); },
            [&](const Expected<std::shared_ptr<const std::string>> &result) {
                kept = *result;
                where = QThread::currentThread();
            });
        QTRY_VERIFY(lanes.idle());
        QCOMPARE(*kept, std::string("value"));
        QCOMPARE(where, QThread::currentThread());
    }

    void progressReachesTheOwnersThread()
    {
        Lanes lanes;
        QSignalSpy spy(&lanes, &Lanes::progressed);
        lanes.post(LaneKind::Full, "k", "counting", [](std::stop_token, const ProgressSink &sink) -> Lanes::Delivery {
            sink({.stage = "counting", .done = 1, .total = 2, .unit = "steps"});
            return {};
        });
        QTRY_COMPARE(spy.count(), 1);
        const auto progress = spy.first().first().value<JobProgress>();
        QCOMPARE(progress.title, QString("counting"));
        QCOMPARE(progress.report.total, 2.0);
    }

    void destructionStopsAndJoins()
    {
        QStringList log;
        std::atomic<bool> stopped = false;
        std::binary_semaphore started(0);
        {
            Lanes lanes;
            lanes.post(LaneKind::Full, "k", "endless", untilStopped(stopped, started, log, "endless"));
            lanes.post(LaneKind::Full, "other", "never", note(log, "never"));
            started.acquire();
        }
        QVERIFY(stopped);
        QCOMPARE(log, QStringList());
    }
};

QTEST_GUILESS_MAIN(TestLanes)
#include "tst_lanes.moc"
