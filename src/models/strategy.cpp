#include "models/strategy.h"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace shunt {
namespace {

struct Row {
  std::string_view name;
  std::string_view meaning;
};

constexpr Row kStrategies[] = {
#define SHUNT_STRATEGY(strategy, name, meaning) {name, meaning},
    SHUNT_STRATEGIES(SHUNT_STRATEGY)
#undef SHUNT_STRATEGY
};

}  // namespace

std::string_view name_of(Strategy strategy) { return kStrategies[static_cast<std::size_t>(strategy)].name; }

Result<Strategy> strategy_from_name(std::string_view name) {
  std::string known;
  for (std::size_t index = 0; index < std::size(kStrategies); ++index) {
    if (kStrategies[index].name == name) return static_cast<Strategy>(index);
    known += fmt::format(" {}", kStrategies[index].name);
  }
  return fail(Code::invalid, fmt::format("unknown strategy \"{}\"; there are:{}", name, known));
}

namespace models {
namespace {

// The N of "blk.N.*".
std::optional<std::uint32_t> layer_of(std::string_view node) {
  constexpr std::string_view kPrefix = "blk.";
  if (!node.starts_with(kPrefix)) return std::nullopt;
  std::uint32_t layer = 0;
  const auto [end, error] = std::from_chars(node.data() + kPrefix.size(), node.data() + node.size(), layer);
  if (error != std::errc() || end == node.data() + node.size() || *end != '.') return std::nullopt;
  return layer;
}

}  // namespace

std::string describe_strategies() {
  std::string text;
  for (const Row& row : kStrategies) text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", row.name, row.meaning);
  return text;
}

std::vector<std::uint32_t> place_nodes(Strategy strategy, const Graph& graph, std::size_t devices) {
  if (strategy != Strategy::layers) return {};
  std::vector<std::uint32_t> device_of_node;
  device_of_node.reserve(graph.nodes().size());
  std::uint32_t device = 0;
  for (const Node& node : graph.nodes()) {
    if (const auto layer = layer_of(node.name)) device = static_cast<std::uint32_t>(*layer % devices);
    device_of_node.push_back(device);
  }
  return device_of_node;
}

}  // namespace models
}  // namespace shunt
