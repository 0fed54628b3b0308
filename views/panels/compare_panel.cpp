#include "views/panels/compare_panel.h"

#include <algorithm>

#include <QFormLayout>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QScrollArea>
#include <QSignalBlocker>
#include <QSplitter>
#include <QVBoxLayout>

#include "views/models/number_text.h"
#include "views/panels/provenance.h"

namespace planish {

namespace {
constexpr int kTableShare = 430, kPictureShare = 350; // of a window 1280 wide
constexpr std::size_t kNamedWinners = 3;

QComboBox *choice(const QString &name, const QStringList &items)
{
    auto *box = new QComboBox;
    box->addItems(items);
    box->setAccessibleName(name);
    box->setToolTip(name);
    box->setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    box->setMinimumContentsLength(8);
    return box;
}

QStringList presets()
{
    QStringList names{QStringLiteral("candidates above")};
    for (const std::string &name : presetNames()) {
        names << QStringLiteral("preset ") + toQString(name);
    }
    return names;
}
} // namespace

ComparePanel::ComparePanel(Session *session, QWidget *parent)
    : QWidget(parent), m_session(session), m_source(choice(QStringLiteral("Candidates to compare"), presets())),
      m_effort(choice(QStringLiteral("Quick leaves slow candidates out"), {QStringLiteral("quick"), QStringLiteral("full")})),
      m_scope(choice(QStringLiteral("Edges to compare on"),
                     {QStringLiteral("this edge"), QStringLiteral("this site, all layers"), QStringLiteral("all edges")})),
      m_first(choice(QStringLiteral("Candidate A"), {})), m_second(choice(QStringLiteral("Candidate B"), {})),
      m_measure(choice(QStringLiteral("Measure over the layers, cost of the Pareto chart"), {})),
      m_run(new QPushButton(QStringLiteral("Compare"))), m_stop(new QPushButton(QStringLiteral("Stop"))), m_status(new QLabel),
      m_table(new QTableView), m_model(new ComparisonModel(this)), m_sorted(new QSortFilterProxyModel(this)),
      m_pictures(new QTabWidget), m_pareto(new ParetoChart), m_shapes(new ShapeChart), m_layers(new LayerMultiples)
{
    for (const ComparisonMeasureRow &row : comparisonMeasures()) {
        m_measure->addItem(QString::fromLatin1(row.title));
    }
    m_status->setWordWrap(true);
    m_status->setTextInteractionFlags(Qt::TextSelectableByMouse);
    auto *split = new QSplitter(Qt::Horizontal);
    split->addWidget(buildTable());
    split->addWidget(buildPictures());
    split->setSizes({kTableShare, kPictureShare});
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 4, 0, 0);
    layout->addWidget(buildChoices());
    layout->addWidget(m_status);
    layout->addWidget(split, 1);
    connectAll();
    refresh();
}

QWidget *ComparePanel::buildChoices()
{
    auto *row = new QWidget;
    auto *layout = new QHBoxLayout(row);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_source, 2);
    layout->addWidget(m_effort, 1);
    layout->addWidget(m_scope, 2);
    layout->addWidget(m_run);
    layout->addWidget(m_stop);
    return row;
}

QWidget *ComparePanel::buildTable()
{
    m_sorted->setSourceModel(m_model);
    m_sorted->setSortRole(ComparisonModel::SortRole);
    m_table->setModel(m_sorted);
    m_table->setSortingEnabled(true);
    m_table->sortByColumn(ComparisonModel::TieColumn, Qt::AscendingOrder);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setSelectionMode(QAbstractItemView::SingleSelection);
    m_table->setWordWrap(false);
    m_table->setAccessibleName(QStringLiteral("Comparison"));
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
    addTableMenu(m_table, provenanceFor(m_session, ProvenanceOf::Edge));
    return m_table;
}

QWidget *ComparePanel::buildPictures()
{
    for (ChartView *chart : std::initializer_list<ChartView *>{m_pareto, m_shapes}) {
        chart->setProvenance(provenanceFor(m_session, ProvenanceOf::Edge));
    }
    m_layers->setProvenance(provenanceFor(m_session, ProvenanceOf::Edge));
    auto *scroll = new QScrollArea;
    scroll->setWidget(m_layers);
    scroll->setWidgetResizable(true);
    scroll->setFrameShape(QFrame::NoFrame);
    m_pictures->addTab(m_pareto, QStringLiteral("Pareto"));
    m_pictures->addTab(m_shapes, QStringLiteral("Histograms"));
    m_pictures->addTab(scroll, QStringLiteral("Over layers"));
    m_pictures->setDocumentMode(true);
    auto *choices = new QHBoxLayout;
    for (const auto &[name, box] : {std::pair{"A", m_first}, {"B", m_second}, {"measure", m_measure}}) {
        box->setMinimumContentsLength(4);
        auto *label = new QLabel(QString::fromLatin1(name));
        label->setBuddy(box);
        choices->addWidget(label);
        choices->addWidget(box, 1);
    }
    auto *side = new QWidget;
    auto *layout = new QVBoxLayout(side);
    layout->setContentsMargins(4, 0, 0, 0);
    layout->addLayout(choices);
    layout->addWidget(m_pictures, 1);
    return side;
}

void ComparePanel::connectAll()
{
    connect(m_run, &QPushButton::clicked, this, &ComparePanel::start);
    connect(m_stop, &QPushButton::clicked, m_session->comparisons(), &CompareStore::stop);
    connect(m_source, &QComboBox::currentIndexChanged, this, [this](int index) { m_effort->setEnabled(index > 0); });
    for (QComboBox *box : {m_first, m_second, m_measure}) {
        connect(box, &QComboBox::currentIndexChanged, this, &ComparePanel::fillPictures);
    }
    connect(m_pictures, &QTabWidget::currentChanged, this, &ComparePanel::fillPictures);
    connect(m_session->comparisons(), &CompareStore::comparisonChanged, this, &ComparePanel::refresh);
    connect(m_session->comparisons(), &CompareStore::shapesChanged, this, &ComparePanel::fillPictures);
    connect(m_session->selection(), &Selection::edgeChanged, this, &ComparePanel::refresh);
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex &index) {
        const QString name = m_model->nameAt(m_sorted->mapToSource(index).row());
        pickSecond(name);
    });
    connect(m_second, &QComboBox::activated, this, [this] { m_secondChosen = true; });
    connect(m_pareto, &ParetoChart::candidatePicked, this, &ComparePanel::pickSecond);
    m_effort->setEnabled(false);
}

CompareSettings ComparePanel::settings() const
{
    const int source = m_source->currentIndex();
    return {source > 0 ? presetNames()[static_cast<std::size_t>(source - 1)] : std::string(),
            m_effort->currentIndex() == 0 ? Effort::Quick : Effort::Full, static_cast<CompareScope>(m_scope->currentIndex())};
}

void ComparePanel::choose(const CompareSettings &settings)
{
    const auto names = presetNames();
    const auto at = std::find(names.begin(), names.end(), settings.preset);
    m_source->setCurrentIndex(at == names.end() ? 0 : static_cast<int>(at - names.begin()) + 1);
    m_effort->setCurrentIndex(settings.effort == Effort::Quick ? 0 : 1);
    m_scope->setCurrentIndex(static_cast<int>(settings.scope));
}

void ComparePanel::pickSecond(const QString &name)
{
    if (const int at = m_second->findText(name); at >= 0) {
        m_secondChosen = true;
        m_second->setCurrentIndex(at);
    }
}

void ComparePanel::start()
{
    m_secondChosen = false;
    m_session->comparisons()->start(settings(), m_session->selection()->edge(), m_session->candidates()->candidates(),
                                    m_session->evaluations()->options());
}

void ComparePanel::refresh()
{
    const CompareStore *store = m_session->comparisons();
    m_model->setEdge(store->comparison(), m_session->selection()->edge());
    m_sorted->sort(m_table->horizontalHeader()->sortIndicatorSection(), m_table->horizontalHeader()->sortIndicatorOrder());
    m_table->resizeColumnsToContents();
    m_run->setEnabled(m_session->currentEdge() != nullptr && !store->running());
    m_stop->setEnabled(store->running());
    fillStatus();
    fillNames();
    fillPictures();
}

void ComparePanel::fillStatus()
{
    const CompareStore *store = m_session->comparisons();
    const EdgeComparison *edge = store->edge(m_session->selection()->edge());
    QStringList sentences;
    if (store->running()) {
        sentences << QStringLiteral("Comparing: %1 of %2 edges done.").arg(store->done()).arg(store->total());
    } else if (!store->message().isEmpty()) {
        sentences << store->message();
    } else if (store->comparison()->edges.empty()) {
        sentences << QStringLiteral(
            "Candidates on equal terms: the same rows, tie sets by paired differences. Choose what to compare and where.");
    } else if (edge == nullptr) {
        sentences << QStringLiteral("This edge was not compared; the layers of the last comparison are still there.");
    }
    if (edge != nullptr && !edge->skipped.empty()) {
        sentences << toQString(edge->skipped);
    }
    for (const RankEntry &entry : edge != nullptr ? edge->ranking : std::vector<RankEntry>()) {
        if (entry.reason.find("output energy") != std::string::npos) {
            sentences << QStringLiteral("⚠ ") + toQString(entry.reason) + '.';
            break;
        }
    }
    if (!store->running() && store->comparison()->edges.size() > 1) {
        std::vector<CandidateTotal> totals = store->comparison()->totals;
        std::stable_sort(totals.begin(), totals.end(), [](const CandidateTotal &a, const CandidateTotal &b) {
            return a.wins != b.wins ? a.wins > b.wins : a.geometricGain > b.geometricGain;
        });
        QStringList wins;
        for (std::size_t i = 0; i < totals.size() && i < kNamedWinners && totals[i].wins > 0; ++i) {
            wins << QStringLiteral("%1 %2×").arg(toQString(totals[i].name)).arg(totals[i].wins);
        }
        sentences << QStringLiteral("Most often in the first set over %1 edges: %2.")
                         .arg(store->comparison()->edges.size())
                         .arg(wins.join(", "));
    }
    m_status->setText(sentences.join(' '));
}

void ComparePanel::fillNames()
{
    QStringList names;
    for (const Candidate &candidate : m_session->comparisons()->comparison()->candidates) {
        names << toQString(candidate.name);
    }
    QString best;
    if (const EdgeComparison *edge = m_session->comparisons()->edge(m_session->selection()->edge());
        edge != nullptr && !edge->ranking.empty()) {
        best = toQString(edge->ranking.front().name);
    }
    for (QComboBox *box : {m_first, m_second}) {
        const QString before = box->currentText();
        const QSignalBlocker block(box);
        box->clear();
        box->addItems(names);
        const int kept = box->findText(before);
        const int wanted = box == m_first   ? 0
                           : best.isEmpty() ? std::min(1, static_cast<int>(names.size()) - 1)
                                            : box->findText(best);
        box->setCurrentIndex(kept >= 0 && (box == m_first || m_secondChosen) ? kept : wanted);
    }
}

void ComparePanel::fillPictures()
{
    CompareStore *store = m_session->comparisons();
    const EdgeId edge = m_session->selection()->edge();
    const QString first = m_first->currentText(), second = m_second->currentText();
    const ComparisonMeasure measure =
        comparisonMeasures()[static_cast<std::size_t>(std::max(0, m_measure->currentIndex()))].measure;
    switch (static_cast<ComparePicture>(m_pictures->currentIndex())) {
    case ComparePicture::Pareto:
        m_pareto->setEdge(store->comparison(), edge,
                          measure == ComparisonMeasure::WeightBits ? measure : ComparisonMeasure::OnlineFlops);
        m_pareto->setSelected(second);
        break;
    case ComparePicture::Histograms:
        if (!store->running()) {
            store->requestShapes(edge, first, second);
        }
        m_shapes->setShapes(store->shapesKey() == CompareStore::keyOf(edge, first, second) ? store->shapes() : nullptr, first,
                            second);
        break;
    case ComparePicture::Layers: {
        QStringList names{QStringLiteral("none"), first, second};
        names.removeDuplicates();
        m_layers->show(*store->comparison(), names, measure);
        break;
    }
    }
}

} // namespace planish
