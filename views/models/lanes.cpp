#include "views/models/lanes.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <thread>

namespace planish {

struct LaneJob {
    QString key, title;
    Lanes::Work work;
    quint64 epoch = 0;
};

// Each lane thread enters TBB as an external thread of its own, so every lane has its own (implicit) arena.
struct Lanes::Lane {
    LaneKind kind = LaneKind::Io;
    mutable std::mutex mutex;
    std::condition_variable_any wake;
    std::deque<LaneJob> waiting;
    QString runningKey;
    std::stop_source runningStop;
    bool running = false, superseded = false;
    std::jthread thread; ///< last: joined before the rest goes
};

namespace {
constexpr auto kProgressGap = std::chrono::milliseconds(100); // ten updates a second are enough for an eye
constexpr auto kYield = std::chrono::milliseconds(40);        // how long a full job steps aside for a preview at each block
} // namespace

Lanes::Lanes(QObject *parent) : QObject(parent)
{
    qRegisterMetaType<planish::LaneKind>();
    qRegisterMetaType<planish::JobProgress>();
    for (std::size_t i = 0; i < m_lanes.size(); ++i) {
        m_lanes[i] = std::make_unique<Lane>();
        m_lanes[i]->kind = static_cast<LaneKind>(i);
    }
    for (auto &lane : m_lanes) {
        lane->thread = std::jthread([this, state = lane.get()](std::stop_token stop) { run(*state, stop); });
    }
}

Lanes::~Lanes()
{
    for (auto &lane : m_lanes) {
        std::scoped_lock lock(lane->mutex);
        lane->waiting.clear();
        lane->runningStop.request_stop();
        lane->thread.request_stop();
    }
    for (auto &lane : m_lanes) {
        lane->thread.join();
    }
}

void Lanes::post(LaneKind kind, const QString &key, const QString &title, Work work)
{
    Lane &lane = *m_lanes[static_cast<std::size_t>(kind)];
    int replaced = 0;
    {
        std::scoped_lock lock(lane.mutex);
        if (kind != LaneKind::Io) {
            replaced = static_cast<int>(std::erase_if(lane.waiting, [&](const LaneJob &job) { return job.key == key; }));
        }
        if (kind == LaneKind::Full && lane.running && lane.runningKey == key) {
            lane.superseded = true;
            lane.runningStop.request_stop();
        }
        lane.waiting.push_back({key, title, std::move(work), m_epoch});
        ++m_outstanding;
    }
    lane.wake.notify_one();
    m_outstanding -= replaced; // the job just posted keeps the count above zero
}

void Lanes::cancel(const QString &key)
{
    int removed = 0;
    for (auto &lane : m_lanes) {
        std::scoped_lock lock(lane->mutex);
        removed += static_cast<int>(std::erase_if(lane->waiting, [&](const LaneJob &job) { return job.key == key; }));
        if (lane->running && lane->runningKey == key) {
            lane->runningStop.request_stop();
        }
    }
    dropped(removed);
}

void Lanes::cancelRunning()
{
    for (auto &lane : m_lanes) {
        std::scoped_lock lock(lane->mutex);
        lane->runningStop.request_stop();
    }
}

void Lanes::discardAll()
{
    ++m_epoch;
    int removed = 0;
    for (auto &lane : m_lanes) {
        std::scoped_lock lock(lane->mutex);
        removed += static_cast<int>(lane->waiting.size());
        lane->waiting.clear();
        lane->runningStop.request_stop();
    }
    dropped(removed);
}

bool Lanes::busy(LaneKind kind) const
{
    const Lane &lane = *m_lanes[static_cast<std::size_t>(kind)];
    std::scoped_lock lock(lane.mutex);
    return lane.running || !lane.waiting.empty();
}

void Lanes::run(Lane &lane, std::stop_token threadStop)
{
    while (!threadStop.stop_requested()) {
        LaneJob job;
        std::stop_token stop;
        {
            std::unique_lock lock(lane.mutex);
            if (!lane.wake.wait(lock, threadStop, [&] { return !lane.waiting.empty(); })) {
                return;
            }
            job = std::move(lane.waiting.front());
            lane.waiting.pop_front();
            lane.running = true;
            lane.superseded = false;
            lane.runningKey = job.key;
            lane.runningStop = std::stop_source();
            stop = lane.runningStop.get_token();
        }
        runOne(lane, job, stop);
    }
}

void Lanes::runOne(Lane &lane, LaneJob &job, std::stop_token stop)
{
    const LaneKind kind = lane.kind;
    const QString title = job.title;
    QMetaObject::invokeMethod(
        this, [this, kind, title] { emit jobStarted(kind, title); }, Qt::QueuedConnection);
    Delivery delivery = job.work(stop, sinkFor(kind, title, stop));
    bool wanted = true;
    {
        std::scoped_lock lock(lane.mutex);
        lane.running = false;
        wanted = !lane.superseded;
    }
    QMetaObject::invokeMethod(
        this,
        [this, kind, title, wanted, delivery = std::move(delivery), epoch = job.epoch] {
            finished(kind, title, wanted && epoch == m_epoch, delivery);
        },
        Qt::QueuedConnection);
}

void Lanes::finished(LaneKind lane, const QString &title, bool wanted, const Delivery &delivery)
{
    if (wanted && delivery) {
        delivery();
    }
    emit jobEnded(lane, title);
    dropped(1);
}

void Lanes::dropped(int count)
{
    if (count > 0) {
        m_outstanding -= count;
        if (m_outstanding == 0) {
            emit becameIdle();
        }
    }
}

ProgressSink Lanes::sinkFor(LaneKind kind, const QString &title, std::stop_token stop)
{
    struct Throttle {
        std::mutex mutex;
        std::chrono::steady_clock::time_point last{};
    };
    auto throttle = std::make_shared<Throttle>();
    return [this, kind, title, stop, throttle](const ProgressReport &report) {
        if (kind == LaneKind::Full && !stop.stop_requested() && busy(LaneKind::Preview)) {
            std::this_thread::sleep_for(kYield);
        }
        {
            std::scoped_lock lock(throttle->mutex);
            const auto now = std::chrono::steady_clock::now();
            if (now - throttle->last < kProgressGap) {
                return;
            }
            throttle->last = now;
        }
        const JobProgress progress{kind, title, report};
        QMetaObject::invokeMethod(
            this, [this, progress] { emit progressed(progress); }, Qt::QueuedConnection);
    };
}

} // namespace planish
