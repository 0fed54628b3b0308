#include "views/panels/plan_panel.h"

#include <QDoubleValidator>
#include <QFileDialog>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QRegularExpression>
#include <QSplitter>
#include <QVBoxLayout>

#include "views/models/number_text.h"
#include "views/panels/provenance.h"

namespace planish {

PlanPanel::PlanPanel(Session *session, QWidget *parent)
    : QWidget(parent), m_session(session), m_model(new PlanModel(session->plan(), this)), m_table(new QTableView),
      m_preset(new QComboBox), m_effort(new QComboBox), m_choose(new QComboBox),
      m_flops(new QLineEdit), m_bits(new QLineEdit), m_exclude(new QLineEdit),
      m_streams(new QCheckBox(QStringLiteral("streams"))),
      m_online(new QCheckBox(QStringLiteral("allow online"))), m_change(new QCheckBox(QStringLiteral("allow function change"))),
      m_joint(new QCheckBox(QStringLiteral("accept joint"))), m_make(new QPushButton(QStringLiteral("Make plan"))),
      m_save(new QPushButton(QStringLiteral("Save manifest…"))),
      m_apply(new QPushButton(QStringLiteral("Apply to a checkpoint…"))), m_verify(new QPushButton(QStringLiteral("Verify…"))),
      m_unpin(new QPushButton(QStringLiteral("Unpin edge"))), m_report(new QTextBrowser)
{
    m_table->setModel(m_model);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setAlternatingRowColors(true);
    m_table->setWordWrap(false);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(m_table->fontMetrics().height() + 6);
    m_table->horizontalHeader()->setStretchLastSection(true);
    m_table->setAccessibleName(QStringLiteral("Plan, one row per edge"));
    addTableMenu(m_table, provenanceFor(session, ProvenanceOf::Edge));
    m_report->setAccessibleName(QStringLiteral("Result of the last action"));
    m_report->setPlaceholderText(
        QStringLiteral("Make a plan: every edge gets the best legal candidate of the preset, pins go first."));
    auto *split = new QSplitter(Qt::Vertical);
    split->addWidget(m_table);
    split->addWidget(m_report);
    split->setSizes({360, 150});
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(6, 6, 6, 6);
    layout->addWidget(buildSettings());
    layout->addWidget(split, 1);
    layout->addWidget(buildActions());
    connectAll();
    refresh();
}

namespace {

void setUpLimit(QLineEdit *edit, const QString &meaning, const QString &hint)
{
    auto *validator = new QDoubleValidator(0, 1e15, 6, edit);
    validator->setLocale(QLocale::c());
    edit->setValidator(validator);
    edit->setPlaceholderText(hint);
    edit->setToolTip(meaning + QStringLiteral("; empty: no limit"));
    edit->setAccessibleName(meaning);
    edit->setMaximumWidth(edit->fontMetrics().horizontalAdvance(QStringLiteral("0000000000000")) + 12);
}

std::optional<double> limitOf(const QLineEdit *edit)
{
    bool ok = false;
    const double value = edit->text().toDouble(&ok);
    return ok ? std::optional(value) : std::nullopt;
}

} // namespace

void PlanPanel::fillForm()
{
    for (const std::string &name : presetNames()) {
        m_preset->addItem(toQString(name), toQString(name));
    }
    m_preset->addItem(QStringLiteral("candidates of the Try tab"), QString());
    m_effort->addItem(QStringLiteral("quick"), static_cast<int>(Effort::Quick));
    m_effort->addItem(QStringLiteral("full"), static_cast<int>(Effort::Full));
    m_choose->addItem(QStringLiteral("lowest error"), static_cast<int>(Choose::Lowest));
    m_choose->addItem(QStringLiteral("knee of error and cost"), static_cast<int>(Choose::Knee));
    m_choose->addItem(QStringLiteral("within budgets"), static_cast<int>(Choose::Within));
    setUpLimit(m_flops, QStringLiteral("Most online flops per token, summed over the edges"), QStringLiteral("flops / token"));
    setUpLimit(m_bits, QStringLiteral("Most bits per weight, mean over the edges"), QStringLiteral("bits / weight"));
    m_exclude->setPlaceholderText(QStringLiteral("edges to leave out: layers.0.*, *.mlp_down"));
    m_exclude->setAccessibleName(QStringLiteral("Edges to leave out"));
    m_streams->setToolTip(QStringLiteral("One rotation of a residual stream competes with the sum over the edges that read it"));
    m_preset->setAccessibleName(QStringLiteral("Preset"));
    m_effort->setAccessibleName(QStringLiteral("Effort"));
    m_choose->setAccessibleName(QStringLiteral("Rule"));
    m_online->setToolTip(QStringLiteral("Candidates may leave an operator the runtime has to execute"));
    m_change->setToolTip(QStringLiteral("Candidates may change the function (magr, clips of stream outputs)"));
    m_joint->setToolTip(QStringLiteral("Accept edges whose joint error is more than 10 % above the error alone"));
}

QWidget *PlanPanel::buildSettings()
{
    fillForm();
    auto *box = new QWidget;
    auto *column = new QVBoxLayout(box);
    column->setContentsMargins(0, 0, 0, 0);
    auto *first = new QHBoxLayout, *second = new QHBoxLayout;
    for (auto [name, widget] : {std::pair<QString, QWidget *>{"Preset", m_preset}, {"Effort", m_effort}, {"Choose", m_choose}}) {
        first->addWidget(new QLabel(name));
        first->addWidget(widget);
    }
    first->addWidget(m_flops);
    first->addWidget(m_bits);
    first->addStretch();
    first->addWidget(m_make);
    for (QCheckBox *check : {m_streams, m_online, m_change, m_joint}) {
        second->addWidget(check);
    }
    second->addWidget(m_exclude, 1);
    second->addWidget(m_unpin);
    column->addLayout(first);
    column->addLayout(second);
    return box;
}

QWidget *PlanPanel::buildActions()
{
    auto *box = new QWidget;
    auto *row = new QHBoxLayout(box);
    row->setContentsMargins(0, 0, 0, 0);
    row->addStretch();
    row->addWidget(m_save);
    row->addWidget(m_apply);
    row->addWidget(m_verify);
    return box;
}

void PlanPanel::connectAll()
{
    connect(m_make, &QPushButton::clicked, this, &PlanPanel::make);
    connect(m_choose, &QComboBox::currentIndexChanged, this, &PlanPanel::refresh);
    connect(m_save, &QPushButton::clicked, this, &PlanPanel::save);
    connect(m_apply, &QPushButton::clicked, this, &PlanPanel::apply);
    connect(m_verify, &QPushButton::clicked, this, &PlanPanel::verify);
    connect(m_unpin, &QPushButton::clicked, this, [this] { m_session->unpin(m_session->selection()->edge()); });
    connect(m_session, &Session::openedChanged, this, [this] {
        m_model->setOpened(m_session->opened());
        refresh();
    });
    connect(m_session->plan(), &PlanStore::planChanged, this, &PlanPanel::refresh);
    connect(m_session->plan(), &PlanStore::reportChanged, this, &PlanPanel::refresh);
    connect(m_session->selection(), &Selection::edgeChanged, this, [this] {
        refresh();
        showSelected();
    });
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this, [this](const QModelIndex &index) {
        const EdgeId edge = m_model->edgeAt(index.row());
        if (!edge.value.empty()) {
            m_session->selection()->setEdge(edge);
        }
    });
    connect(m_model, &QAbstractItemModel::modelReset, this, [this] {
        m_table->resizeColumnsToContents();
        for (int column = 0; column < PlanModel::ColumnCount; ++column) {
            m_table->setColumnWidth(column, std::min(m_table->columnWidth(column) + 8, 200));
        }
        showSelected();
    });
}

void PlanPanel::showSelected()
{
    const EdgeId edge = m_session->selection()->edge();
    for (int row = 0; row < m_model->rowCount(); ++row) {
        if (!edge.value.empty() && m_model->edgeAt(row) == edge && m_table->currentIndex().row() != row) {
            m_table->selectRow(row);
            m_table->scrollTo(m_model->index(row, 0), QAbstractItemView::PositionAtCenter);
        }
    }
}

PlanSettings PlanPanel::settings() const
{
    const auto permission = [](const QCheckBox *check) { return check->isChecked() ? Permission::Allow : Permission::Refuse; };
    PlanSettings settings;
    settings.preset = m_preset->currentData().toString().toStdString();
    settings.effort = static_cast<Effort>(m_effort->currentData().toInt());
    settings.choose = static_cast<Choose>(m_choose->currentData().toInt());
    settings.online = permission(m_online);
    settings.functionChange = permission(m_change);
    settings.joint = permission(m_joint);
    settings.streams = permission(m_streams);
    if (settings.choose == Choose::Within) {
        settings.maxOnlineFlops = limitOf(m_flops);
        settings.maxWeightBits = limitOf(m_bits);
    }
    static const QRegularExpression blanks(QStringLiteral("[\\s,;]+"));
    for (const QString &glob : m_exclude->text().split(blanks, Qt::SkipEmptyParts)) {
        settings.exclude.push_back(glob.toStdString());
    }
    return settings;
}

void PlanPanel::choosePreset(const QString &key)
{
    m_preset->setCurrentIndex(std::max(0, m_preset->findData(key)));
}

void PlanPanel::setRule(Choose rule, const QString &flops, const QString &bits, const QString &exclude)
{
    m_choose->setCurrentIndex(m_choose->findData(static_cast<int>(rule)));
    m_flops->setText(flops);
    m_bits->setText(bits);
    m_exclude->setText(exclude);
}

void PlanPanel::make()
{
    m_session->plan()->make(settings(), m_session->candidates()->candidates());
}

void PlanPanel::refresh()
{
    const PlanStore *store = m_session->plan();
    const bool busy = !store->running().isEmpty();
    const bool saved = !store->file().isEmpty();
    const bool budgets = static_cast<Choose>(m_choose->currentData().toInt()) == Choose::Within;
    m_flops->setVisible(budgets);
    m_bits->setVisible(budgets);
    m_make->setEnabled(m_session->opened() != nullptr && !busy);
    m_save->setEnabled(store->plan() != nullptr && !busy && !store->stale());
    m_apply->setEnabled(saved && !busy && !store->stale());
    m_verify->setEnabled(saved && !busy && !store->stale());
    m_apply->setToolTip(saved ? QString() : QStringLiteral("Save the manifest first"));
    m_verify->setToolTip(saved ? QStringLiteral("Reads the sealed rows; every run is counted")
                               : QStringLiteral("Save the manifest first"));
    m_unpin->setEnabled(store->pins().contains(m_session->selection()->edge()));
    QString html = busy ? QStringLiteral("<p>%1 …</p>").arg(store->running().toHtmlEscaped()) : store->report();
    if (store->stale()) {
        html = QStringLiteral("<p><i>The pins changed after this plan was made; make it again.</i></p>") + html;
    }
    m_report->setHtml(html);
}

void PlanPanel::save()
{
    const QString file = QFileDialog::getSaveFileName(this, QStringLiteral("Save manifest"), QStringLiteral("plan.yaml"),
                                                      QStringLiteral("Plan (*.yaml)"));
    if (!file.isEmpty()) {
        m_session->plan()->save(file);
    }
}

QString PlanPanel::askCheckpoint(const QString &title)
{
    const QString known = toQString(m_session->openRequest().weights);
    return QFileDialog::getOpenFileName(this, title, known,
                                        QStringLiteral("Checkpoint (*.safetensors *.h5 *.json);;All files (*)"));
}

void PlanPanel::apply()
{
    const QString in = askCheckpoint(QStringLiteral("Checkpoint to rewrite"));
    const QString out =
        in.isEmpty() ? QString() : QFileDialog::getSaveFileName(this, QStringLiteral("Write the rewritten checkpoint"));
    if (!out.isEmpty()) {
        m_session->plan()->apply(in, out);
    }
}

void PlanPanel::verify()
{
    const QString in = askCheckpoint(QStringLiteral("Original checkpoint"));
    const QString out = in.isEmpty() ? QString() : askCheckpoint(QStringLiteral("Rewritten checkpoint"));
    if (!out.isEmpty()) {
        m_session->plan()->verify(in, out);
    }
}

} // namespace planish
