// Weights that are split by rows: the same numbers, computed by several devices at once.
#include <gtest/gtest.h>

#include <random>

#include "devices/discovery/registry.h"
#include "devices/sim/device.h"
#include "graph/row_split.h"
#include "ops/op.h"
#include "run/graphs.h"
#include "run/opened_devices.h"
#include "shunt/computation.h"
#include "shunt/runtime.h"
#include "shunt/weights.h"

namespace shunt {
namespace {

constexpr std::uint32_t kTokens = 3;
constexpr std::uint32_t kSplitColumns = 64;
constexpr std::uint32_t kSplitRows = 256;

std::vector<std::byte> random_rows(DType dtype, std::uint32_t rows, std::uint32_t columns) {
  std::mt19937 random(rows + columns);
  if (dtype == DType::F32) {
    std::vector<float> values(std::size_t{rows} * columns);
    for (float& value : values) value = static_cast<float>(random() % 2000) / 1000.0F - 1.0F;
    const auto bytes = std::as_bytes(std::span(values));
    return {bytes.begin(), bytes.end()};
  }
  std::vector<std::byte> blocks(*bytes_of(dtype, {rows, columns}));
  for (std::size_t i = 0; i < blocks.size(); ++i)  // Q8_0: a scale of 1/16 and 32 numbers
    blocks[i] = i % 34 == 0 ? std::byte{0} : i % 34 == 1 ? std::byte{0x2c} : static_cast<std::byte>(random());
  return blocks;
}

class SplitRows : public testing::TestWithParam<DType> {
 protected:
  void SetUp() override {
    for (const auto& [name, rows, columns] : {std::tuple("gate", kSplitRows, kSplitColumns),
                                              {"up", kSplitRows, kSplitColumns},
                                              {"down", kSplitColumns, kSplitRows}}) {
      bytes_.push_back(random_rows(GetParam(), rows, columns));
      ASSERT_TRUE(source_.add(name, GetParam(), {rows, columns}, bytes_.back()).has_value());
    }
  }

  // x + down(silu(gate(norm(x))) * up(norm(x)))
  [[nodiscard]] static Graph block() {
    GraphBuilder builder;
    const Tensor x = builder.input("x", DType::F32, {kTokens, kSplitColumns});
    const Tensor normalized = builder.rms_norm(x);
    const Tensor gate = builder.linear(normalized, builder.weight("gate", GetParam(), {kSplitRows, kSplitColumns}));
    const Tensor up = builder.linear(normalized, builder.weight("up", GetParam(), {kSplitRows, kSplitColumns}));
    const Tensor inner = builder.mul(builder.silu(gate), up);
    builder.output(
        builder.add(x, builder.linear(inner, builder.weight("down", GetParam(), {kSplitColumns, kSplitRows}))));
    return *std::move(builder).finish();
  }

  [[nodiscard]] static std::vector<float> input() {
    std::vector<float> x(std::size_t{kTokens} * kSplitColumns);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) / 8 - 1;
    return x;
  }

  // Runs each node on the device that its name gives: "[1]" marks the second part.
  [[nodiscard]] std::vector<float> run(const Graph& graph, bool shared_pool) {
    test::SeparateDevices machine(3, shared_pool);
    std::vector<std::uint32_t> placement;
    for (const Node& node : graph.nodes())
      placement.push_back(node.name.ends_with("[1]") ? 1 : node.name.ends_with("[2]") ? 2 : 0);
    auto plan = make_plan({.graph = &graph, .devices = machine.devices, .where = GivenPlaces{placement}});
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    const Status valid = check(*plan, graph);
    EXPECT_TRUE(valid.has_value()) << valid.error().message;
    WeightStore weights(&source_);
    StateStore state;
    ArenaStore arenas;
    auto executable = Executable::create(graph, std::move(*plan),
                                         {.devices = machine.devices,
                                          .weights = &weights,
                                          .state = &state,
                                          .arenas = &arenas,
                                          .recorder = &machine.recorder});
    EXPECT_TRUE(executable.has_value()) << executable.error().message;
    const std::vector<float> x = input();
    EXPECT_TRUE((*executable)->write_input(*graph.find("x"), std::as_bytes(std::span(x))).has_value());
    EXPECT_TRUE((*executable)->run({}).has_value());
    std::vector<float> sum(x.size());
    EXPECT_TRUE((*executable)->read_output(0, 0, std::as_writable_bytes(std::span(sum))).has_value());
    return sum;
  }

  std::vector<std::vector<std::byte>> bytes_;
  MemoryWeights source_;
};

TEST_P(SplitRows, GiveTheNumbersOfTheWhole) {
  const std::vector<float> expected = run(block(), true);
  EXPECT_NE(expected, input());
  const RowSplit splits[] = {{.weight = "gate", .rows = {64, 32, 160}, .devices = {}},
                             {.weight = "up", .rows = {64, 32, 160}, .devices = {}},
                             {.weight = "down", .rows = {16, 48}, .devices = {}}};
  const auto split = split_rows(block(), splits);
  ASSERT_TRUE(split.has_value()) << split.error().message;
  for (const bool shared_pool : {true, false}) EXPECT_EQ(run(*split, shared_pool), expected);
}

INSTANTIATE_TEST_SUITE_P(Weights, SplitRows, testing::Values(DType::F32, DType::Q8_0),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// Two equally fast, slow devices: the computation is planned, split and done in half the time.
TEST(Computation, SplitsWeightsAmongDevicesWhereThatPays) {
  constexpr std::uint32_t kMany = 2048;
  const std::vector<std::byte> rows = random_rows(DType::F32, kMany, kSplitColumns);
  MemoryWeights source;
  ASSERT_TRUE(source.add("w", DType::F32, {kMany, kSplitColumns}, rows).has_value());
  std::vector<float> y[2];
  for (const std::size_t count : {1U, 2U}) {
    const auto clock = std::make_shared<sim::VirtualClock>();
    BackendReport report{.api = "sim"};
    for (std::size_t number = 0; number < count; ++number)
      report.devices.push_back(sim::make_sim_device({.id = "sim:" + std::to_string(number),
                                                     .rate = {.flops_per_s = 1e12, .bytes_per_s = 1e8},
                                                     .link = {.latency_us = 1}},
                                                    clock));
    Registry registry;
    registry.backends.push_back(std::move(report));
    const auto runtime = runtime_over(std::move(registry), std::make_unique<trace::Recorder>());
    GraphBuilder builder;
    const Tensor x = builder.input("x", DType::F32, {kTokens, kSplitColumns});
    builder.output(builder.linear(x, builder.weight("w", DType::F32, {kMany, kSplitColumns})));
    auto computation = Computation::create(*std::move(builder).finish(), *runtime, &source);
    ASSERT_TRUE(computation.has_value()) << computation.error().message;
    std::vector<float> values(std::size_t{kTokens} * kSplitColumns);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 17) / 8 - 1;
    ASSERT_TRUE((*computation)->write("x", std::as_bytes(std::span(values))).has_value());
    const std::uint64_t begin_ns = opened(*runtime).handles()[0]->now_ns();
    ASSERT_TRUE((*computation)->run({}).has_value());
    y[count - 1].resize(std::size_t{kTokens} * kMany);
    ASSERT_TRUE((*computation)->read(0, 0, std::as_writable_bytes(std::span(y[count - 1]))).has_value());
    const bool is_split = (*computation)->explain().find("linear.0[1]") != std::string::npos;
    EXPECT_EQ(is_split, count == 2) << (*computation)->explain();
    EXPECT_LT(static_cast<double>(opened(*runtime).handles()[0]->now_ns() - begin_ns) / 1e3, count == 1 ? 6000 : 4500);
    EXPECT_FALSE((*computation)->write("linear.0", std::as_bytes(std::span(values))).has_value());
  }
  EXPECT_EQ(y[0], y[1]);
}

TEST(WeightRows, ThatTheWeightHasNotAreAnError) {
  const std::vector<float> values(std::size_t{4} * 8);
  MemoryWeights source;
  ASSERT_TRUE(source.add("w", DType::F32, {4, 8}, std::as_bytes(std::span(values))).has_value());
  GraphBuilder builder;
  builder.output(builder.linear(builder.input("x", DType::F32, {1, 8}), builder.weight_rows("w", DType::F32, 2, 3, 8)));
  const Graph graph = *std::move(builder).finish();
  WeightStore weights(&source);
  test::SeparateDevices machine(1);
  const auto found = weights.acquire(graph.tensor(*graph.find("w[2:5]")), *machine.devices[0]);
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, Code::invalid);
  EXPECT_EQ(found.error().message, "tensor \"w\" is F32[4, 8], but the graph needs F32[3, 8] from row 2 on");
}

}  // namespace
}  // namespace shunt
