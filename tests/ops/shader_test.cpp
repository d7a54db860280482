// Which of a family's kernels a call gets on a device, and the constants it is compiled with.
#include "ops/shader.h"

#include <gtest/gtest.h>

namespace shunt::shader_tests {
namespace {

constexpr std::uint32_t kWord[] = {0};

std::string takes_all(const OpCall&) { return {}; }
std::string takes_few_rows(const OpCall& call) { return call.input(0).shape[0] < 100 ? "" : "argmax: too many rows"; }
std::string takes_none(const OpCall&) { return "argmax: never"; }
std::uint64_t one_group(const OpCall&) { return 1; }
Specialization rows_of(const OpCall& call) { return {static_cast<std::uint32_t>(call.input(0).shape[0]), 7}; }

constexpr ShaderKernel kPlain{.supports = takes_all, .groups = one_group};
constexpr ShaderKernel kPicky{.supports = takes_few_rows,
                              .groups = one_group,
                              .constants = nullptr,
                              .specialization = rows_of,
                              .runs_on = [](const ShaderLimits& limits) { return limits.has_f16; },
                              .rank = 2};
constexpr ShaderKernel kNever{.supports = takes_none, .groups = one_group, .constants = nullptr, .rank = 3};
constexpr ShaderKernel kLiked{.supports = takes_few_rows, .groups = one_group, .constants = nullptr, .rank = 1};

Shader shader_of(std::string_view name, const ShaderKernel& kernel, std::string_view wgsl) {
  return {.name = name, .family = "argmax", .kernel = &kernel, .spirv = kWord, .wgsl = wgsl};
}

// argmax of a given number of rows of 8.
struct Argmax {
  explicit Argmax(std::uint32_t rows)
      : x(Operand::contiguous(DType::F32, {rows, 8})), out(Operand::contiguous(DType::I32, {rows})) {}
  [[nodiscard]] OpCall call() const { return {Op::argmax, &attributes, inputs, &out}; }

  Operand x;
  Operand out;
  Attributes attributes{};
  const Operand* inputs[1] = {&x};
};

std::string_view name_of_choice(const ShaderChoice& choice) {
  return choice.shader == nullptr ? std::string_view("none") : choice.shader->name;
}

TEST(ChooseShader, TakesTheBestThatTheDeviceAndTheCallAllow) {
  const Shader among[] = {shader_of("never", kNever, "text"), shader_of("picky", kPicky, ""),
                          shader_of("plain", kPlain, "text")};
  const ShaderLimits plain{};
  const ShaderLimits halves{.has_f16 = true};
  const ShaderLimits web{.language = ShaderLanguage::wgsl, .has_f16 = true};
  const ShaderLimits metal{.language = ShaderLanguage::msl};
  const Argmax few(4);
  const Argmax many(100);
  EXPECT_EQ(name_of_choice(choose_shader(few.call(), plain, among)), "plain");
  EXPECT_EQ(name_of_choice(choose_shader(few.call(), halves, among)), "picky");
  EXPECT_EQ(choose_shader(few.call(), halves, among).refusal, "");
  EXPECT_EQ(name_of_choice(choose_shader(many.call(), halves, among)), "plain");
  EXPECT_EQ(name_of_choice(choose_shader(few.call(), web, among)), "plain") << "it has no text of the other";
  EXPECT_EQ(choose_shader(few.call(), metal, among).refusal, "argmax: there is no shader for it");
}

TEST(ChooseShader, SaysWhatThePlainestKernelLacks) {
  const Argmax many(100);
  const Shader among[] = {shader_of("never", kNever, ""), shader_of("liked", kLiked, ""),
                          shader_of("picky", kPicky, "")};
  const ShaderChoice choice = choose_shader(many.call(), {.has_f16 = true}, among);
  EXPECT_EQ(name_of_choice(choice), "none");
  EXPECT_EQ(choice.refusal, "argmax: too many rows");
  EXPECT_EQ(choose_shader(many.call(), {.largest_binding_bytes = 16}, among).refusal,
            "argmax: the result has 400 bytes, and 16 can be bound");
}

TEST(Specialization, IsWhatTheKernelSaysOfTheCall) {
  const Argmax few(4);
  const Shader picky = shader_of("picky", kPicky, "");
  const Shader plain = shader_of("plain", kPlain, "");
  EXPECT_EQ(specialize(picky, few.call()).values, (Specialization{4, 7}));
  EXPECT_EQ(specialize(plain, few.call()).values, Specialization{});
  EXPECT_NE(specialize(picky, few.call()), specialize(plain, few.call()));
}

TEST(Specialization, FollowsTheVersionOfAText) {
  EXPECT_EQ(specialized("#version 430\n#ifndef SPIRV_CROSS_CONSTANT_ID_1\n#endif\n", {0, 4294967295U}),
            "#version 430\n#define SPIRV_CROSS_CONSTANT_ID_1 4294967295u\n#ifndef SPIRV_CROSS_CONSTANT_ID_1\n#endif\n");
  EXPECT_EQ(specialized("#version 430\nvoid main() {}\n", {1, 2}), "#version 430\nvoid main() {}\n");
}

}  // namespace
}  // namespace shunt::shader_tests
