#include "app/help.h"

#include <QDialog>
#include <QDialogButtonBox>
#include <QFile>
#include <QJsonArray>
#include <QJsonDocument>
#include <QJsonObject>
#include <QTextBrowser>
#include <QVBoxLayout>

#include "core/methods/method_table.h"
#include "core/names/family.h"
#include "views/models/number_text.h"

namespace planish {

namespace {

struct HelpRow {
    const char *name, *meaning;
};

constexpr HelpRow kShortcuts[] = {
    {"Ctrl+O", "open a dump; files can also be dropped on the window"},
    {"Ctrl+Shift+O", "open a checkpoint for the dump that is open"},
    {"Ctrl+F", "find an edge or a channel: L12.down:3721, then Enter"},
    {"Ctrl+1 … Ctrl+4", "Map, Geometry, Try, Plan"},
    {"Ctrl+Z, Ctrl+Shift+Z", "undo and redo edits of candidates and of the plan"},
    {"Ctrl+C", "on a table: copy its rows as TSV"},
    {"Ctrl+Shift+C", "copy the command line that prints the number on screen"},
    {"Esc", "clear the marked channel and token, then the filter"},
    {"right click on a plot", "save as PNG, SVG or CSV, copy its numbers, show them as a table"},
    {"drag on the token map", "zoom to the box; double click shows everything"},
    {"arrow keys on the map", "go to the neighbouring edge"},
    {"F1", "this page"},
};

constexpr HelpRow kNumbers[] = {
    {"max / median", "largest |x| over the lower median of |x|, all counted rows. The bar of an edge is its logarithm, full at 1000. Measured."},
    {"C top 1, 8, 1 %", "share of the energy (sum of x²) held by the 1, 8 or 1 % strongest channels. Measured."},
    {"incoherence", "of one token: sqrt(K / sum (x / max |x|)²); near 1 when all channels are alike, near sqrt(K) when one channel owns the row. Measured."},
    {"occupancy", "share of rows in which |x| of a channel exceeds tau (6 by default). Measured."},
    {"output error", "||E||_F / ||Y||_F on held-out rows: Y is the output of all readers of the edge, E its change under the two quantizers. Measured."},
    {"95 % spread", "leave-one-out over requests or blocks: what another text would change. Two candidates whose difference is within it are tied."},
    {"sampling interval", "of a preview on a large edge: what the rows not looked at could change. Small edges are always exact."},
    {"gain", "error of the identity divided by this error. Derived."},
    {"SQNR", "-20 log10 of the output error, in dB. Derived."},
    {"equivalence", "relative change of Y by the transform alone, in double precision, before any quantizer. Above its gate a candidate fails. Measured."},
    {"function change", "for methods that change the function on purpose: how much, instead of the gate. Measured."},
    {"terms", "parts of ||E||² / ||Y||²: from activations only, weights only, both, and their interaction. Measured."},
    {"token-dominated", "the largest 1 % of rows hold more than half of ||Y||²: the pooled error speaks of those rows, read the row figures too."},
    {"kappa", "condition number of the transform. Derived."},
    {"ledger", "what the runtime pays: flops and bytes per token of factors that could not be folded, bits per weight. Derived."},
    {"calibration, held-out, sealed", "fits see calibration rows; errors are measured on held-out rows; sealed rows are opened by verify only, and counted."},
    {"selected on held-out rows", "this parameter was adopted from a sweep, so its error is a little optimistic; the plan selects again on calibration rows."},
};

template <std::size_t N> QString tableOf(const HelpRow (&rows)[N])
{
    QString html = "<table cellpadding='4'>";
    for (const HelpRow &row : rows) {
        html += QStringLiteral("<tr><td><b>%1</b></td><td>%2</td></tr>")
                    .arg(QString::fromUtf8(row.name).toHtmlEscaped(), QString::fromUtf8(row.meaning).toHtmlEscaped());
    }
    return html + "</table>";
}

QString methodsHtml()
{
    QString html;
    for (const MethodRow &method : methodTable()) {
        html += QStringLiteral("<h4>%1</h4><p>%2%3</p><table cellpadding='3'>")
                    .arg(toQString(method.label.empty() ? method.key : method.label + " (" + method.key + ")").toHtmlEscaped(),
                         toQString(method.source).toHtmlEscaped(),
                         method.changesFunction ? QStringLiteral(" Changes the function.") : QString());
        for (const ParamRow &row : method.params) {
            QStringList values;
            for (const std::string &value : row.values) {
                values << toQString(value);
            }
            html += QStringLiteral("<tr><td><b>%1</b></td><td>%2</td><td>default %3</td><td>%4</td></tr>")
                        .arg(toQString(row.name), values.isEmpty() ? QStringLiteral("%1 to %2").arg(row.min).arg(row.max) : values.join(", ").toHtmlEscaped(),
                             toQString(row.defaultValue).toHtmlEscaped(), toQString(row.help).toHtmlEscaped());
        }
        html += "</table>";
    }
    return html;
}

QString failureHtml(const QJsonObject &entry)
{
    QStringList rules;
    for (const QJsonValue &rule : entry["rules"].toArray()) {
        rules << rule.toString();
    }
    const auto text = [&](const char *key) { return entry[QLatin1String(key)].toString().toHtmlEscaped(); };
    return QStringLiteral("<h4>%1. %2</h4><p>%3.<br><b>Caught by</b> %4%5.<br><b>In one sentence</b> (numbers are examples) “%6”</p>")
        .arg(entry["number"].toInt())
        .arg(text("name"), text("happens"), text("caught"),
             rules.isEmpty() ? QString() : QStringLiteral(" (%1)").arg(rules.join(", ").toHtmlEscaped()), text("sentence"));
}

QString failureLabHtml()
{
    const QString path = toQString(resourceFolder()) + QStringLiteral("/failure_lab.json");
    QFile file(path);
    const QJsonObject lab = file.open(QIODevice::ReadOnly) ? QJsonDocument::fromJson(file.readAll()).object() : QJsonObject();
    if (lab.isEmpty()) {
        return QStringLiteral("<p>%1: cannot be read; expected the pages of the failure lab.</p>").arg(path.toHtmlEscaped());
    }
    QString html = QStringLiteral("<p>Ways to be wrong with a transform. A test plants each of them and checks that it is caught.</p>"), group;
    for (const QJsonValue &value : lab["failures"].toArray()) {
        const QJsonObject entry = value.toObject();
        if (entry["group"].toString() != group) {
            group = entry["group"].toString();
            html += QStringLiteral("<h3>%1</h3>").arg(group.toHtmlEscaped());
        }
        html += failureHtml(entry);
    }
    html += QStringLiteral("<h3>Who claims it</h3><table cellpadding='4'>");
    for (const QJsonValue &value : lab["labels"].toArray()) {
        html += QStringLiteral("<tr><td><b>%1</b></td><td>%2</td></tr>")
                    .arg(value["label"].toString().toHtmlEscaped(), value["means"].toString().toHtmlEscaped());
    }
    return html + "</table>";
}

} // namespace

QString helpHtml(HelpPage page)
{
    switch (page) {
    case HelpPage::Shortcuts:
        return "<h3>Shortcuts</h3>" + tableOf(kShortcuts);
    case HelpPage::Numbers:
        return "<h3>What the numbers mean</h3>" + tableOf(kNumbers);
    case HelpPage::Methods:
        return "<h3>Methods and parameters</h3>" + methodsHtml();
    case HelpPage::FailureLab:
        return "<h2>Failure lab</h2>" + failureLabHtml();
    }
    return {};
}

QWidget *showHelp(QWidget *parent, HelpPage page)
{
    auto *dialog = new QDialog(parent);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    dialog->setWindowTitle(QStringLiteral("Planish help"));
    auto *text = new QTextBrowser;
    text->setHtml(helpHtml(page));
    auto *buttons = new QDialogButtonBox(QDialogButtonBox::Close);
    QObject::connect(buttons, &QDialogButtonBox::rejected, dialog, &QDialog::close);
    auto *layout = new QVBoxLayout(dialog);
    layout->addWidget(text);
    layout->addWidget(buttons);
    dialog->resize(760, 560);
    dialog->show();
    return dialog;
}

} // namespace planish
