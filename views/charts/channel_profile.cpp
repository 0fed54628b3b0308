#include "views/charts/channel_profile.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "views/charts/decimation.h"

namespace planish {

ChannelProfile::ChannelProfile(const QString &name, QWidget *parent) : ChartView(name, parent)
{
    setAccessibleDescription(QStringLiteral("One value per channel; the context menu shows the table behind it."));
    connect(this, &ChartView::pickedAt, this, [this](double x) {
        if (!m_order.empty()) {
            emit channelPicked(static_cast<std::int64_t>(channelAt(x)));
        }
    });
}

void ChannelProfile::setProfile(std::vector<ProfileSeries> series, AxisScale scale, ProfileOrder order, const QString &valueTitle)
{
    clearAll();
    m_series = std::move(series);
    std::erase_if(m_series, [](const ProfileSeries &s) { return s.values.empty(); });
    const std::size_t channels = m_series.empty() ? 0 : m_series.back().values.size();
    m_order.resize(channels);
    std::iota(m_order.begin(), m_order.end(), std::size_t{0});
    if (order == ProfileOrder::Sorted) {
        const auto &key = m_series.back().values;
        std::stable_sort(m_order.begin(), m_order.end(), [&](std::size_t a, std::size_t b) { return key[a] > key[b]; });
    }
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const ProfileSeries &s : m_series) {
        QList<QPointF> points;
        for (std::size_t i = 0; i < channels; ++i) {
            points.push_back({static_cast<double>(i), m_order[i] < s.values.size() ? s.values[m_order[i]] : NAN});
        }
        points = envelope(scale == AxisScale::Logarithmic ? positiveOnly(points) : finiteOnly(points));
        for (const QPointF &p : points) {
            low = std::min(low, p.y());
            high = std::max(high, p.y());
        }
        if (!points.isEmpty()) {
            addLine(s.name, points, s.tone, s.tone == SeriesTone::Before ? 1.0 : 1.4);
        }
    }
    if (channels > 0 && std::isfinite(high)) {
        const QString position =
            order == ProfileOrder::Sorted ? QStringLiteral("rank (largest first)") : QStringLiteral("channel");
        finish({position, AxisScale::Linear, 0, static_cast<double>(channels - 1)},
               fitted(valueTitle, scale, scale == AxisScale::Linear && low > 0 ? 0.0 : low, high));
    }
    placeMarker();
}

std::size_t ChannelProfile::channelAt(double x) const
{
    const auto position = static_cast<std::size_t>(std::clamp(std::round(x), 0.0, static_cast<double>(m_order.size() - 1)));
    return m_order[position];
}

void ChannelProfile::setSelectedChannel(std::int64_t channel)
{
    m_selected = channel;
    placeMarker();
}

void ChannelProfile::placeMarker()
{
    const auto at = std::find(m_order.begin(), m_order.end(), static_cast<std::size_t>(m_selected));
    setMarker(m_selected < 0 || at == m_order.end() ? std::nullopt : std::optional(static_cast<double>(at - m_order.begin())));
}

QString ChannelProfile::hoverText(const QPointF &value) const
{
    if (m_order.empty()) {
        return {};
    }
    const std::size_t channel = channelAt(value.x());
    QString text = QStringLiteral("channel %1").arg(channel);
    for (const ProfileSeries &s : m_series) {
        if (channel < s.values.size()) {
            text += QStringLiteral("\n%1: %2").arg(s.name, shortNumber(s.values[channel]));
        }
    }
    return text;
}

PlotTable ChannelProfile::table() const
{
    PlotTable table{{"channel"}, {}};
    for (const ProfileSeries &s : m_series) {
        table.header << s.name;
    }
    for (std::size_t channel : m_order) {
        QStringList row{QString::number(channel)};
        for (const ProfileSeries &s : m_series) {
            row << (channel < s.values.size() ? fullNumber(s.values[channel]) : QString());
        }
        table.rows.push_back(row);
    }
    return table;
}

} // namespace planish
