// What people type or pipe in. One thread.
#pragma once

#include <optional>
#include <string>

#include "shunt/status.h"

namespace shunt::cli {

// All of stdin, without the newline that ends it. Errors: io.
[[nodiscard]] Result<std::string> read_stdin();

// Stdin line by line. Unlike a stream it stops waiting when Ctrl-C comes.
class LineReader {
 public:
  // Without the newline; nothing at the end of the input or after Ctrl-C.
  [[nodiscard]] std::optional<std::string> next();

 private:
  std::string pending_;
};

}  // namespace shunt::cli
