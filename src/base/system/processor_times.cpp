#include "base/system/processor_times.h"

#if defined(__linux__)
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <string>

namespace shunt {
namespace {

#if defined(__linux__)
// Parses "cpu3 user nice system idle iowait irq softirq steal ...", in ticks. Guests are part of user and nice.
struct ProcessorLine {
  std::uint32_t processor = 0;
  double busy = 0;
};

std::optional<ProcessorLine> processor_line(const std::string& text) {
  std::istringstream words(text);
  std::string name;
  ProcessorLine line;
  if (!(words >> name) || !name.starts_with("cpu") || name.size() == 3) return std::nullopt;
  if (!(std::istringstream(name.substr(3)) >> line.processor)) return std::nullopt;
  for (int field = 0; field < 8; ++field) {
    double ticks = 0;
    if (!(words >> ticks)) return std::nullopt;
    const bool is_idle = field == 3 || field == 4;
    if (!is_idle) line.busy += ticks;
  }
  return line;
}

double seconds_of(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}
#endif

}  // namespace

std::vector<std::uint32_t> allowed_processors() {
  std::vector<std::uint32_t> allowed;
#if defined(__linux__)
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return allowed;
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) allowed.push_back(cpu);
#endif
  return allowed;
}

std::optional<ProcessorTimes> processor_times(const std::filesystem::path& root) {
#if defined(__linux__)
  const std::vector<std::uint32_t> allowed = allowed_processors();
  ProcessorTimes times;
  std::ifstream file(root / "proc/stat");
  for (std::string text; std::getline(file, text);) {
    const auto line = processor_line(text);
    if (!line || std::ranges::find(allowed, line->processor) == allowed.end()) continue;
    times.all_s += line->busy / static_cast<double>(::sysconf(_SC_CLK_TCK));
    ++times.processors;
  }
  rusage own{};
  if (times.processors == 0 || ::getrusage(RUSAGE_SELF, &own) != 0) return std::nullopt;
  times.own_s = seconds_of(own.ru_utime) + seconds_of(own.ru_stime);
  times.wall_s = std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
  return times;
#else
  static_cast<void>(root);
  return std::nullopt;
#endif
}

}  // namespace shunt
