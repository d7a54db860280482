#include "base/system/text_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <span>
#include <system_error>

#include "base/system/whole_file.h"

namespace shunt {
Status write_text_file(const std::string& path, std::string_view text) {
  return write_whole_file(path, std::as_bytes(std::span(text)));
}

Result<std::string> read_text_file(const std::string& path, std::uint64_t most_bytes) {
  std::string text;
  std::FILE* file = std::fopen(path.c_str(), "rbe");
  char piece[1U << 16U];
  std::size_t count = 0;
  while (file != nullptr && text.size() <= most_bytes && (count = std::fread(piece, 1, sizeof piece, file)) > 0)
    text.append(piece, count);
  const bool done = file != nullptr && std::ferror(file) == 0;
  const int reason = errno;
  if (file != nullptr) static_cast<void>(std::fclose(file));
  if (text.size() > most_bytes)
    return fail(Code::invalid, fmt::format("\"{}\" has more than {} bytes, which is too long for a file of this kind",
                                           path, most_bytes));
  if (done) return text;
  return fail(Code::io, fmt::format("cannot read \"{}\": {}", path, std::generic_category().message(reason)));
}

}  // namespace shunt
