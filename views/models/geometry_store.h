// Geometry of the opened file: analysis per edge (filled in one by one in the full lane) and pictures of single tensors (io
// lane).
#pragma once

#include <map>
#include <memory>
#include <optional>

#include <QObject>

#include "core/geometry/max_image.h"
#include "core/run/engine.h"
#include "views/models/lanes.h"
#include "views/models/image_region.h"

namespace planish {

/// A picture of one edge and what it was asked for.
struct EdgePicture {
    EdgeId edge;
    ImageRegion region;
    std::shared_ptr<const MaxImage> image;
};

class GeometryStore : public QObject {
    Q_OBJECT
public:
    GeometryStore(std::shared_ptr<Engine> engine, Lanes *lanes, QObject *parent = nullptr);

    void reset(std::shared_ptr<const Opened> opened);                 ///< forgets everything
    void analyseAll(const RowRequest &rows);                          ///< one job; edges arrive as they are done
    std::shared_ptr<const EdgeAnalysis> edge(const EdgeId &id) const; ///< null while not analysed
    const std::optional<Error> &error(const EdgeId &id) const;
    std::size_t analysed() const { return m_edges.size(); }
    bool complete() const { return m_complete; }
    const std::vector<SystematicDimension> &systematic() const { return m_systematic; }

    /// Asks for a picture of a region; whole tensor when the region is empty. The newest request wins.
    void requestPicture(const EdgeId &id, const ImageRegion &region);
    const EdgePicture &picture() const { return m_picture; }

signals:
    void edgeAnalysed(const QString &edge);
    void analysisFinished();
    void pictureChanged();
    void failed(const QString &message);

private:
    void edgeDone(std::shared_ptr<const EdgeAnalysis> analysis);

    std::shared_ptr<Engine> m_engine;
    Lanes *m_lanes;
    std::shared_ptr<const Opened> m_opened;
    std::map<EdgeId, std::shared_ptr<const EdgeAnalysis>> m_edges;
    std::map<EdgeId, std::optional<Error>> m_errors;
    std::vector<SystematicDimension> m_systematic;
    EdgePicture m_picture;
    std::shared_ptr<const MaxPyramid> m_pyramid; ///< of the edge in m_pyramidOf
    EdgeId m_pyramidOf;
    EdgeId m_pictureAsked;
    ImageRegion m_regionAsked;
    quint64 m_epoch = 0;
    bool m_complete = false;
};

} // namespace planish
