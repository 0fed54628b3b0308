#include "views/panels/geometry_panel.h"

#include <algorithm>
#include <cmath>

#include <QHBoxLayout>
#include <QSplitter>
#include <QVBoxLayout>

#include "views/models/edge_measures.h"
#include "views/models/number_text.h"
#include "views/panels/inspector_text.h"
#include "views/panels/provenance.h"

namespace planish {

namespace {

enum class ProfileValue { MaxAbs, SignedBand, Energy, WeightMax, Occupancy };

struct ProfileChoice {
    std::vector<ProfileSeries> series;
    AxisScale scale = AxisScale::Logarithmic;
    QString title;
};

ProfileChoice profileOf(const EdgeAnalysis &edge, ProfileValue value)
{
    const ChannelSums &c = edge.statistics->channel;
    switch (value) {
    case ProfileValue::SignedBand:
        return {{{"minimum", c.minimum, SeriesTone::Second}, {"maximum", c.maximum, SeriesTone::Main}},
                AxisScale::Linear,
                "signed value"};
    case ProfileValue::Energy:
        return {{{"energy", c.energy, SeriesTone::Main}}, AxisScale::Logarithmic, "energy"};
    case ProfileValue::WeightMax:
        return {{{"max |x|", c.maxAbs, SeriesTone::Before}, {"max |w| of the column", edge.weightMax, SeriesTone::Weight}},
                AxisScale::Logarithmic,
                "max |x|, max |w|"};
    case ProfileValue::Occupancy: {
        std::vector<double> share(c.overTau.size());
        const double tokens = std::max<double>(1.0, static_cast<double>(edge.statistics->tokens));
        std::transform(c.overTau.begin(), c.overTau.end(), share.begin(),
                       [tokens](std::uint64_t n) { return static_cast<double>(n) / tokens; });
        return {{{"occupancy", share, SeriesTone::Main}},
                AxisScale::Linear,
                QStringLiteral("share of rows with |x| > %1").arg(shortNumber(edge.statistics->tau))};
    }
    case ProfileValue::MaxAbs:
        break;
    }
    return {{{"max |x|", c.maxAbs, SeriesTone::Main}}, AxisScale::Logarithmic, "max |x|"};
}

} // namespace

GeometryPanel::GeometryPanel(Session *session, QWidget *parent)
    : QWidget(parent), m_session(session), m_title(new QLabel), m_value(new QComboBox), m_order(new QComboBox),
      m_heat(new QComboBox), m_contrast(new QSlider(Qt::Horizontal)),
      m_profile(new ChannelProfile(QStringLiteral("Channel profile"))), m_curve(new ConcentrationCurve),
      m_map(new TokenChannelMap(QStringLiteral("Tokens × channels"))), m_findings(new FindingsPanel(session))
{
    buildLayout();
    connectAll();
}

void GeometryPanel::buildLayout()
{
    m_value->addItems({"max |x|", "signed min and max", "energy", "weight columns", "occupancy"});
    m_order->addItems({"natural order", "sorted"});
    m_heat->addItems({"|x|", "signed x"});
    m_contrast->setRange(500, 1000);
    m_contrast->setValue(1000);
    m_contrast->setMaximumWidth(90);
    m_contrast->setToolTip(QStringLiteral("Contrast: percentile of |x| that gets the strongest colour"));
    m_contrast->setAccessibleName(QStringLiteral("Contrast"));
    m_value->setAccessibleName(QStringLiteral("Profile value"));
    m_order->setAccessibleName(QStringLiteral("Channel order"));
    m_heat->setAccessibleName(QStringLiteral("Heat map value"));
    for (ChartView *chart : {static_cast<ChartView *>(m_profile), static_cast<ChartView *>(m_curve)}) {
        chart->setProvenance(provenanceFor(m_session, ProvenanceOf::Edge));
        chart->setEmptyText(QStringLiteral("Waiting for the analysis of this edge."));
    }
    m_map->setProvenance(provenanceFor(m_session, ProvenanceOf::Edge));
    auto *row = new QHBoxLayout;
    row->addWidget(m_title, 1);
    for (auto *box : {m_value, m_order, m_heat}) {
        row->addWidget(box);
    }
    row->addWidget(new QLabel(QStringLiteral("contrast")));
    row->addWidget(m_contrast);
    auto *top = new QSplitter(Qt::Horizontal);
    top->addWidget(m_profile);
    top->addWidget(m_curve);
    top->setSizes({520, 260});
    auto *bottom = new QSplitter(Qt::Horizontal);
    bottom->addWidget(m_map);
    bottom->addWidget(m_findings);
    bottom->setSizes({400, 380});
    auto *whole = new QSplitter(Qt::Vertical);
    whole->addWidget(top);
    whole->addWidget(bottom);
    whole->setSizes({260, 300});
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(6, 6, 6, 6);
    layout->addLayout(row);
    layout->addWidget(whole, 1);
}

void GeometryPanel::connectAll()
{
    Selection *selection = m_session->selection();
    connect(m_value, &QComboBox::currentIndexChanged, this, &GeometryPanel::fillProfile);
    connect(m_order, &QComboBox::currentIndexChanged, this, &GeometryPanel::fillProfile);
    connect(m_heat, &QComboBox::currentIndexChanged, this,
            [this](int index) { m_map->setMode(index == 0 ? HeatMode::Magnitude : HeatMode::Signed); });
    connect(m_contrast, &QSlider::valueChanged, this, [this](int value) { m_map->setContrast(value / 1000.0); });
    connect(m_session, &Session::openedChanged, this, &GeometryPanel::refresh);
    connect(selection, &Selection::edgeChanged, this, &GeometryPanel::refresh);
    connect(m_session->geometry(), &GeometryStore::edgeAnalysed, this, [this](const QString &edge) {
        if (edge.toStdString() == m_session->selection()->edge().value) {
            refresh();
        }
    });
    connect(m_session->geometry(), &GeometryStore::pictureChanged, this, &GeometryPanel::fillPicture);
    connect(selection, &Selection::channelChanged, this, [this, selection] {
        m_profile->setSelectedChannel(selection->channel());
        m_map->setSelection(selection->token(), selection->channel());
    });
    connect(selection, &Selection::tokenChanged, this,
            [this, selection] { m_map->setSelection(selection->token(), selection->channel()); });
    connect(m_profile, &ChannelProfile::channelPicked, selection, &Selection::setChannel);
    connect(m_map, &TokenChannelMap::cellPicked, this, [selection](std::int64_t row, std::int64_t channel) {
        selection->setChannel(channel);
        selection->setToken(row);
    });
    connect(m_map, &TokenChannelMap::regionWanted, this,
            [this](const ImageRegion &region) { m_session->geometry()->requestPicture(m_session->selection()->edge(), region); });
}

void GeometryPanel::showEvent(QShowEvent *event)
{
    QWidget::showEvent(event);
    wantPicture();
}

void GeometryPanel::wantPicture()
{
    if (isVisible() && m_session->currentEdge() != nullptr &&
        m_session->geometry()->picture().edge != m_session->selection()->edge()) {
        m_session->geometry()->requestPicture(m_session->selection()->edge(), {});
    }
}

void GeometryPanel::refresh()
{
    const Edge *edge = m_session->currentEdge();
    const auto analysis = m_session->geometry()->edge(m_session->selection()->edge());
    if (edge == nullptr) {
        m_title->setText(QStringLiteral("No edge selected"));
    } else {
        m_title->setText(QStringLiteral("<b>%1</b> · basis %2").arg(toQString(edge->id.value), toQString(edge->basis)));
    }
    if (analysis && analysis->statistics) {
        m_title->setToolTip(QStringLiteral("max / median %1").arg(shortNumber(maxToMedian(*analysis->statistics))));
        m_curve->setCurve(concentrationCurve(*analysis->statistics), analysis->concentration.r1pct);
    } else {
        m_curve->setCurve({}, 1);
        m_curve->setEmptyText(QStringLiteral("Waiting for the analysis of this edge."));
    }
    fillProfile();
    fillPicture();
    wantPicture();
}

void GeometryPanel::fillProfile()
{
    const auto analysis = m_session->geometry()->edge(m_session->selection()->edge());
    if (!analysis || !analysis->statistics) {
        m_profile->setProfile({}, AxisScale::Logarithmic, ProfileOrder::Natural, {});
        return;
    }
    const auto value = static_cast<ProfileValue>(m_value->currentIndex());
    if (value == ProfileValue::WeightMax && analysis->weightMax.empty()) {
        m_profile->setProfile({}, AxisScale::Logarithmic, ProfileOrder::Natural, {});
        m_profile->setEmptyText(QStringLiteral("This file holds no weights for the readers of this edge; open the checkpoint."));
        return;
    }
    ProfileChoice choice = profileOf(*analysis, value);
    m_profile->setProfile(std::move(choice.series), choice.scale,
                          m_order->currentIndex() == 0 ? ProfileOrder::Natural : ProfileOrder::Sorted, choice.title);
    m_profile->setSelectedChannel(m_session->selection()->channel());
}

void GeometryPanel::fillPicture()
{
    const EdgePicture &picture = m_session->geometry()->picture();
    const auto opened = m_session->opened();
    const DumpEdge *stored = opened ? opened->dump->info().findEdge(picture.edge) : nullptr;
    if (!picture.image || stored == nullptr || picture.edge != m_session->selection()->edge()) {
        m_map->setImage(nullptr, QStringLiteral("token row"), {}, QStringLiteral("Reading the tensor."));
        return;
    }
    m_map->setImage(
        picture.image, QStringLiteral("token rows"),
        [opened, edge = *stored](std::uint64_t row) { return tokenAxisLabel(*opened, edge, static_cast<std::int64_t>(row)); },
        {});
    m_map->setSelection(m_session->selection()->token(), m_session->selection()->channel());
}

} // namespace planish
