#include "views/panels/start_page.h"

#include <QVBoxLayout>

namespace planish {

StartPage::StartPage(QWidget *parent)
    : QWidget(parent), m_message(new QLabel), m_open(new QPushButton(QStringLiteral("Open a dump…"))),
      m_sample(new QPushButton(QStringLiteral("Explore the sample"))), m_recent(new QListWidget),
      m_recentTitle(new QLabel(QStringLiteral("Recent files")))
{
    auto *title = new QLabel(QStringLiteral("Planish"));
    QFont large = title->font();
    large.setPointSizeF(large.pointSizeF() * 2.2);
    title->setFont(large);
    auto *what = new QLabel(
        QStringLiteral("See where the outliers of a Transformer's activations live, flatten them with an equivalent transform, "
                       "and prove that the function did not change. Drop a dump here, or:"));
    what->setWordWrap(true);
    m_message->setWordWrap(true);
    m_message->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_recent->setAccessibleName(QStringLiteral("Recent files"));
    m_recent->setTextElideMode(Qt::ElideMiddle);
    auto *column = new QVBoxLayout;
    column->setSpacing(12);
    for (QWidget *widget : std::initializer_list<QWidget *>{title, what, m_open, m_sample, m_message, m_recentTitle}) {
        column->addWidget(widget);
    }
    column->addWidget(m_recent, 1);
    column->addStretch();
    auto *box = new QWidget;
    box->setLayout(column);
    box->setMaximumWidth(560);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(40, 30, 40, 30);
    layout->addWidget(box, 1, Qt::AlignHCenter);
    box->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Expanding);
    box->setMinimumWidth(420);
    connect(m_open, &QPushButton::clicked, this, &StartPage::openRequested);
    connect(m_sample, &QPushButton::clicked, this, &StartPage::sampleRequested);
    connect(m_recent, &QListWidget::itemActivated, this, [this](QListWidgetItem *item) { emit fileRequested(item->text()); });
    setRecent({});
}

void StartPage::setRecent(const QStringList &files)
{
    m_recent->clear();
    m_recent->addItems(files);
    m_recent->setVisible(!files.isEmpty());
    m_recentTitle->setVisible(!files.isEmpty());
}

void StartPage::setSample(const QString &file)
{
    m_sample->setEnabled(!file.isEmpty());
    m_sample->setToolTip(file.isEmpty() ? QStringLiteral("The sample is not installed beside the program") : file);
}

void StartPage::setMessage(const QString &text)
{
    m_message->setText(text);
    m_message->setVisible(!text.isEmpty());
}

} // namespace planish
