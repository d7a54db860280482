// UTF-8: finds characters in unchecked bytes and turns a stream of bytes into text.
//
// Validity is that of the Unicode standard (table 3-7): no overlong forms, no surrogates, nothing above U+10FFFF.
// Everything here is a plain value; one object serves one stream and one thread at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shunt::models {

struct Utf8Unit {
  enum class Kind : std::uint8_t {
    character,   // a whole valid character
    invalid,     // the longest part that begins like a character and then goes wrong; at least one byte
    incomplete,  // all of `bytes`: a character that later bytes may complete
  };
  Kind kind = Kind::invalid;
  std::size_t length = 1;  // in bytes
};

// Returns what `bytes` begins with. REQUIRES: !bytes.empty().
[[nodiscard]] Utf8Unit first_utf8_unit(std::string_view bytes);

// Returns the code point of one character. REQUIRES: first_utf8_unit calls all of it a character.
[[nodiscard]] char32_t code_point(std::string_view character);

[[nodiscard]] bool is_utf8(std::string_view bytes);

// Returns the index of the first byte that is not part of a character, or the size if there is none.
[[nodiscard]] std::size_t first_invalid_byte(std::string_view bytes);

// Turns pieces of text, cut anywhere, into text cut only between characters. Each invalid unit is replaced with U+FFFD,
// so that all output is valid UTF-8.
class Utf8Stream {
 public:
  // Returns the characters completed by `bytes`.
  [[nodiscard]] std::string push(std::string_view bytes);
  // Ends the text: an incomplete character becomes U+FFFD. The stream can be used again.
  [[nodiscard]] std::string flush();

 private:
  std::string pending_;  // at most three bytes between calls
};

}  // namespace shunt::models
