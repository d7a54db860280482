// Faults of the stand-in Vulkan library as text: SHUNT_VULKAN_FAULT and set_vulkan_faults() (grammar in
// faulty_vulkan.h). Plain values; any thread.
#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace shunt::test {

// X(kind, name, what it counts, whether a duration follows the name)
#define SHUNT_VULKAN_FAULT_KINDS(X)     \
  X(delay, "delay", "submission", true) \
  X(drop, "drop", "submission", false)  \
  X(hang, "hang", "submission", false)  \
  X(lose, "lose", "submission", false)  \
  X(fail, "fail", "allocation", false)

struct VulkanFaultRule {
  enum class Kind : std::uint8_t {
#define SHUNT_VULKAN_FAULT_KIND(kind, name, counted, has_duration) kind,
    SHUNT_VULKAN_FAULT_KINDS(SHUNT_VULKAN_FAULT_KIND)
#undef SHUNT_VULKAN_FAULT_KIND
  };
  Kind kind = Kind::delay;
  std::uint64_t number = 0;  // of the submission or allocation, counted from 0
  bool and_all_after = false;
  std::chrono::milliseconds delay{0};

  [[nodiscard]] bool concerns(std::uint64_t which) const { return and_all_after ? which >= number : which == number; }
};

namespace vulkan_faults {

struct Row {
  VulkanFaultRule::Kind kind;
  std::string_view name;
  std::string_view counted;
  bool has_duration;
};
inline constexpr Row kRows[] = {
#define SHUNT_VULKAN_FAULT_KIND(kind, name, counted, has_duration) \
  {VulkanFaultRule::Kind::kind, name, counted, has_duration},
    SHUNT_VULKAN_FAULT_KINDS(SHUNT_VULKAN_FAULT_KIND)
#undef SHUNT_VULKAN_FAULT_KIND
};

// Parses text that consists of a number and `ending`.
inline std::optional<std::uint64_t> number_of(std::string_view text, std::string_view ending = "") {
  if (!text.ends_with(ending)) return std::nullopt;
  text.remove_suffix(ending.size());
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Parses one rule, such as "delay 50ms at submission 3".
inline std::optional<VulkanFaultRule> rule_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> words;
  for (std::string word; in >> word;) words.push_back(word);
  for (const Row& row : kRows) {
    const std::size_t at = row.has_duration ? 2 : 1;
    if (words.size() != at + 3 || words[0] != row.name || words[at + 1] != row.counted) continue;
    VulkanFaultRule rule{.kind = row.kind, .and_all_after = words[at] == "from"};
    const auto number = number_of(words[at + 2]);
    const auto delay = row.has_duration ? number_of(words[1], "ms") : std::optional<std::uint64_t>(0);
    if (!number || !delay || (words[at] != "at" && !rule.and_all_after)) return std::nullopt;
    rule.number = *number;
    rule.delay = std::chrono::milliseconds(*delay);
    return rule;
  }
  return std::nullopt;
}

}  // namespace vulkan_faults

// Parses all rules. Returns nullopt on an error and puts the offending part into `wrong`.
inline std::optional<std::vector<VulkanFaultRule>> vulkan_faults_of(std::string_view text, std::string& wrong) {
  std::vector<VulkanFaultRule> rules;
  std::istringstream in{std::string(text)};
  for (std::string part; std::getline(in, part, ',');) {
    const auto rule = vulkan_faults::rule_of(part);
    if (!rule) {
      wrong = part;
      return std::nullopt;
    }
    rules.push_back(*rule);
  }
  return rules;
}

}  // namespace shunt::test
