#include "run/verify/conformance.h"

#include "ops/each_target.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "devices/wrapped_device.h"
#include "run/verify/cpu_devices.h"
#include "run/verify/support_check.h"
#include "sanitized.h"

namespace shunt {
namespace {

class EveryRow : public testing::TestWithParam<Op> {};

TEST_P(EveryRow, GivesTheReferencesResultOnEveryDevice) {
  const auto conform = [](std::span<Device* const> devices) {
    const ConformanceOptions options{.ops = {GetParam()}, .sizes = {Sizes::awkward}};
    const auto report = check_conformance(devices, options);
    ASSERT_TRUE(report.has_value()) << report.error().message;
    for (const ConformanceFailure& failure : report->failures) ADD_FAILURE() << test::text_of(failure, options.seed);
    for (const KnownFailure& row : report->unexpected_passes)
      ADD_FAILURE() << row.device << " passes, though its failure is known: " << row.reason;
    std::set<std::string> that_ran;
    for (const ConformanceTally& tally : report->tallies)
      if (tally.passed > 0) that_ran.insert(tally.device);
    for (const ConformanceTally& tally : report->tallies)
      if (tally.device == "cpu:simd" && test::is_left_to_its_parts(tally)) that_ran.insert(tally.device);
    EXPECT_EQ(that_ran.size(), devices.size());
    for (const Device* device : devices) test::expect_as_recorded(*report, *device, true);
  };
  {
    test::CpuDevices cpu;
    Device* const devices[] = {cpu.simd.get(), cpu.scalar.get()};
    conform(devices);
  }
  if (test::kSanitized) return;  // the tests of ops run each instruction set
  // How threads share an op is the same for each instruction set, and the best one has shown it.
  test::for_each_simd_target_and_baseline([&] {
    test::CpuDevices cpu(1);
    Device* const devices[] = {cpu.simd.get()};
    conform(devices);
  });
}

INSTANTIATE_TEST_SUITE_P(Conformance, EveryRow, testing::ValuesIn(test::running_ops()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

// A device that misbehaves after each program.
class Faulty final : public test::WrappedDevice {
 public:
  using Fault = void (*)(const ProgramOp& op);
  Faulty(Device& device, Fault fault) : WrappedDevice(device), fault_(fault) {}

  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    op_ = request.ops.front();
    return inner().prepare(request);
  }
  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    const Status done = inner().submit(program, submission).wait();
    if (done && op_.output.bytes > 0) fault_(op_);
    return Event(done);
  }

 private:
  Fault fault_;
  ProgramOp op_;
};

std::byte& byte_of(const Binding& binding, std::uint64_t index) {
  return binding.buffer->host()[binding.offset + index];
}

ConformanceReport report_on(Device& device, const ConformanceOptions& options) {
  Device* const devices[] = {&device};
  auto report = check_conformance(devices, options);
  EXPECT_TRUE(report.has_value());
  return std::move(report).value_or(ConformanceReport{});
}

bool says(const ConformanceReport& report, std::string_view words) {
  return std::ranges::any_of(report.failures, [&](const ConformanceFailure& failure) {
    return failure.words.find(words) != std::string::npos;
  });
}

TEST(Conformance, FindsAWrongElement) {
  test::CpuDevices cpu;
  Faulty device(*cpu.simd, [](const ProgramOp& op) { byte_of(op.output, 3) ^= std::byte{0x40}; });
  const ConformanceReport report = report_on(device, {.ops = {Op::add}, .sizes = {Sizes::awkward}});
  EXPECT_FALSE(report.ok());
  EXPECT_TRUE(says(report, "is above") || says(report, "element 0 is"));
}

TEST(Conformance, FindsWhatIsWrittenBesideTheResult) {
  test::CpuDevices cpu;
  Faulty after(*cpu.simd, [](const ProgramOp& op) { byte_of(op.output, op.output.bytes) = std::byte{0}; });
  EXPECT_TRUE(
      says(report_on(after, {.ops = {Op::linear}, .sizes = {Sizes::awkward}}), "after the start of the result"));
  Faulty in_the_tail(*cpu.simd, [](const ProgramOp& op) { byte_of(op.output, op.output.bytes - 1) = std::byte{0}; });
  EXPECT_TRUE(says(report_on(in_the_tail, {.ops = {Op::linear}, .sizes = {Sizes::awkward}}),
                   "rows of the result that are not valid"));
  Faulty input(*cpu.simd, [](const ProgramOp& op) {
    if (op.inputs[0].bytes > 0) byte_of(op.inputs[0], 0) ^= std::byte{1};
  });
  EXPECT_TRUE(says(report_on(input, {.ops = {Op::linear}, .sizes = {Sizes::awkward}}), "changed its input x"));
}

TEST(Conformance, FindsWhatIsWrongPastTheTilesOfKernels) {
  test::CpuDevices cpu;
  Faulty device(*cpu.simd, [](const ProgramOp& op) {
    if (op.call.output->shape[0] > 100) byte_of(op.output, 3) ^= std::byte{0x40};
  });
  const auto is_right = [&](Sizes sizes) {
    return report_on(device, {.ops = {Op::mul}, .dtypes = {DType::F32}, .sizes = {sizes}, .every_op = true}).ok();
  };
  EXPECT_TRUE(is_right(Sizes::awkward));
  EXPECT_FALSE(is_right(Sizes::many));
}

TEST(Conformance, FindsStateThatIsWrong) {
  test::CpuDevices cpu;
  Faulty device(*cpu.simd, [](const ProgramOp& op) { byte_of(op.output, op.output.bytes - 1) ^= std::byte{0x40}; });
  EXPECT_FALSE(report_on(device, {.ops = {Op::rotary_cache_write}}).ok());
}

TEST(Conformance, AKnownFailureIsNoNewsUntilItPasses) {
  test::CpuDevices cpu;
  Faulty device(*cpu.simd, [](const ProgramOp& op) { byte_of(op.output, 3) ^= std::byte{0x40}; });
  const KnownFailure known[] = {{"cpu:simd", Op::silu, "", "flips a bit"}};
  const ConformanceReport failing = report_on(device, {.ops = {Op::silu}, .known = known});
  EXPECT_TRUE(failing.ok());
  EXPECT_EQ(failing.known.size(), 1U);
  const ConformanceReport passing = report_on(*cpu.simd, {.ops = {Op::silu}, .known = known});
  EXPECT_FALSE(passing.ok());
  EXPECT_EQ(passing.unexpected_passes.size(), 1U);
  EXPECT_TRUE(report_on(*cpu.simd, {.ops = {Op::add}, .sizes = {Sizes::awkward}, .known = known}).ok())
      << "a row that was not tried";
}

TEST(Conformance, ACaseCanBeRunAgainByItsChoices) {
  test::CpuDevices cpu;
  Faulty device(*cpu.simd, [](const ProgramOp& op) { byte_of(op.output, 3) ^= std::byte{0x40}; });
  const ConformanceReport all = report_on(device, {.ops = {Op::softmax}, .seed = 7});
  ASSERT_FALSE(all.failures.empty());
  const ConformanceFailure& last = all.failures.back();
  const ConformanceReport one = report_on(device, {.ops = {Op::softmax}, .seed = 7, .only = last.which});
  ASSERT_EQ(one.failures.size(), 1U);
  EXPECT_EQ(one.failures[0].call, last.call);
  EXPECT_EQ(one.failures[0].words, last.words);
}

}  // namespace
}  // namespace shunt
