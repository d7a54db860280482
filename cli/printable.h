// Makes text from files safe for a terminal, which it must not control.
#pragma once

#include <string>
#include <string_view>

namespace shunt::cli {

// Escapes every character that controls a terminal or reorders text: control characters other than newline and tab
// (\x1b; U+009B as \u009b), characters that set the direction of text (\u202e), and bytes that are not UTF-8 (\xff).
// All else is unchanged.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace shunt::cli
