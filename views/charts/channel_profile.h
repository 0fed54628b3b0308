// Channel profile: one value per channel (max |x|, energy, occupancy, signed band …), before and after a transform, in natural or
// sorted order. Never loses a maximum: more than 4,096 channels are reduced to an envelope.
#pragma once

#include <vector>

#include "views/charts/chart_view.h"

namespace planish {

enum class ProfileOrder { Natural, Sorted };

struct ProfileSeries {
    QString name;
    std::vector<double> values; ///< one per channel
    SeriesTone tone = SeriesTone::Main;
};

class ChannelProfile : public ChartView {
    Q_OBJECT
public:
    explicit ChannelProfile(const QString &name, QWidget *parent = nullptr);
    /// The last series decides the sorted order (largest first), so that a channel keeps its place in all of them.
    void setProfile(std::vector<ProfileSeries> series, AxisScale scale, ProfileOrder order, const QString &valueTitle);
    void setSelectedChannel(std::int64_t channel); ///< -1: none
    PlotTable table() const override;

signals:
    void channelPicked(std::int64_t channel);

private:
    QString hoverText(const QPointF &value) const override;
    std::size_t channelAt(double x) const;
    void placeMarker();
    std::vector<ProfileSeries> m_series;
    std::vector<std::size_t> m_order; ///< position -> channel
    std::int64_t m_selected = -1;
};

} // namespace planish
