// Any text as each of the files of JSON that the program reads: an error that says something, or values that can be
// shown and written again. The first byte chooses what it is: t a trace, as `shunt report` and `shunt replay` read it;
// m a machine; p a profile of measurements; d what is known of devices; a the answer of a process that tried a driver;
// f faults and b budgets, which are no JSON but texts of the same origins.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "base/parse_json.h"
#include "devices/discovery/device_json.h"
#include "devices/discovery/known_apis.h"
#include "devices/faults.h"
#include "devices/sim/machine.h"
#include "origin.h"
#include "plan/costs/profile.h"
#include "plan/regret.h"
#include "report_verdict.h"
#include "require.h"
#include "shunt/runtime.h"
#include "trace/chrome.h"

namespace {

using namespace shunt;

// A page and a summary may say a few things of each event, and no more.
constexpr std::size_t kMostTimes = 64;
constexpr std::size_t kFree = std::size_t{1} << 20U;

void check_size(std::string_view written, std::string_view read) {
  require(written.size() <= kMostTimes * read.size() + kFree);
}

void check_trace(std::string_view text) {
  const auto recording = trace::from_chrome_json(text, "trace");
  if (!answered(recording)) return;
  const trace::ExecutionSummary summary = summarize(*recording);
  check_size(to_text(summary), text);
  check_size(to_json(summary), text);
  check_size(to_json_lines(*recording), text);
  const std::string again = trace::to_chrome_json(*recording);
  check_size(again, text);
  require(trace::from_chrome_json(again, "trace").has_value());
  if (const auto origin = cli::origin_in(*recording); answered(origin)) {
    static_cast<void>(answered(origin->session()));
    static_cast<void>(origin->runtime());
    static_cast<void>(cli::to_json(*origin).dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  static_cast<void>(cli::speeds_in(*recording));
  const auto plans = regrets_of(*recording);
  if (!answered(plans)) return;
  for (const PlanRegret& plan : *plans) {
    check_size(to_text(plan), text);
    check_size(to_json(plan), text);
  }
  const cli::Verdict verdict = cli::verdict_of(*recording, summary, *plans);
  check_size(to_text(verdict), text);
  static_cast<void>(cli::to_json(verdict).dump(-1, ' ', false, Json::error_handler_t::replace));
}

void check_profile(std::string_view text) {
  const auto profile = profile_from_json(text);
  if (!answered(profile)) return;
  const std::string again = to_json(*profile);
  check_size(again, text);
  const auto read = profile_from_json(again);
  require(read.has_value() && to_json(*read) == again);
}

// The cache folder of this process, for functions that read files of it by themselves.
const std::filesystem::path& folder() {
  static const std::filesystem::path kFolder = [] {
    std::string name = (std::filesystem::temp_directory_path() / "shunt-fuzz-XXXXXX").string();
    require(mkdtemp(name.data()) != nullptr);
    require(setenv("SHUNT_CACHE_DIR", name.c_str(), 1) == 0);
    static_cast<void>(std::atexit([] { std::filesystem::remove_all(std::getenv("SHUNT_CACHE_DIR")); }));
    return std::filesystem::path(name);
  }();
  return kFolder;
}

void check_known_devices(std::string_view text) {
  const std::string path = (folder() / "devices.json").string();
  std::FILE* file = std::fopen(path.c_str(), "wb");
  require(file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size() && std::fclose(file) == 0);
  static_cast<void>(KnownApis());
  const auto json = parse_json(text);
  if (!json.is_object() || !json.contains("apis") || !json["apis"].is_object()) return;
  for (const auto& entry : json["apis"])
    if (entry.is_object() && entry.contains("report")) static_cast<void>(report_from_json(entry["report"]));
}

void check_answer(std::string_view text) {
  const auto report = report_from_json(parse_json(text));
  if (!report) return;
  const std::string again = to_json(*report).dump(-1, ' ', false, Json::error_handler_t::replace);
  require(report_from_json(parse_json(again)).has_value());
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0]) {
    case 't':
      check_trace(text);
      break;
    case 'm':
      static_cast<void>(answered(sim::machine_from_json(text, "machine")));
      break;
    case 'p':
      check_profile(text);
      break;
    case 'd':
      check_known_devices(text);
      break;
    case 'a':
      check_answer(text);
      break;
    case 'f':
      static_cast<void>(answered(faults_from_text(text)));
      break;
    case 'b':
      static_cast<void>(answered(budgets_from_text(text)));
      break;
    default:
      return -1;  // of no kind: not kept
  }
  return 0;
}
