#include "views/models/geometry_store.h"

#include "views/models/number_text.h"

namespace planish {

namespace {
// More cells than any screen shows, less memory than one weight matrix of a 7B model.
constexpr std::size_t kPictureRows = 2048, kPictureCols = 4096;
const std::optional<Error> kNoError;

struct Painted {
    std::shared_ptr<const MaxPyramid> pyramid;
    std::shared_ptr<const MaxImage> image;
};

struct AllEdges {
    std::vector<SystematicDimension> systematic;
};
} // namespace

GeometryStore::GeometryStore(std::shared_ptr<Engine> engine, Lanes *lanes, QObject *parent)
    : QObject(parent), m_engine(std::move(engine)), m_lanes(lanes)
{
}

void GeometryStore::reset(std::shared_ptr<const Opened> opened)
{
    ++m_epoch;
    m_opened = std::move(opened);
    m_edges.clear();
    m_errors.clear();
    m_systematic.clear();
    m_picture = {};
    m_pictureAsked = m_pyramidOf = {};
    m_pyramid.reset();
    m_complete = false;
    emit pictureChanged();
}

void GeometryStore::analyseAll(const RowRequest &rows)
{
    if (!m_opened) {
        return;
    }
    using Result = std::vector<std::pair<Edge, Statistics>>;
    const quint64 epoch = m_epoch;
    m_lanes->submit<AllEdges>(
        LaneKind::Full, QStringLiteral("analyse"), QStringLiteral("Analysing edges"),
        [this, engine = m_engine, opened = m_opened, rows, epoch](std::stop_token stop,
                                                                  const ProgressSink &sink) -> Expected<AllEdges> {
            Result inputs;
            const auto &edges = opened->graph.edges;
            for (std::size_t i = 0; i < edges.size() && !stop.stop_requested(); ++i) {
                sink({.stage = "analyze",
                      .done = static_cast<double>(i),
                      .total = static_cast<double>(edges.size()),
                      .unit = "edges"});
                AnalyzeRequest request{.edges = {edges[i].id.value}, .rows = rows};
                auto analysis = engine->analyze(*opened, request, stop, [](const ProgressReport &) {});
                const EdgeId id = edges[i].id;
                if (!analysis || analysis->edges.empty()) {
                    const Error error = analysis
                                            ? Error{ErrorCode::Data, id.value, "no statistics", "an edge with counted rows", {}}
                                            : analysis.error();
                    QMetaObject::invokeMethod(
                        this,
                        [this, id, error, epoch] {
                            if (epoch == m_epoch) {
                                m_errors[id] = error;
                                emit edgeAnalysed(toQString(id.value));
                            }
                        },
                        Qt::QueuedConnection);
                    continue;
                }
                auto shared = std::make_shared<const EdgeAnalysis>(std::move(analysis->edges.front()));
                if ((edges[i].site == "attn_in" || edges[i].site == "mlp_in") && shared->statistics) {
                    inputs.emplace_back(edges[i], *shared->statistics);
                }
                QMetaObject::invokeMethod(
                    this,
                    [this, shared, epoch] {
                        if (epoch == m_epoch) {
                            edgeDone(shared);
                        }
                    },
                    Qt::QueuedConnection);
            }
            if (stop.stop_requested()) {
                return cancelled(opened->dump->info().file);
            }
            return AllEdges{systematicDimensions(inputs)};
        },
        [this](const Expected<std::shared_ptr<const AllEdges>> &result) {
            if (result) {
                m_systematic = (*result)->systematic;
                m_complete = true;
                emit analysisFinished();
            } else {
                emit failed(messageOf(result.error()));
            }
        });
}

void GeometryStore::edgeDone(std::shared_ptr<const EdgeAnalysis> analysis)
{
    const EdgeId id = analysis->edge;
    m_edges[id] = std::move(analysis);
    emit edgeAnalysed(toQString(id.value));
}

std::shared_ptr<const EdgeAnalysis> GeometryStore::edge(const EdgeId &id) const
{
    const auto at = m_edges.find(id);
    return at == m_edges.end() ? nullptr : at->second;
}

const std::optional<Error> &GeometryStore::error(const EdgeId &id) const
{
    const auto at = m_errors.find(id);
    return at == m_errors.end() ? kNoError : at->second;
}

void GeometryStore::requestPicture(const EdgeId &id, const ImageRegion &region)
{
    const DumpEdge *edge = m_opened ? m_opened->dump->info().findEdge(id) : nullptr;
    if (edge == nullptr) {
        return;
    }
    const bool whole = region.rowBegin >= region.rowEnd || region.channelBegin >= region.channelEnd;
    const ImageRegion asked = whole ? ImageRegion{0, edge->rows, 0, edge->channels} : region;
    if (m_picture.image && m_picture.edge == id && m_picture.region == asked) {
        return;
    }
    m_pictureAsked = id;
    m_regionAsked = asked;
    m_lanes->cancel(QStringLiteral("picture")); // only the newest picture is wanted
    const MaxImageRequest window{asked.rowBegin, asked.rowEnd, asked.channelBegin, asked.channelEnd, kPictureRows, kPictureCols};
    m_lanes->submit<Painted>(
        LaneKind::Io, QStringLiteral("picture"), QStringLiteral("Picture of ") + toQString(id.value),
        [opened = m_opened, edge = *edge, window,
         known = m_pyramidOf == id ? m_pyramid : nullptr](std::stop_token stop, const ProgressSink &) -> Expected<Painted> {
            auto pyramid =
                known ? Expected<std::shared_ptr<const MaxPyramid>>(known) : MaxPyramid::build(*opened->dump, edge, stop);
            if (!pyramid) {
                return tl::make_unexpected(pyramid.error());
            }
            auto image = maxImage(*opened->dump, edge, **pyramid, window, stop);
            if (!image) {
                return tl::make_unexpected(image.error());
            }
            return Painted{*pyramid, std::make_shared<const MaxImage>(std::move(*image))};
        },
        [this, id, asked](const Expected<std::shared_ptr<const Painted>> &result) {
            if (id != m_pictureAsked || !(asked == m_regionAsked)) {
                return;
            }
            if (!result) {
                if (result.error().code != ErrorCode::Cancelled) {
                    emit failed(messageOf(result.error()));
                }
                return;
            }
            m_pyramid = (*result)->pyramid;
            m_pyramidOf = id;
            m_picture = {id, asked, (*result)->image};
            emit pictureChanged();
        });
}

} // namespace planish
