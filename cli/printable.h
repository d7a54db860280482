// Text that a terminal may get: what came out of a file must not steer it.
#pragma once

#include <string>
#include <string_view>

namespace shunt::cli {

// The text with every character that steers a terminal, or turns what is read around, as an escape: control characters
// other than newline and tab (\x1b; U+009B as \u009b), what sets the direction of text (\u202e), and bytes that are no
// UTF-8 (\xff). All else is unchanged.
[[nodiscard]] std::string printable(std::string_view text);

}  // namespace shunt::cli
