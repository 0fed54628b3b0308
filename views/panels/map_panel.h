// Landing tab: depth x site grid of a measure, and layer x channel map of one site. A click goes to the edge.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QStackedWidget>
#include <QTableView>
#include <QWidget>

#include "views/charts/depth_map.h"
#include "views/charts/token_channel_map.h"
#include "views/models/session.h"

class QStandardItemModel;

namespace planish {

enum class MapView { Depth, LayerChannel, Offenders };

class MapPanel : public QWidget {
    Q_OBJECT
public:
    explicit MapPanel(Session *session, QWidget *parent = nullptr);
    void setView(MapView view);
    const DepthMap *depthMap() const { return m_depth; }

signals:
    void edgeActivated(); ///< double click: the user wants to look closer

private:
    void buildControls();
    void opened();
    void fillDepth();
    void fillLayers();
    void fillOffenders();
    void refresh();
    Session *m_session;
    QComboBox *m_view, *m_measure, *m_site;
    QLabel *m_caption;
    QStackedWidget *m_stack;
    DepthMap *m_depth;
    TokenChannelMap *m_layers;
    QTableView *m_offenders;
    QStandardItemModel *m_offenderModel;
};

} // namespace planish
