#include "trace/text_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace shunt::trace {
namespace {

// Writes `text` to a file beside `path`, which then takes its place, or else goes away.
Status write_beside(const std::string& path, std::string_view text, bool replace) {
  std::error_code error;
  if (std::filesystem::exists(path, error) && !std::filesystem::is_regular_file(path, error))
    return fail(Code::invalid,
                fmt::format("\"{}\" is no regular file, so it cannot be replaced; name a new file", path));
  // A link stays one.
  const std::string target = std::filesystem::weakly_canonical(path, error).string();
  const std::string partial = fmt::format("{}.partial-{}", target, ::getpid());
  std::FILE* file = error ? nullptr : std::fopen(partial.c_str(), "wbxe");
  bool done = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) done = std::fclose(file) == 0 && done;
  if (done && replace) done = std::rename(partial.c_str(), target.c_str()) == 0;
  const int reason = error ? error.value() : errno;
  if (file != nullptr && !(done && replace)) static_cast<void>(std::remove(partial.c_str()));
  if (done) return {};
  return fail(Code::io, fmt::format("cannot write \"{}\": {}", path, std::generic_category().message(reason)));
}

}  // namespace

Status write_text_file(const std::string& path, std::string_view text) { return write_beside(path, text, true); }

Status check_text_path(const std::string& path) { return write_beside(path, {}, false); }

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
    return fail(Code::invalid,
                fmt::format("\"{}\" has more than {} bytes, which no text that it should be has", path, most_bytes));
  if (done) return text;
  return fail(Code::io, fmt::format("cannot read \"{}\": {}", path, std::generic_category().message(reason)));
}

}  // namespace shunt::trace
