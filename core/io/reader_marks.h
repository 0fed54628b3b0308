// Inside core/io only: the reader process writes what it works on into a page shared with its parent, so that its death or silence
// can be told by path; and it leaves out what an earlier reader died over.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "core/io/reader_protocol.h"

namespace planish {

class ReaderMarks {
public:
    /// `page` may be null (nobody watches).
    explicit ReaderMarks(ReaderPage *page) : m_page(page) {}

    void leaveOut(const LeftOut &marks) { m_leftOut = {marks.begin(), marks.end()}; }
    /// Says what is worked on from here. Returns why it must be left out; nullptr when it need not.
    const std::string *enter(ReaderStep step, std::string_view path);
    /// Work goes on with the same object.
    void tick();

private:
    ReaderPage *m_page;
    std::map<std::string, std::string> m_leftOut;
};

} // namespace planish
