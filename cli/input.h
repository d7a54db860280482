// Reads texts from stdin and files. One thread.
#pragma once

#include <optional>
#include <string>

#include "shunt/status.h"

namespace shunt::cli {

// Reads all of stdin, without the final newline. Errors: io.
[[nodiscard]] Result<std::string> read_stdin();
// Reads a text file, without the final newline. Errors: io; invalid if nothing is in it.
[[nodiscard]] Result<std::string> read_text(const std::string& path);

// Reads stdin line by line. Unlike a stream, it stops waiting on Ctrl-C.
class LineReader {
 public:
  // Returns the next line without its newline; nullopt at the end of the input or after Ctrl-C.
  [[nodiscard]] std::optional<std::string> next();

 private:
  std::string pending_;
};

}  // namespace shunt::cli
