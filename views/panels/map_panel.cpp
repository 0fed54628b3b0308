#include "views/panels/map_panel.h"

#include <algorithm>
#include <cmath>

#include <QHBoxLayout>
#include <QHeaderView>
#include <QStandardItemModel>
#include <QVBoxLayout>

#include "views/models/edge_measures.h"
#include "views/models/number_text.h"
#include "views/panels/provenance.h"

namespace planish {

MapPanel::MapPanel(Session *session, QWidget *parent)
    : QWidget(parent), m_session(session), m_view(new QComboBox), m_measure(new QComboBox), m_site(new QComboBox),
      m_caption(new QLabel), m_stack(new QStackedWidget), m_depth(new DepthMap),
      m_layers(new TokenChannelMap(QStringLiteral("max |x| per channel, every layer of one site"))), m_offenders(new QTableView),
      m_offenderModel(new QStandardItemModel(this))
{
    buildControls();
    m_depth->setProvenance(provenanceFor(session, ProvenanceOf::Edge));
    m_layers->setProvenance(provenanceFor(session, ProvenanceOf::Edge));
    m_offenders->setModel(m_offenderModel);
    m_offenders->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_offenders->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_offenders->verticalHeader()->hide();
    m_offenders->setAccessibleName(QStringLiteral("Edges, worst first"));
    addTableMenu(m_offenders, provenanceFor(session, ProvenanceOf::Edge));
    connect(m_depth, &DepthMap::edgePicked, this, [this](const EdgeId &edge) { m_session->selection()->setEdge(edge); });
    connect(m_layers, &TokenChannelMap::cellPicked, this, [this](std::int64_t row, std::int64_t channel) {
        for (const Edge &edge : m_session->opened()->graph.edges) {
            if (edge.layer == row && edge.site == m_site->currentText().toStdString()) {
                m_session->selection()->setEdge(edge.id);
                m_session->selection()->setChannel(channel);
            }
        }
    });
    connect(m_offenders, &QTableView::clicked, this, [this](const QModelIndex &index) {
        m_session->selection()->setEdge({m_offenderModel->item(index.row(), 0)->text().toStdString()});
    });
    connect(m_offenders, &QTableView::doubleClicked, this, &MapPanel::edgeActivated);
    connect(session, &Session::openedChanged, this, &MapPanel::opened);
    connect(session->geometry(), &GeometryStore::edgeAnalysed, this, &MapPanel::refresh);
    connect(session->geometry(), &GeometryStore::analysisFinished, this, &MapPanel::refresh);
    connect(session->selection(), &Selection::edgeChanged, this, [this] {
        m_depth->setSelected(m_session->selection()->edge());
        const Edge *edge = m_session->currentEdge();
        m_layers->setSelection(edge ? edge->layer : -1, m_session->selection()->channel());
    });
    connect(session->selection(), &Selection::channelChanged, this, [this] {
        const Edge *edge = m_session->currentEdge();
        m_layers->setSelection(edge ? edge->layer : -1, m_session->selection()->channel());
    });
}

void MapPanel::buildControls()
{
    m_view->addItems({"Depth × site", "Layer × channel", "Worst first"});
    for (const EdgeMeasureRow &row : edgeMeasures()) {
        m_measure->addItem(QString::fromUtf8(row.label.data(), static_cast<qsizetype>(row.label.size())),
                           static_cast<int>(row.measure));
    }
    m_view->setAccessibleName(QStringLiteral("View"));
    m_measure->setAccessibleName(QStringLiteral("Measure"));
    m_site->setAccessibleName(QStringLiteral("Site"));
    m_caption->setWordWrap(true);
    m_stack->addWidget(m_depth);
    m_stack->addWidget(m_layers);
    m_stack->addWidget(m_offenders);
    auto *row = new QHBoxLayout;
    row->addWidget(new QLabel(QStringLiteral("View")));
    row->addWidget(m_view);
    row->addWidget(new QLabel(QStringLiteral("Measure")));
    row->addWidget(m_measure);
    row->addWidget(new QLabel(QStringLiteral("Site")));
    row->addWidget(m_site);
    row->addStretch();
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(6, 6, 6, 6);
    layout->addLayout(row);
    layout->addWidget(m_stack, 1);
    layout->addWidget(m_caption);
    connect(m_view, &QComboBox::currentIndexChanged, this, &MapPanel::refresh);
    connect(m_measure, &QComboBox::currentIndexChanged, this, &MapPanel::refresh);
    connect(m_site, &QComboBox::currentIndexChanged, this, &MapPanel::refresh);
}

void MapPanel::setView(MapView view)
{
    m_view->setCurrentIndex(static_cast<int>(view));
}

void MapPanel::opened()
{
    QStringList sites;
    for (const Edge &edge : m_session->opened()->graph.edges) {
        const QString site = toQString(edge.site);
        if (!sites.contains(site)) {
            sites << site;
        }
    }
    const QSignalBlocker block(m_site);
    m_site->clear();
    m_site->addItems(sites);
    refresh();
}

void MapPanel::refresh()
{
    const auto view = static_cast<MapView>(m_view->currentIndex());
    m_stack->setCurrentIndex(m_view->currentIndex());
    m_measure->setEnabled(view != MapView::LayerChannel);
    m_site->setEnabled(view == MapView::LayerChannel);
    if (!m_session->opened()) {
        return;
    }
    switch (view) {
    case MapView::Depth:
        fillDepth();
        break;
    case MapView::LayerChannel:
        fillLayers();
        break;
    case MapView::Offenders:
        fillOffenders();
        break;
    }
    QStringList systematic;
    for (const SystematicDimension &dimension : m_session->geometry()->systematic()) {
        systematic << QString::number(dimension.channel);
    }
    const auto total = m_session->opened()->graph.edges.size();
    QString caption =
        QStringLiteral("%1 of %2 edges analysed, all counted rows.").arg(m_session->geometry()->analysed()).arg(total);
    if (m_session->geometry()->complete()) {
        caption += systematic.isEmpty() ? QStringLiteral(" No systematic dimension (attn_in and mlp_in, |x| ≥ 6).")
                                        : QStringLiteral(" Systematic dimensions (attn_in and mlp_in, |x| ≥ 6): channel ") +
                                              systematic.join(", ") + '.';
    }
    m_caption->setText(caption);
}

void MapPanel::fillDepth()
{
    const EdgeMeasureRow &measure = edgeMeasures()[static_cast<std::size_t>(std::max(0, m_measure->currentIndex()))];
    std::vector<DepthCell> cells;
    for (const Edge &edge : m_session->opened()->graph.edges) {
        DepthCell cell{edge.id, edge.layer, toQString(edge.site), std::nullopt, QStringLiteral("waiting")};
        if (const auto analysis = m_session->geometry()->edge(edge.id)) {
            cell.value = measureOf(*analysis, measure.measure);
            cell.missing = QStringLiteral("not defined here (the median or the energy is 0)");
        } else if (const auto &error = m_session->geometry()->error(edge.id)) {
            cell.missing = messageOf(*error);
        }
        cells.push_back(std::move(cell));
    }
    m_depth->setCells(std::move(cells), m_measure->currentText(),
                      measure.logarithmic ? AxisScale::Logarithmic : AxisScale::Linear);
    m_depth->setSelected(m_session->selection()->edge());
}

void MapPanel::fillLayers()
{
    std::vector<std::pair<std::int64_t, std::shared_ptr<const EdgeAnalysis>>> rows;
    std::size_t channels = 0;
    for (const Edge &edge : m_session->opened()->graph.edges) {
        const auto analysis = m_session->geometry()->edge(edge.id);
        if (toQString(edge.site) == m_site->currentText() && edge.layer >= 0 && analysis && analysis->statistics) {
            rows.emplace_back(edge.layer, analysis);
            channels = std::max(channels, analysis->statistics->channel.maxAbs.size());
        }
    }
    if (rows.empty()) {
        m_layers->setImage(nullptr, QStringLiteral("layer"), {}, QStringLiteral("No analysed edge at this site yet."));
        return;
    }
    std::sort(rows.begin(), rows.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    auto image = std::make_shared<MaxImage>();
    *image = {rows.size(), channels, 0, rows.size(), 0, channels, std::vector<float>(rows.size() * channels, 0.0F)};
    std::vector<std::int64_t> layers;
    for (std::size_t r = 0; r < rows.size(); ++r) {
        const auto &values = rows[r].second->statistics->channel.maxAbs;
        std::transform(values.begin(), values.end(), image->value.begin() + static_cast<std::ptrdiff_t>(r * channels),
                       [](double v) { return static_cast<float>(v); });
        layers.push_back(rows[r].first);
    }
    m_layers->setImage(
        image, QStringLiteral("layer"),
        [layers](std::uint64_t row) { return row < layers.size() ? QStringLiteral("layer %1").arg(layers[row]) : QString(); },
        {});
}

void MapPanel::fillOffenders()
{
    m_offenderModel->clear();
    QStringList header{"Edge"};
    for (const EdgeMeasureRow &row : edgeMeasures()) {
        header << QString::fromUtf8(row.label.data(), static_cast<qsizetype>(row.label.size()));
    }
    m_offenderModel->setHorizontalHeaderLabels(header << QStringLiteral("findings"));
    std::vector<std::shared_ptr<const EdgeAnalysis>> edges;
    for (const Edge &edge : m_session->opened()->graph.edges) {
        if (auto analysis = m_session->geometry()->edge(edge.id)) {
            edges.push_back(std::move(analysis));
        }
    }
    const auto measure = edgeMeasures()[static_cast<std::size_t>(std::max(0, m_measure->currentIndex()))].measure;
    // Low incoherence is the bad end of that measure, a high value is of all others.
    const double sign = measure == EdgeMeasure::MeanIncoherence ? -1.0 : 1.0;
    std::stable_sort(edges.begin(), edges.end(), [&](const auto &a, const auto &b) {
        return sign * measureOf(*a, measure).value_or(-sign * INFINITY) >
               sign * measureOf(*b, measure).value_or(-sign * INFINITY);
    });
    for (const auto &edge : edges) {
        QList<QStandardItem *> items{new QStandardItem(toQString(edge->edge.value))};
        for (const EdgeMeasureRow &row : edgeMeasures()) {
            items << new QStandardItem(shortNumber(measureOf(*edge, row.measure)));
            items.last()->setTextAlignment(Qt::AlignRight | Qt::AlignVCenter);
        }
        items << new QStandardItem(QString::number(edge->findings.size()));
        m_offenderModel->appendRow(items);
    }
    m_offenders->resizeColumnsToContents();
}

} // namespace planish
