// Attention by matrix tiles: emulated ones on every instruction set, and the processor's where it has them.
#include "ops/attention/tile.h"
#include "ops/attention_steps.h"
#include "ops/each_target.h"
#include "ops/kernel_arguments.h"
#include "sanitized.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention_tiles_test.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/attention/rows-inl.h"
#include "ops/emulated_tiles-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

int run_emulated(const CpuCall& call) {
  tiles::Attention attention(call, call.args<attention::AttentionSimdArgs>().attention);
  attention.run<EmulatedTiles>();
  return 0;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shunt {
namespace {
HWY_EXPORT(run_emulated);
}  // namespace
}  // namespace shunt

namespace shunt::test::attention_tests {
namespace {

const CpuKernel& simd_attention() { return *cpu_family("attention").simd; }

// Calls body(kernel) with emulated tiles on every instruction set, and with those of the processor.
template <class Body>
void for_each_unit_of_attention(Body body) {
  CpuKernel emulated = simd_attention();
  emulated.run = [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run_emulated)(call); };
  for_each_simd_target([&] {
    SCOPED_TRACE("emulated");
    body(emulated);
  });
  SCOPED_TRACE("the processor's");
  body(simd_attention());
}

// Settings that suit matrix tiles; some of their steps end with few rows.
std::vector<Setting> settings_for_tiles() {
  std::vector<Setting> all{
      {.heads = 8, .kv_heads = 2, .head_dim = 64, .tokens = prompt(1, 0, 40)},
      {.heads = 6, .kv_heads = 3, .head_dim = 96, .page_tokens = 64, .sequence_pages = 4, .tokens = prompt(2, 200, 50)},
      {.heads = 64, .kv_heads = 1, .head_dim = 32, .tokens = prompt(2, 10, 2)},
      {.heads = 3, .kv_heads = 1, .head_dim = 64, .tokens = interleaved()},
      {.heads = 4, .kv_heads = 4, .head_dim = 32, .page_tokens = 5, .sequence_pages = 30, .tokens = prompt(2, 17, 70)},
      {.heads = 4, .kv_heads = 2, .head_dim = 128, .tokens = joined(prompt(0, 3, 20), prompt(2, 30, 25))},
      {.heads = 8,
       .kv_heads = 2,
       .head_dim = 32,
       .page_tokens = 32,
       .sequence_pages = 16,
       .tokens = prompt(1, 400, 12)},
  };
  // A token that sees nothing, among those whose windows begin late.
  all.push_back({.heads = 4, .kv_heads = 2, .head_dim = 64, .sequence_pages = 8, .tokens = prompt(1, 60, 24)});
  all.back().tokens[3].second = -1;
  const std::size_t count = all.size();
  for (std::size_t i = 0; i < count; ++i) {
    all.push_back(all[i]);
    all.back().window = 20;
    all.back().soft_cap = 3;
    all.back().sinks = true;
  }
  return all;
}

KernelCase automatic(const Step& step) {
  KernelCase use = step.use();
  use.numerics = Numerics::automatic;
  return use;
}

TEST(AttentionByTiles, IsAsExactAsInF32) {
  for (const Setting& plain : settings_for_tiles())
    for (const DType state : {DType::F16, DType::F32, DType::BF16, DType::Q8_0}) {
      if (test::kSanitized && state != DType::F16 && plain.heads != 6) continue;  // for time
      Setting setting = plain;
      set_cache(setting, state);
      const Step step = step_of(setting, 29);
      SCOPED_TRACE(step.use().text() + " window " + std::to_string(setting.window));
      const std::vector<double> expected = formula(step, static_cast<double>(0.3F));
      for_each_unit_of_attention([&](const CpuKernel& kernel) {
        EXPECT_LE(nmse(values_of(run_kernel(kernel, automatic(step), 3).output), expected),
                  info_of(Arithmetic::bf16x3).error);
      });
    }
}

TEST(AttentionByTiles, ResultsDoNotDependOnTheNumberOfThreads) {
  for (const Setting& setting : settings_for_tiles()) {
    const Step step = step_of(setting, 31);
    SCOPED_TRACE(step.use().text() + " window " + std::to_string(setting.window));
    for_each_unit_of_attention([&](const CpuKernel& kernel) {
      const auto expected = run_kernel(kernel, automatic(step), 1).output.bytes;
      for (const std::uint32_t threads : {3U, 13U})
        EXPECT_EQ(run_kernel(kernel, automatic(step), threads).output.bytes, expected) << threads;
    });
  }
}

// Scratch memory holds NaN at first, which must not reach the sums by way of weights that are zero.
TEST(AttentionByTiles, PositionsWithoutAPageAreLeftOut) {
  Setting setting{.heads = 4, .kv_heads = 2, .head_dim = 64, .page_tokens = 8, .sequence_pages = 16};
  setting.tokens = prompt(1, 100, 20);
  Step step = step_of(setting, 5);
  std::vector<double> pages = values_of(step.pages);
  for (const std::size_t hole : {16U, 18U, 24U, 25U, 26U, 27U, 28U}) pages[hole] = hole % 2 == 0 ? -1 : 1e9;
  step.pages = tensor_of(DType::I32, {kSequences, 16}, pages);
  const std::vector<double> expected = formula(step, static_cast<double>(0.3F));
  for_each_unit_of_attention([&](const CpuKernel& kernel) {
    for (const std::uint32_t threads : {1U, 3U})
      EXPECT_LE(nmse(values_of(run_kernel(kernel, automatic(step), threads).output), expected),
                info_of(Arithmetic::bf16x3).error);
  });
}

// A value that is not finite does not reach rows whose windows begin after it.
TEST(AttentionByTiles, ValuesBeforeAllWindowsAreLeftOut) {
  Setting setting{.heads = 4, .kv_heads = 2, .head_dim = 64, .sequence_pages = 8, .state = DType::F32, .window = 20};
  setting.tokens = prompt(1, 60, 24);
  Step step = step_of(setting, 37);
  const std::vector<double> expected = formula(step, static_cast<double>(0.3F));
  const auto page = static_cast<std::size_t>(values_of(step.pages)[8 + 2]);  // positions 32 to 47 of sequence 1
  for (std::size_t element = 0; element < 128; ++element)
    store_element(DType::F32, step.values.bytes.data(), (page * 16 + 8) * 128 + element, kNan);
  for_each_unit_of_attention([&](const CpuKernel& kernel) {
    EXPECT_LE(nmse(values_of(run_kernel(kernel, automatic(step), 3).output), expected),
              info_of(Arithmetic::bf16x3).error);
  });
}

TEST(AttentionByTiles, TheArithmeticFollowsNumericsAndShapes) {
  const Step step = step_of({.heads = 8, .kv_heads = 2, .head_dim = 64, .tokens = prompt(1, 0, 40)}, 3);
  const Step odd = step_of({.heads = 8, .kv_heads = 2, .head_dim = 48, .tokens = prompt(1, 0, 40)}, 3);
  const Step few = step_of({.heads = 8, .kv_heads = 2, .head_dim = 64, .tokens = prompt(1, 60, 2)}, 3);
  const auto arithmetic = [](const KernelCase& use) { return simd_attention().arithmetic(BoundCase(use).call()); };
  EXPECT_EQ(arithmetic(step.use()), Arithmetic::f32);
  EXPECT_EQ(arithmetic(automatic(odd)), Arithmetic::f32);
  EXPECT_EQ(arithmetic(automatic(few)), Arithmetic::f32);
  Setting exact_cache{.heads = 8, .kv_heads = 2, .head_dim = 64, .tokens = prompt(1, 0, 40), .state = DType::F32};
  EXPECT_EQ(arithmetic(automatic(step_of(exact_cache, 3))), Arithmetic::f32);
  EXPECT_EQ(arithmetic(automatic(step)), cpu_features().amx_bf16 ? Arithmetic::bf16x3 : Arithmetic::f32);
}

}  // namespace
}  // namespace shunt::test::attention_tests
#endif
