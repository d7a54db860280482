// Every op on sizes past the borders of kernels: minutes of the same code as that of awkward sizes.
#include <gtest/gtest.h>

#include "run/verify/cpu_devices.h"

namespace shunt {
namespace {

class PastEveryBorder : public testing::TestWithParam<Op> {};

// On the best instruction set: the others differ in the width of a vector alone, and large sizes take long.
TEST_P(PastEveryBorder, GivesTheReferencesResult) {
  test::CpuDevices cpu;
  Device* const devices[] = {cpu.simd.get()};
  const ConformanceOptions options{.ops = {GetParam()}, .awkward = false};
  const auto report = check_conformance(devices, options);
  ASSERT_TRUE(report.has_value()) << report.error().message;
  for (const ConformanceFailure& failure : report->failures) ADD_FAILURE() << test::text_of(failure, options.seed);
}

INSTANTIATE_TEST_SUITE_P(Conformance, PastEveryBorder, testing::ValuesIn(test::running_ops()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

}  // namespace
}  // namespace shunt
