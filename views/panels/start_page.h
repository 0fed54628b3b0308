// What the centre shows while nothing is open: open, recent files, the sample.
#pragma once

#include <QLabel>
#include <QListWidget>
#include <QPushButton>
#include <QWidget>

namespace planish {

class StartPage : public QWidget {
    Q_OBJECT
public:
    explicit StartPage(QWidget *parent = nullptr);
    void setRecent(const QStringList &files);
    void setSample(const QString &file);  ///< empty: no sample beside the program
    void setMessage(const QString &text); ///< why the last file did not open, or that one is being opened

signals:
    void openRequested();
    void sampleRequested();
    void fileRequested(const QString &file);

private:
    QLabel *m_message;
    QPushButton *m_open, *m_sample;
    QListWidget *m_recent;
    QLabel *m_recentTitle;
};

} // namespace planish
