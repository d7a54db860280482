// Two encoders that know nothing of each other, such as one of images and one of texts, and how alike what they make
// is: a graph in which two devices can compute at once. Where a device's memory holds one encoder only, they do. With
// a trace it says how long each one computed, and whether as long as was predicted.
//
//   two_towers [DEVICES [DEVICE=MIB [TRACE [WIDTH]]]]
//
//   two_towers vulkan:0,cpu:simd vulkan:0=300 trace.json 2048 && shunt report trace.json
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "shunt/computation.h"
#include "shunt/trace.h"

namespace {

using namespace shunt;

constexpr std::uint32_t kRows = 4;  // pairs that are compared
constexpr std::uint32_t kLayers = 8;
constexpr int kRuns = 20;
constexpr std::string_view kTowers[] = {"image", "text"};

std::string name_of_layer(std::string_view tower, std::uint32_t layer) { return fmt::format("{}.{}", tower, layer); }

struct Towers {
  std::vector<std::vector<float>> values;
  MemoryWeights weights;
};

// Matrices that turn a row a little: each element of what they make is of the size of those that it is made of.
Result<std::unique_ptr<Towers>> make_towers(std::uint32_t width) {
  auto towers = std::make_unique<Towers>();
  std::uint32_t state = 1;
  const float scale = 3.0F / std::sqrt(static_cast<float>(width));
  for (const std::string_view tower : kTowers)
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) {
      std::vector<float>& matrix = towers->values.emplace_back(std::size_t{width} * width);
      for (float& element : matrix) {
        state ^= state << 13U;  // xorshift
        state ^= state >> 17U;
        state ^= state << 5U;
        element = scale * (static_cast<float>(state >> 8U) / 0x1p23F - 1);
      }
      SHUNT_TRY(towers->weights.add(name_of_layer(tower, layer), DType::F32, {width, width},
                                    std::as_bytes(std::span(matrix))));
    }
  return towers;
}

Result<Graph> build(std::uint32_t width) {
  GraphBuilder graph;
  Tensor made[2];
  for (std::size_t i = 0; i < 2; ++i) {
    Tensor x = graph.input(kTowers[i], DType::F32, {kRows, width});
    for (std::uint32_t layer = 0; layer < kLayers; ++layer)
      x = graph.silu(graph.linear(x, graph.weight(name_of_layer(kTowers[i], layer), DType::F32, {width, width})));
    made[i] = x;
  }
  graph.output(graph.linear(made[0], made[1]));
  return std::move(graph).finish();
}

// How alike each pair is; [kRows, kRows].
Result<std::vector<float>> compare(const RuntimeOptions& options, const std::string& trace, std::uint32_t width) {
  SHUNT_TRY_ASSIGN(const auto runtime, Runtime::create(options));
  SHUNT_TRY_ASSIGN(const auto towers, make_towers(width));
  SHUNT_TRY_ASSIGN(Graph graph, build(width));
  SHUNT_TRY_ASSIGN(const auto computation,
                   Computation::create(std::move(graph), *runtime, &towers->weights, {.profile = options.trace}));
  std::vector<float> x(std::size_t{kRows} * width);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(1.3F * static_cast<float>(i));
  for (const std::string_view tower : kTowers) SHUNT_TRY(computation->write(tower, std::as_bytes(std::span(x))));
  for (int i = 0; i < kRuns; ++i) SHUNT_TRY(computation->run());
  std::vector<float> alike(std::size_t{kRows} * kRows);
  SHUNT_TRY(computation->read(0, 0, std::as_writable_bytes(std::span(alike))));
  if (!trace.empty()) {
    SHUNT_TRY(runtime->write_trace(trace));
    fmt::print("{}", to_text(summarize(runtime->recording())));
  }
  return alike;
}

Status run(const RuntimeOptions& options, const std::string& trace, std::uint32_t width) {
  SHUNT_TRY_ASSIGN(const std::vector<float> made, compare(options, trace, width));
  SHUNT_TRY_ASSIGN(const std::vector<float> expected, compare({.devices = "cpu"}, "", width));
  float largest = 0;
  float difference = 0;
  for (std::size_t i = 0; i < made.size(); ++i) {
    largest = std::max(largest, std::abs(expected[i]));
    difference = std::max(difference, std::abs(made[i] - expected[i]));
  }
  fmt::print("largest element {:.6f}, largest difference from the processor alone {:.6f}\n", largest, difference);
  if (difference <= 1e-3F * largest) return {};
  return std::unexpected(Error{Code::internal, "the devices give another result than the processor alone"});
}

}  // namespace

int main(int count, char** arguments) {
  const auto argument = [&](int index) { return std::string(count > index ? arguments[index] : ""); };
  RuntimeOptions options{.devices = argument(1)};
  const std::string budget = argument(2);
  const std::string trace = argument(3);
  if (const std::size_t at = budget.find('='); at != std::string::npos)
    options.budgets.emplace(budget.substr(0, at), std::strtoull(budget.c_str() + at + 1, nullptr, 10) << 20U);
  options.trace = !trace.empty();
  const std::uint32_t width = count > 4 ? static_cast<std::uint32_t>(std::strtoul(arguments[4], nullptr, 10)) : 256;
  if (const Status status = run(options, trace, width); !status) {
    fmt::print(stderr, "{}\n", status.error().message);
    return 1;
  }
  return 0;
}
