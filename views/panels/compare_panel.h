// Compare page of the Try tab: table of candidates x measures, Pareto chart, value histograms of two candidates, small multiples
// over the layers. The comparison itself is the store's.
#pragma once

#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSortFilterProxyModel>
#include <QTabWidget>
#include <QTableView>
#include <QWidget>

#include "views/charts/layer_multiples.h"
#include "views/charts/pareto_chart.h"
#include "views/charts/shape_chart.h"
#include "views/models/session.h"

namespace planish {

enum class ComparePicture { Pareto, Histograms, Layers };

class ComparePanel : public QWidget {
    Q_OBJECT
public:
    explicit ComparePanel(Session *session, QWidget *parent = nullptr);
    void choose(const CompareSettings &settings);
    void start();
    void setPicture(ComparePicture picture) { m_pictures->setCurrentIndex(static_cast<int>(picture)); }
    QTableView *table() { return m_table; }
    ParetoChart *pareto() { return m_pareto; }
    ShapeChart *histograms() { return m_shapes; }
    LayerMultiples *layers() { return m_layers; }
    QString statusText() const { return m_status->text(); }

private:
    QWidget *buildChoices();
    QWidget *buildTable();
    QWidget *buildPictures();
    void connectAll();
    CompareSettings settings() const;
    void refresh();   ///< comparison or edge changed
    void fillNames(); ///< A and B
    void pickSecond(const QString &name);
    void fillPictures();
    void fillStatus();
    Session *m_session;
    QComboBox *m_source, *m_effort, *m_scope, *m_first, *m_second, *m_measure;
    QPushButton *m_run, *m_stop;
    bool m_secondChosen = false; ///< B was picked by the user; else it follows the best
    QLabel *m_status;
    QTableView *m_table;
    ComparisonModel *m_model;
    QSortFilterProxyModel *m_sorted;
    QTabWidget *m_pictures;
    ParetoChart *m_pareto;
    ShapeChart *m_shapes;
    LayerMultiples *m_layers;
};

} // namespace planish
