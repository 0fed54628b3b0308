// Geometry tab: where the outliers of one edge live. Channel profile, concentration curve, token x channel map, findings.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QSlider>
#include <QWidget>

#include "views/charts/channel_profile.h"
#include "views/charts/concentration_curve.h"
#include "views/charts/token_channel_map.h"
#include "views/models/session.h"
#include "views/panels/findings_panel.h"

namespace planish {

class GeometryPanel : public QWidget {
    Q_OBJECT
public:
    explicit GeometryPanel(Session *session, QWidget *parent = nullptr);
    const FindingsPanel *findings() const { return m_findings; }
    const ChannelProfile *profile() const { return m_profile; }

protected:
    void showEvent(QShowEvent *event) override;

private:
    void buildLayout();
    void connectAll();
    void refresh(); ///< edge or its analysis changed
    void fillProfile();
    void fillPicture();
    void wantPicture(); ///< only while the tab is visible: other tabs need no tensor from disk
    Session *m_session;
    QLabel *m_title;
    QComboBox *m_value, *m_order, *m_heat;
    QSlider *m_contrast;
    ChannelProfile *m_profile;
    ConcentrationCurve *m_curve;
    TokenChannelMap *m_map;
    FindingsPanel *m_findings;
};

} // namespace planish
