// Names out of files may hold control characters or bytes that are no UTF-8. This makes them safe for a terminal and for JSON.
#pragma once

#include <string>
#include <string_view>

namespace planish {

/// Control characters and invalid UTF-8 bytes as \xNN; everything else unchanged.
std::string printable(std::string_view text);
/// True when the bytes are valid UTF-8 without control characters.
bool isPrintable(std::string_view text);

} // namespace planish
