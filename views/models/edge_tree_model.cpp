#include "views/models/edge_tree_model.h"

#include <algorithm>

#include "views/models/edge_measures.h"
#include "views/models/geometry_store.h"
#include "views/models/number_text.h"

namespace planish {

EdgeTreeModel::EdgeTreeModel(const GeometryStore *geometry, QObject *parent) : QStandardItemModel(parent), m_geometry(geometry) {}

void EdgeTreeModel::setOpened(std::shared_ptr<const Opened> opened)
{
    clear();
    m_items.clear();
    m_opened = std::move(opened);
    setHorizontalHeaderLabels({"Edge", "max / median"});
    if (!m_opened) {
        return;
    }
    std::map<std::int64_t, QStandardItem *> layers;
    for (const Edge &edge : m_opened->graph.edges) {
        QStandardItem *&layer = layers[edge.layer];
        if (layer == nullptr) {
            layer = new QStandardItem(edge.layer < 0 ? QStringLiteral("other") : QStringLiteral("layer %1").arg(edge.layer));
            auto *blank = new QStandardItem;
            layer->setEditable(false);
            blank->setEditable(false);
            appendRow({layer, blank});
        }
        auto *name = new QStandardItem(toQString(edge.site.empty() ? edge.id.value : edge.site));
        auto *bar = new QStandardItem(QStringLiteral("…"));
        const QString id = toQString(edge.id.value);
        for (QStandardItem *item : {name, bar}) {
            item->setEditable(false);
            item->setData(id, EdgeRole);
            item->setToolTip(describeEdge(*m_opened, edge));
        }
        layer->appendRow({name, bar});
        m_items[id] = name;
    }
    addStreams(*m_opened);
}

void EdgeTreeModel::addStreams(const Opened &opened)
{
    for (const Stream &stream : opened.graph.streams) {
        auto *root = new QStandardItem(toQString(stream.id.value));
        auto *width = new QStandardItem(QStringLiteral("width %1").arg(stream.width));
        const auto add = [&](const QString &what, QStringList names) {
            auto *item = new QStandardItem(QStringLiteral("%1 (%2)").arg(what).arg(names.size()));
            item->setEditable(false);
            item->setToolTip(names.join('\n'));
            root->appendRow({item, new QStandardItem});
        };
        QStringList writers, readers, norms;
        std::ranges::transform(stream.writers, std::back_inserter(writers),
                               [](const TensorName &n) { return toQString(n.value); });
        std::ranges::transform(stream.readers, std::back_inserter(readers), [](const EdgeId &n) { return toQString(n.value); });
        std::ranges::transform(stream.norms, std::back_inserter(norms), [](const TensorName &n) { return toQString(n.value); });
        add("writers", writers);
        add("readers", readers);
        add("norms", norms);
        root->setEditable(false);
        width->setEditable(false);
        appendRow({root, width});
    }
}

void EdgeTreeModel::refresh(const QString &edge)
{
    const auto at = m_items.find(edge);
    if (at == m_items.end()) {
        return;
    }
    QStandardItem *name = at->second;
    QStandardItem *bar = name->parent()->child(name->row(), SeverityColumn);
    const EdgeId id{edge.toStdString()};
    const auto analysis = m_geometry->edge(id);
    if (!analysis) {
        const auto &error = m_geometry->error(id);
        bar->setText(error ? QStringLiteral("failed") : QStringLiteral("…"));
        bar->setToolTip(error ? messageOf(*error) : QString());
        return;
    }
    QStringList badges;
    for (const std::string &badge : badgesOf(*analysis)) {
        badges << toQString(badge);
    }
    const Edge *graphEdge = m_opened->graph.find(id);
    if (graphEdge != nullptr && weightsState(*graphEdge) != "present") {
        badges << (weightsState(*graphEdge) == "partial" ? QStringLiteral("some weights missing") : QStringLiteral("no weights"));
    }
    if (graphEdge != nullptr && std::holds_alternative<UnknownProducer>(graphEdge->producer)) {
        badges << QStringLiteral("unknown producer");
    }
    const auto ratio = measureOf(*analysis, EdgeMeasure::MaxToMedian);
    bar->setText(ratio ? shortNumber(*ratio) : QStringLiteral("median 0"));
    bar->setData(severityOf(*analysis), SeverityRole);
    bar->setToolTip(QStringLiteral("max |x| %1, median %2")
                        .arg(shortNumber(analysis->statistics->maxAbs), shortNumber(analysis->statistics->medianAbs)));
    name->setData(badges, BadgesRole);
    const QString facts = graphEdge ? describeEdge(*m_opened, *graphEdge) : QString();
    name->setToolTip(badges.isEmpty() ? facts : facts + '\n' + badges.join(", "));
}

QModelIndex EdgeTreeModel::indexOf(const EdgeId &edge) const
{
    const auto at = m_items.find(toQString(edge.value));
    return at == m_items.end() ? QModelIndex() : at->second->index();
}

QString weightsState(const Edge &edge)
{
    const auto present = std::ranges::count_if(edge.consumers, [](const Consumer &c) { return c.present; });
    if (present == 0) {
        return QStringLiteral("absent");
    }
    return static_cast<std::size_t>(present) == edge.consumers.size() ? QStringLiteral("present") : QStringLiteral("partial");
}

QString describeEdge(const Opened &opened, const Edge &edge)
{
    const DumpEdge *stored = opened.dump->info().findEdge(edge.id);
    QStringList consumers;
    for (const Consumer &consumer : edge.consumers) {
        consumers << toQString(consumer.tensor.value);
    }
    return QStringLiteral("%1\n%2 [%3, %4]\nproduced by %5 (%6)\nread by %7")
        .arg(toQString(edge.id.value), stored ? toQString(std::string(nameOf(stored->storedType))) : QString())
        .arg(edge.rows)
        .arg(edge.channels)
        .arg(nameOf(edge.producer).empty() ? QStringLiteral("unknown") : toQString(nameOf(edge.producer)),
             toQString(kindOf(edge.producer)), consumers.isEmpty() ? QStringLiteral("nothing known") : consumers.join(", "));
}

} // namespace planish
