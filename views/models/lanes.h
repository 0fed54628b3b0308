// Three worker threads and their queueing rules: io (in order), preview (finish, then the newest of each key), full (a newer
// request of a key cancels the older). Work runs off the GUI thread; its result is delivered on the thread this object lives in.
#pragma once

#include <array>
#include <functional>
#include <memory>
#include <stop_token>

#include <QElapsedTimer>
#include <QObject>
#include <QString>

#include "core/io/error.h"
#include "core/io/progress.h"

namespace planish {

enum class LaneKind { Io, Preview, Full };

/// What the status bar shows of the running job.
struct JobProgress {
    LaneKind lane = LaneKind::Io;
    QString title;
    ProgressReport report;
};

class Lanes : public QObject {
    Q_OBJECT
public:
    using Delivery = std::function<void()>; ///< runs in the thread of this object
    using Work = std::function<Delivery(std::stop_token, const ProgressSink &)>;

    explicit Lanes(QObject *parent = nullptr);
    ~Lanes() override; ///< stops and joins every lane; results not yet delivered are dropped

    /// Queues work. Io: after what is queued. Preview: replaces a waiting job of the same key. Full: also stops the running one,
    /// whose result is then dropped.
    void post(LaneKind lane, const QString &key, const QString &title, Work work);

    /// `work(stop, progress) -> Expected<T>`; `deliver(Expected<std::shared_ptr<const T>>)`.
    template <class T, class F, class D> void submit(LaneKind lane, const QString &key, const QString &title, F work, D deliver)
    {
        post(lane, key, title,
             [work = std::move(work), deliver = std::move(deliver)](std::stop_token stop, const ProgressSink &sink) -> Delivery {
                 Expected<T> result = work(stop, sink);
                 Expected<std::shared_ptr<const T>> shared =
                     result ? Expected<std::shared_ptr<const T>>(std::make_shared<const T>(std::move(*result)))
                            : Expected<std::shared_ptr<const T>>(tl::make_unexpected(result.error()));
                 return [deliver, shared = std::move(shared)] { deliver(shared); };
             });
    }

    void cancel(const QString &key); ///< drops waiting jobs of that key and stops the running one; a stopped job still delivers
    void cancelRunning();            ///< stops what runs now in every lane
    void discardAll();               ///< another file is opened: nothing of the old one is delivered any more
    bool idle() const { return m_outstanding == 0; }
    bool busy(LaneKind lane) const;

signals:
    void jobStarted(planish::LaneKind lane, const QString &title);
    void progressed(const planish::JobProgress &progress);
    void jobEnded(planish::LaneKind lane, const QString &title);
    void becameIdle();

private:
    struct Lane;
    void run(Lane &lane, std::stop_token threadStop);
    void runOne(Lane &lane, struct LaneJob &job, std::stop_token stop);
    void finished(LaneKind lane, const QString &title, bool wanted, const Delivery &delivery);
    void dropped(int count);
    ProgressSink sinkFor(LaneKind lane, const QString &title, std::stop_token stop);

    std::array<std::unique_ptr<Lane>, 3> m_lanes;
    int m_outstanding = 0; ///< posted and not yet delivered; GUI thread only
    quint64 m_epoch = 0;   ///< deliveries of an older epoch are dropped; GUI thread only
};

} // namespace planish

Q_DECLARE_METATYPE(planish::JobProgress)
