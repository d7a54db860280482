#include "trace/chrome.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

namespace shunt::trace {
namespace {

std::string quoted(std::string_view text) {
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
                          separator, event.device, quoted(recorder.text_of(event.device)));
      separator = ",\n";
    }
    json += fmt::format(
        "{}{{\"ph\":\"X\",\"name\":{},\"cat\":\"{}\",\"pid\":1,\"tid\":{},\"ts\":{:.3f},\"dur\":{:.3f},\"args\":{{"
        "\"step\":{},"
        "\"reason\":{},\"predicted_us\":{},\"bytes\":{},\"outcome\":\"{}\"}}}}",
        separator, quoted(recorder.text_of(event.what)), name_of(event.kind), event.device,
        static_cast<double>(event.start_ns - origin) / kNsPerUs, static_cast<double>(event.duration_ns) / kNsPerUs,
        event.step, quoted(recorder.text_of(event.reason)), event.predicted_us, event.bytes,
        event.failed ? shunt::name_of(event.code) : "ok");
  }
  return json + "\n]}\n";
}

Status write_chrome_trace(const Recorder& recorder, const std::string& path) {
  const std::string json = to_chrome_json(recorder);
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) return fail(Code::io, fmt::format("cannot write \"{}\": {}", path, std::strerror(errno)));
  const bool written = std::fwrite(json.data(), 1, json.size(), file) == json.size();
  if (std::fclose(file) != 0 || !written)
    return fail(Code::io, fmt::format("writing \"{}\" failed: {}", path, std::strerror(errno)));
  return {};
}

}  // namespace shunt::trace
