#include "views/models/selection.h"

namespace planish {

void Selection::setEdge(const EdgeId &edge)
{
    if (edge == m_edge) {
        return;
    }
    m_edge = edge;
    m_channel = m_token = -1;
    emit edgeChanged();
    emit channelChanged();
    emit tokenChanged();
}

void Selection::setChannel(std::int64_t channel)
{
    if (channel != m_channel) {
        m_channel = channel;
        emit channelChanged();
    }
}

void Selection::setToken(std::int64_t row)
{
    if (row != m_token) {
        m_token = row;
        emit tokenChanged();
    }
}

void Selection::clear()
{
    setEdge({});
    setChannel(-1);
    setToken(-1);
}

} // namespace planish
