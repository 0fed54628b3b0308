// One error for the whole program: a code that decides the exit status, a subject, what is wrong and what was expected.
#pragma once

#include <string>

#include <tl/expected.hpp>

namespace planish {

enum class ErrorCode {
    Usage,     ///< exit 2: unknown flag, name, value out of range
    Data,      ///< exit 1: the file or the plan is at fault
    Refused,   ///< exit 1: a need or rule forbids it; `rule` holds the stable name
    Cancelled, ///< exit 3
    Machine    ///< exit 4: disk full, out of memory, device lost, CPU too old
};

/// `subject` is a file, tensor, edge or parameter. Printed as `error: SUBJECT: what; expected`.
struct Error {
    ErrorCode code = ErrorCode::Data;
    std::string subject;
    std::string what;
    std::string expected;
    std::string rule; ///< stable rule name of plan.md, empty if none

    bool operator==(const Error &) const = default;
};

template <class T>
using Expected = tl::expected<T, Error>;

/// "SUBJECT: what; expected" (no "error: " in front).
std::string toText(const Error &error);
/// Exit code of cli.md for this error.
int exitCode(const Error &error);

inline tl::unexpected<Error> dataError(std::string subject, std::string what, std::string expected)
{
    return tl::make_unexpected(Error{ErrorCode::Data, std::move(subject), std::move(what), std::move(expected), {}});
}
inline tl::unexpected<Error> usageError(std::string subject, std::string what, std::string expected)
{
    return tl::make_unexpected(Error{ErrorCode::Usage, std::move(subject), std::move(what), std::move(expected), {}});
}
inline tl::unexpected<Error> refusal(std::string subject, std::string what, std::string expected, std::string rule)
{
    return tl::make_unexpected(
        Error{ErrorCode::Refused, std::move(subject), std::move(what), std::move(expected), std::move(rule)});
}
inline tl::unexpected<Error> machineError(std::string subject, std::string what, std::string expected)
{
    return tl::make_unexpected(Error{ErrorCode::Machine, std::move(subject), std::move(what), std::move(expected), {}});
}
inline tl::unexpected<Error> cancelled(std::string subject)
{
    return tl::make_unexpected(Error{ErrorCode::Cancelled, std::move(subject), "cancelled", "no further work was wanted", {}});
}

} // namespace planish
