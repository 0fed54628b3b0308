#include "core/io/reader_marks.h"

#include <algorithm>

namespace planish {

const std::string *ReaderMarks::enter(ReaderStep step, std::string_view path)
{
    const std::string mark = markOf(step, path);
    if (m_page != nullptr) {
        const std::size_t length = std::min(mark.size(), m_page->place.size() - 1);
        std::copy_n(mark.begin(), length, m_page->place.begin());
        m_page->place[length] = '\0';
        tick();
    }
    const auto found = m_leftOut.find(mark);
    return found == m_leftOut.end() ? nullptr : &found->second;
}

void ReaderMarks::tick()
{
    if (m_page != nullptr)
        m_page->steps.fetch_add(1, std::memory_order_relaxed);
}

} // namespace planish
