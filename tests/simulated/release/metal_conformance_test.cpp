// The MSL kernels, compiled for the host, and the flow of calls around them, simulated, against the scalar reference.
#include <algorithm>

#include "ops/shader.h"
#include "run/verify/conformance.h"
#include "run/verify/support_check.h"
#include "simulated/simulated_metal.h"

namespace shunt::simulated {
namespace {

std::vector<Op> ops_that_compute() {
  std::vector<Op> found;
  for (std::size_t index = 0; index < ops().size(); ++index)
    if (ops()[index].can_be_sampled()) found.push_back(static_cast<Op>(index));
  return found;
}

class SimulatedMetal : public testing::TestWithParam<Op> {};

TEST_P(SimulatedMetal, GivesTheReferencesResult) {
  const MetalSimulation simulation;
  const std::uint64_t before = MetalSimulation::control().live_objects();
  {
    const BackendReport report = MetalSimulation::open();
    ASSERT_EQ(report.devices.size(), 1U) << report.absent_because;
    Device* const devices[] = {report.devices[0].get()};
    ConformanceOptions options{.ops = {GetParam()}};
    // Large sizes show how dispatches are split; Vulkan shows in less time what kernels do with them.
    if (GetParam() != Op::add) options.sizes = {Sizes::awkward};
    const auto result = check_conformance(devices, options);
    ASSERT_TRUE(result.has_value()) << result.error().message;
    for (const ConformanceFailure& failure : result->failures) ADD_FAILURE() << failure.call << ": " << failure.words;
    test::expect_as_recorded(*result, *devices[0], true);
    std::uint64_t passed = 0;
    for (const ConformanceTally& tally : result->tallies) {
      passed += tally.passed;
      EXPECT_TRUE(tally.declined == 0 || !tally.reason.empty()) << tally.dtypes;
    }
    const bool has_kernel = std::ranges::any_of(shaders(), [](const Shader& shader) {
      return shader.family == info_of(GetParam()).family && shader.is_in(ShaderLanguage::msl);
    });
    const bool is_left = std::ranges::all_of(result->tallies, test::is_left_to_its_parts);
    EXPECT_EQ(passed > 0 || is_left, has_kernel);
  }
  EXPECT_EQ(MetalSimulation::control().live_objects(), before);
}

INSTANTIATE_TEST_SUITE_P(Conformance, SimulatedMetal, testing::ValuesIn(ops_that_compute()),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(MslKernels, BuffersHaveTheNumbersOfTheBindings) {
  for (const Shader& shader : shaders()) {
    if (!shader.is_in(ShaderLanguage::msl)) continue;  // a Vulkan kernel
    EXPECT_NE(shader.msl.find(std::string("kernel void ") + kMslEntry + "("), std::string_view::npos) << shader.name;
    for (const std::uint32_t binding : {kCallBinding, kParametersBinding, kOutputBinding})
      EXPECT_NE(shader.msl.find("[[buffer(" + std::to_string(binding) + ")]]"), std::string_view::npos)
          << shader.name << " " << binding;
    EXPECT_EQ(shader.msl.find("[[buffer(" + std::to_string(kShaderBindings) + ")]]"), std::string_view::npos)
        << shader.name;
    EXPECT_EQ(shader.msl.find("spvBufferSizeConstants"), std::string_view::npos)
        << shader.name << " asks for the lengths of arrays, which nobody binds";
  }
}

}  // namespace
}  // namespace shunt::simulated
