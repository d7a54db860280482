#include "run/measure/op_bench.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/system/event_counter.h"
#include "devices/discovery/registry.h"

namespace shunt {
namespace {

// Smaller than any real model, but with whole blocks of every dtype.
constexpr OpSizes kSmall{.embedding = 256,
                         .feed_forward = 64,
                         .heads = 4,
                         .kv_heads = 2,
                         .head_dim = 64,
                         .vocabulary = 300,
                         .page_tokens = 32,
                         .prompt = 5,
                         .context = 40};

std::vector<BenchCase> cases_of(Op op, const OpSizes& sizes = kSmall) {
  auto cases = bench_cases(op, sizes);
  EXPECT_TRUE(cases.has_value()) << (cases ? "" : cases.error().message);
  return cases.value_or(std::vector<BenchCase>{});
}

TEST(OpCases, EveryOpWithAKernelHasOneRowAndAPrompt) {
  for (std::size_t index = 0; index < ops().size(); ++index) {
    const auto cases = cases_of(static_cast<Op>(index));
    if (!ops()[index].can_be_sampled()) {
      EXPECT_TRUE(cases.empty()) << ops()[index].name;
      continue;
    }
    for (const std::uint32_t rows : {1U, 5U})
      EXPECT_TRUE(std::ranges::any_of(cases, [&](const BenchCase& use) { return use.rows == rows; }))
          << ops()[index].name;
    for (const BenchCase& use : cases) EXPECT_GT(use.output.shape.elements(), 0U) << ops()[index].name;
  }
}

TEST(OpCases, LinearHasEveryWeightDtypeThatFits) {
  const auto weights =
      std::ranges::count_if(dtypes(), [](const DTypeInfo& info) { return info.kind != DTypeKind::integer; });
  EXPECT_EQ(cases_of(Op::linear).size(), 2 * static_cast<std::size_t>(weights));
  OpSizes narrow = kSmall;
  narrow.embedding = 32;
  for (const BenchCase& use : cases_of(Op::linear, narrow)) EXPECT_LE(info_of(use.dtype).block_elements, 32U);
}

TEST(OpBench, RunsEveryCaseOnEveryDeviceThatSupportsIt) {
  const Registry registry = *open_devices({.devices = "cpu", .threads = 2});
  for (Device* device : registry.devices())
    for (std::size_t op = 0; op < ops().size(); ++op)
      for (const BenchCase& use : cases_of(static_cast<Op>(op))) {
        auto bench = OpBench::create(use, *device, 1U << 16);
        if (!bench) {
          EXPECT_EQ(bench.error().code, Code::unsupported) << bench.error().message;
          continue;
        }
        const auto seconds = (*bench)->measure();
        ASSERT_TRUE(seconds.has_value()) << seconds.error().message;
        EXPECT_GT(*seconds, 0) << name_of(use.op);
        EXPECT_GT((*bench)->bytes(), 0) << name_of(use.op);
        EXPECT_GT((*bench)->cost().flops, 0) << name_of(use.op);
      }
}

// With one row, weights and caches that an op reads in full come from memory; a prompt reads them once for many rows.
TEST(OpBench, SaysWhatIsReadFromMemory) {
  const Registry registry = *open_devices({.devices = "cpu", .threads = 1});
  const auto reads_memory = [&](Op op, std::uint32_t rows) {
    for (const BenchCase& use : cases_of(op))
      if (use.rows == rows) return (*OpBench::create(use, *registry.devices()[0], 1U << 20))->reads_memory();
    return false;
  };
  EXPECT_TRUE(reads_memory(Op::linear, 1));
  EXPECT_FALSE(reads_memory(Op::linear, 5));
  EXPECT_TRUE(reads_memory(Op::attention, 1));
  EXPECT_TRUE(reads_memory(Op::linear_experts, 1));
  EXPECT_FALSE(reads_memory(Op::gather, 1));       // one row of many
  EXPECT_FALSE(reads_memory(Op::cache_write, 1));  // one position
  EXPECT_FALSE(reads_memory(Op::add, 1));          // no weights
}

TEST(OpBench, PreparesAsManyUsesAsAnother) {
  const Registry registry = *open_devices({.devices = "cpu", .threads = 1});
  const auto bench_of = [&](std::uint32_t rows) {
    const std::vector<BenchCase> cases = cases_of(Op::linear);
    const auto use = std::ranges::find(cases, rows, &BenchCase::rows);
    return std::move(*OpBench::create(*use, *registry.devices()[0], 1U << 20));
  };
  const auto one_row = bench_of(1);
  const auto prompt = bench_of(5);
  ASSERT_TRUE(prompt->use_as_often_as(*one_row).has_value());
  EXPECT_EQ(prompt->uses(), one_row->uses());
  EXPECT_TRUE(prompt->measure().has_value());
}

TEST(OpBench, IsMeasuredBesideTheLimits) {
  const Registry registry = *open_devices({.devices = "cpu", .threads = 2});
  auto limits = cpu::Limits::create(2);
  ASSERT_TRUE(limits.has_value());
  auto bench = OpBench::create(cases_of(Op::linear)[0], *registry.devices()[0], 1U << 20);
  ASSERT_TRUE(bench.has_value());
  OpTimes times;
  LimitTimes limit_times;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(measure_beside(**limits, **bench, times, limit_times).has_value());
  for (const Samples* samples : {&times.seconds, &times.bytes_per_s, &times.flops_per_s, &times.share_of_bandwidth,
                                 &times.share_of_peak, &limit_times.read_bytes_per_s, &limit_times.flops_per_s,
                                 &limit_times.flops_per_s_one_thread, &limit_times.fork_join_us}) {
    EXPECT_EQ(samples->count(), 3U);
    EXPECT_GT(samples->least(), 0);
  }
}

// Returns how often the shares of a device's peak were measured.
std::pair<std::size_t, std::size_t> counts_of_shares(const std::string& device) {
  const Registry registry = *open_devices({.devices = device, .threads = 1});
  auto limits = cpu::Limits::create(1);
  auto bench = OpBench::create(cases_of(Op::linear)[0], *registry.devices()[0], 1U << 20);
  OpTimes times;
  LimitTimes limit_times;
  EXPECT_TRUE(measure_beside(**limits, **bench, times, limit_times).has_value());
  const bool counts = device.starts_with("cpu") && count_instructions().has_value();
  EXPECT_EQ(times.instructions_per_cycle.count(), counts ? 1U : 0U);
  return {times.share_of_bandwidth.count(), times.share_of_peak.count()};
}

TEST(OpBench, HasNoSharesOfAPeakThatTheDeviceDoesNotTell) {
  EXPECT_EQ(counts_of_shares("cpu:simd"), std::pair(std::size_t{1}, std::size_t{1}));
  EXPECT_EQ(counts_of_shares("sim:0"), std::pair(std::size_t{0}, std::size_t{0}));
}

TEST(Samples, GiveMedianAndRange) {
  Samples samples;
  EXPECT_TRUE(samples.empty());
  for (const double value : {5.0, 1.0, 3.0}) samples.add(value);
  EXPECT_EQ(samples.median(), 3);
  samples.add(100);
  EXPECT_EQ(samples.median(), 4);
  EXPECT_EQ(samples.least(), 1);
  EXPECT_EQ(samples.most(), 100);
}

}  // namespace
}  // namespace shunt
