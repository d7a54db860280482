#include "base/system/cgroup.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace shunt {
namespace {

using Path = std::filesystem::path;

struct Group {
  Path folder;
  bool v2;
};

std::vector<std::string> lines_of(const Path& path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

// Returns nullopt for "max" and for -1, which both mean no limit.
std::optional<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// Returns the number after `key` (a word and a space, or empty) in the first line that begins with it.
std::optional<std::uint64_t> read_number(const Path& path, std::string_view key = {}) {
  for (const std::string& line : lines_of(path))
    if (line.starts_with(key)) return number_in(std::string_view(line).substr(key.size()));
  return std::nullopt;
}

// Returns the process's group and its parents. /proc/self/cgroup has lines "4:cpu,cpuacct:/a/b", or "0::/a/b" in
// version 2.
std::vector<Group> groups_of(const Path& root, std::string_view controller) {
  std::vector<Group> groups;
  for (const std::string& line : lines_of(root / "proc/self/cgroup")) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool v2 = second == first + 1;
    if (!v2 && controllers.find("," + std::string(controller) + ",") == std::string::npos) continue;
    const Path mount = v2 ? root / "sys/fs/cgroup" : root / "sys/fs/cgroup" / controller;
    Path group = Path(line.substr(second + 1)).relative_path();
    for (; !group.empty(); group = group.parent_path()) groups.push_back({mount / group, v2});
    groups.push_back({mount, v2});
  }
  return groups;
}

}  // namespace

std::optional<std::uint64_t> cgroup_available_memory(const Path& root) {
  std::optional<std::uint64_t> available;
  for (const auto& [folder, v2] : groups_of(root, "memory")) {
    const auto limit = read_number(folder / (v2 ? "memory.max" : "memory.limit_in_bytes"));
    const auto used = read_number(folder / (v2 ? "memory.current" : "memory.usage_in_bytes"));
    if (!limit || !used) continue;
    // Pages of files not read lately make room for others.
    const std::uint64_t idle =
        read_number(folder / "memory.stat", v2 ? "inactive_file " : "total_inactive_file ").value_or(0);
    const std::uint64_t left = *limit - std::min(*limit, *used - std::min(*used, idle));
    available = std::min(available.value_or(left), left);
  }
  return available;
}

std::optional<std::uint32_t> cgroup_cores(const Path& root) {
  std::optional<std::uint32_t> cores;
  for (const auto& [folder, v2] : groups_of(root, "cpu")) {
    std::optional<std::uint64_t> quota;
    std::optional<std::uint64_t> period;
    if (v2) {
      for (const std::string& line : lines_of(folder / "cpu.max")) {
        quota = number_in(line);
        period = number_in(std::string_view(line).substr(std::min(line.find(' '), line.size() - 1) + 1));
      }
    } else {
      quota = read_number(folder / "cpu.cfs_quota_us");
      period = read_number(folder / "cpu.cfs_period_us");
    }
    if (!quota || !period || *quota == 0 || *period == 0) continue;
    const std::uint64_t whole = (*quota - 1) / *period + 1;
    const auto some =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(whole, std::numeric_limits<std::uint32_t>::max()));
    cores = std::min(cores.value_or(some), some);
  }
  return cores;
}

}  // namespace shunt
