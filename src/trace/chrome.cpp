#include "trace/chrome.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <map>
#include <system_error>
#include <utility>

namespace shunt::trace {
namespace {

std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (static_cast<unsigned char>(c) < 0x20)
      out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    else
      out += c;
  }
  return out + "\"";
}

constexpr double kNsPerUs = 1e3;

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

// What else is known of an event.
std::string arguments_of(const Event& event, const Recorder& recorder) {
  std::string json =
      fmt::format("{{\"step\":{},\"outcome\":\"{}\"", event.step, event.failed ? shunt::name_of(event.code) : "ok");
  if (event.reason != 0) json += fmt::format(",\"reason\":{}", json_string(recorder.text_of(event.reason)));
  if (event.predicted_us != 0) json += fmt::format(",\"predicted_us\":{}", event.predicted_us);
  if (event.bytes != 0) json += fmt::format(",\"bytes\":{}", event.bytes);
  return json + "}";
}

}  // namespace

std::string to_chrome_json(const Recorder& recorder) {
  const std::vector<Event> events = recorder.snapshot();
  std::uint64_t origin = ~std::uint64_t{0};
  for (const Event& event : events) origin = std::min(origin, event.start_ns);
  std::string json = "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  std::map<Label, bool> named;
  const char* separator = "\n";
  for (const Event& event : events) {
    if (!std::exchange(named[event.device], true)) {
      json += fmt::format("{}{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":1,\"tid\":{},\"args\":{{\"name\":{}}}}}",
                          separator, event.device, json_string(recorder.text_of(event.device)));
      separator = ",\n";
    }
    json += fmt::format(
        "{}{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{}}}",
        separator, json_string(recorder.text_of(event.what)), name_of(event.kind), event.device,
        static_cast<double>(event.start_ns - origin) / kNsPerUs, static_cast<double>(event.duration_ns) / kNsPerUs,
        arguments_of(event, recorder));
  }
  return json + fmt::format("\n],\"otherData\":{{\"events_recorded\":{},\"events_overwritten\":{}}}}}\n",
                            recorder.recorded(), recorder.overwritten());
}

Status write_chrome_trace(const Recorder& recorder, const std::string& path) {
  return write_beside(path, to_chrome_json(recorder), true);
}

Status check_trace_path(const std::string& path) { return write_beside(path, {}, false); }

}  // namespace shunt::trace
