#include "core/io/error.h"

#include "core/io/printable.h"

namespace planish {

std::string toText(const Error &error)
{
    std::string text;
    if (!error.subject.empty())
        text += error.subject + ": ";
    text += error.what;
    if (!error.expected.empty())
        text += "; " + error.expected;
    return printable(text);
}

int exitCode(const Error &error)
{
    switch (error.code) {
    case ErrorCode::Usage:
        return 2;
    case ErrorCode::Data:
    case ErrorCode::Refused:
        return 1;
    case ErrorCode::Cancelled:
        return 3;
    case ErrorCode::Machine:
        return 4;
    }
    return 1;
}

} // namespace planish
