// Every op on sizes beyond the kernels' block borders: minutes of the same code that awkward sizes run.
#include <gtest/gtest.h>

#include "run/verify/cpu_devices.h"

namespace shunt {
namespace {

class PastEveryBorder : public testing::TestWithParam<Op> {};

// Uses the best instruction set only: the others differ only in vector width, and large sizes take long.
TEST_P(PastEveryBorder, GivesTheReferencesResult) {
  test::CpuDevices cpu;
  Device* const devices[] = {cpu.simd.get()};
  ConformanceOptions options{.ops = {GetParam()}};
  std::erase(options.sizes, Sizes::awkward);
  const auto report = check_conformance(devices, options);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  for (const ConformanceFailure& failure : report->failures) ADD_FAILURE() << test::text_of(failure, options.seed);
}

INSTANTIATE_TEST_SUITE_P(Conformance, PastEveryBorder, testing::ValuesIn(test::running_ops()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace shunt
