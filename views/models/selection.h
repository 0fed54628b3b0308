// What is picked: an edge, a channel of it, a token row of it. One object, so that picking anywhere marks it everywhere.
#pragma once

#include <cstdint>

#include <QObject>

#include "core/io/ids.h"

namespace planish {

class Selection : public QObject {
    Q_OBJECT
public:
    using QObject::QObject;
    const EdgeId &edge() const { return m_edge; }
    std::int64_t channel() const { return m_channel; } ///< -1: none
    std::int64_t token() const { return m_token; }     ///< row of the file, -1: none
    void setEdge(const EdgeId &edge);                  ///< clears channel and token
    void setChannel(std::int64_t channel);
    void setToken(std::int64_t row);
    void clear();

signals:
    void edgeChanged();
    void channelChanged();
    void tokenChanged();

private:
    EdgeId m_edge;
    std::int64_t m_channel = -1, m_token = -1;
};

} // namespace planish
