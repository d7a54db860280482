#include <algorithm>
#include <cmath>

#include "ops/attention_steps.h"
#include "ops/each_target.h"
#include "sanitized.h"

namespace shunt::test::attention_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("attention").scalar; }
const CpuKernel& simd() { return *cpu_family("attention").simd; }

TEST(Attention, SinksSoftCapAndWindowAreAsTheFormulaSays) {
  for (const Setting& setting : settings_with_more()) {
    const Step step = step_of(setting, 13);
    SCOPED_TRACE(step.use().text() + " window " + std::to_string(setting.window) + " soft cap " +
                 std::to_string(setting.soft_cap) + (setting.sinks ? " sinks" : ""));
    const std::vector<double> expected = formula(step, static_cast<double>(0.3F));
    EXPECT_LE(nmse(values_of(run_kernel(scalar(), step.use(), 2).output), expected), 1e-13);
    for_each_simd_target([&] {
      for (const std::uint32_t threads : {1U, 3U}) {
        const KernelResult result = run_kernel(simd(), step.use(), threads);
        ASSERT_EQ(result.declined, "");
        EXPECT_LE(nmse(values_of(result.output), expected), info_of(Op::attention).tolerance);
      }
    });
  }
}

TEST(Attention, BlocksOfSeveralSlabsAreAsTheFormulaSays) {
  for (const Setting& plain : settings_of_several_slabs())
    for (const std::uint32_t window : {0U, 20U, 100U}) {
      Setting setting = plain;
      setting.window = window;
      setting.soft_cap = window == 20 ? 3.0F : 0.0F;
      const Step step = step_of(setting, 17);
      SCOPED_TRACE(step.use().text() + " window " + std::to_string(window));
      const std::vector<double> expected = formula(step, static_cast<double>(0.3F));
      for_each_simd_target([&] {
        for (const std::uint32_t threads : {1U, 2U})
          EXPECT_LE(nmse(values_of(run_kernel(simd(), step.use(), threads).output), expected),
                    info_of(Op::attention).tolerance);
      });
    }
}

TEST(Attention, PartsOfPositionsAreMerged) {
  for (const Setting& plain : settings_of_several_parts())
    for (const DType state : {DType::F16, DType::Q8_0, DType::F32}) {
      if (test::kSanitized && state == DType::F32) continue;  // for time: F16 takes the same way
      Setting setting = plain;
      set_cache(setting, state);
      const Step step = step_of(setting, 23);
      SCOPED_TRACE(step.use().text() + " window " + std::to_string(setting.window));
      const std::vector<double> expected = formula(step, static_cast<double>(0.3F));
      for_each_simd_target([&] {
        for (const std::uint32_t threads : {1U, 5U})
          EXPECT_LE(nmse(values_of(run_kernel(simd(), step.use(), threads).output), expected),
                    info_of(Op::attention).tolerance);
      });
    }
}

// Blocks have as many tokens, and groups as many heads, as the number of threads suggests.
TEST(Attention, ResultsDoNotDependOnTheNumberOfThreads) {
  std::vector<Setting> all = settings_of_several_parts();
  const Setting many{
      .heads = 4, .kv_heads = 4, .head_dim = 80, .page_tokens = 5, .sequence_pages = 30, .tokens = prompt(2, 17, 130)};
  all.push_back(many);
  all.push_back(many);
  all.back().window = 20;
  // Blocks of other tokens end with few rows.
  all.push_back(many);
  all.back().kv_heads = 2;
  all.back().tokens = joined(prompt(2, 0, 49), prompt(0, 0, 50));
  all.push_back(all.back());
  all.back().tokens = joined(prompt(2, 50, 2), prompt(0, 0, 31));
  for (const Setting& setting : all) {
    const Step step = step_of(setting, 19);
    SCOPED_TRACE(step.use().text() + " window " + std::to_string(setting.window));
    for_each_simd_target([&] {
      const auto expected = run_kernel(simd(), step.use(), 1).output.bytes;
      for (const std::uint32_t threads : {2U, 3U, 13U, 64U})
        EXPECT_EQ(run_kernel(simd(), step.use(), threads).output.bytes, expected) << threads;
    });
  }
}

TEST(Attention, ASinkThatIsNoNumberIsLeftOut) {
  for (const int tokens : {1, 20}) {
    Step step = step_of({.heads = 4, .kv_heads = 2, .head_dim = 24, .tokens = prompt(0, 30, tokens)}, 5);
    step.sinks = tensor_of(DType::F32, {4}, {1, kNan, -kInfinity, 2});
    const std::vector<double> expected = values_of(run_kernel(scalar(), step.use()).output);
    for (const double value : expected) EXPECT_TRUE(std::isfinite(value));
    for_each_simd_target([&] {
      EXPECT_LE(nmse(values_of(run_kernel(simd(), step.use(), 2).output), expected), info_of(Op::attention).tolerance);
    });
  }
}

TEST(Attention, EachAdditionChangesTheResult) {
  const Setting plain{.heads = 4, .kv_heads = 2, .head_dim = 40, .tokens = prompt(0, 30, 12)};
  Setting window = plain;
  window.window = 30;
  Setting capped = plain;
  capped.soft_cap = 1;
  Setting sinks = plain;
  sinks.sinks = true;
  const std::vector<double> without = values_of(run_kernel(scalar(), step_of(plain, 3).use()).output);
  for (const Setting& setting : {window, capped, sinks})
    EXPECT_GT(nmse(values_of(run_kernel(scalar(), step_of(setting, 3).use()).output), without), 1e-4);
}

TEST(Attention, ASinkAloneGivesZeros) {
  Step step = step_of({.heads = 2, .kv_heads = 2, .head_dim = 24, .tokens = {{0, -1}, {-1, 3}}, .sinks = true}, 5);
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const double value : values_of(run_kernel(*kernel, step.use(), 2).output)) EXPECT_EQ(value, 0);
  });
}

TEST(Attention, ScalarIsTheFormula) {
  for (const Setting& plain : settings())
    for (const DType state : cache_dtypes()) {
      Setting setting = plain;
      set_cache(setting, state);
      const Step step = step_of(setting, 7);
      const KernelResult result = run_kernel(scalar(), step.use(), 2);
      ASSERT_EQ(result.declined, "");
      EXPECT_LE(nmse(values_of(result.output), formula(step, static_cast<double>(0.3F))), 1e-13) << step.use().text();
    }
}

TEST(Attention, SimdAgreesWithScalarOnEveryTarget) {
  for_each_simd_target([] {
    for (const Setting& plain : settings())
      for (const auto& [state, query] : {std::pair{DType::F32, DType::F32},
                                         {DType::F16, DType::F32},
                                         {DType::BF16, DType::F16},
                                         {DType::Q8_0, DType::F32}}) {
        Setting setting = plain;
        set_cache(setting, state);
        setting.query = query;
        const Step step = step_of(setting, 11);
        const std::vector<double> reference = values_of(run_kernel(scalar(), step.use()).output);
        for (const std::uint32_t threads : {1U, 2U, 3U, 13U}) {
          if (test::kSanitized && threads != 3) continue;
          SCOPED_TRACE(step.use().text() + " threads " + std::to_string(threads));
          const KernelResult result = run_kernel(simd(), step.use(), threads);
          ASSERT_EQ(result.declined, "");
          EXPECT_LE(nmse(values_of(result.output), reference), info_of(Op::attention).tolerance);
        }
      }
  });
}

// Scores so far apart that the running maximum must be rescaled and weights vanish.
TEST(Attention, LargeScoresDoNotOverflow) {
  const Step step = step_of({.heads = 2, .kv_heads = 1, .head_dim = 64, .tokens = prompt(0, 20, 40)}, 3);
  for_each_simd_target([&] {
    const std::vector<double> reference = values_of(run_kernel(scalar(), step.use(50)).output);
    EXPECT_LE(nmse(values_of(run_kernel(simd(), step.use(50)).output), reference), 1e-8);
    for (const double value : reference) EXPECT_TRUE(std::isfinite(value));
  });
}

TEST(Attention, PositionsWithoutAPageAreLeftOut) {
  for (const std::uint32_t tokens : {1U, 20U}) {
    Setting setting{.heads = 4, .kv_heads = 2, .head_dim = 40, .page_tokens = 8, .sequence_pages = 16};
    setting.tokens = prompt(1, 100, static_cast<int>(tokens));
    Step step = step_of(setting, 5);
    std::vector<double> pages = values_of(step.pages);
    // The last five hold positions 64 to 103 of the sequence, across the end of a tile.
    for (const std::size_t hole : {16U, 18U, 24U, 25U, 26U, 27U, 28U}) pages[hole] = hole % 2 == 0 ? -1 : 1e9;
    step.pages = tensor_of(DType::I32, {kSequences, 16}, pages);
    const std::vector<double> expected = formula(step, static_cast<double>(0.3F));
    for_each_simd_target([&] {
      for (const CpuKernel* kernel : {&scalar(), &simd()})
        for (const std::uint32_t threads : {1U, 3U})
          EXPECT_LE(nmse(values_of(run_kernel(*kernel, step.use(), threads).output), expected), 1e-10);
    });
  }
}

TEST(Attention, TokensThatSeeNothingAreZero) {
  Setting setting{.heads = 2, .kv_heads = 2, .head_dim = 24};
  setting.tokens = joined(joined(prompt(-1, 5, 3), prompt(3, 5, 30)), {{0, -1}, {0, -2147483647}, {2147483647, 1}});
  Step step = step_of(setting, 5);
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const double value : values_of(run_kernel(*kernel, step.use(), 2).output)) EXPECT_EQ(value, 0);
  });
}

TEST(Attention, TokensPastTheValidOnesAreLeftAlone) {
  const Setting setting{.heads = 4, .kv_heads = 2, .head_dim = 20, .tokens = prompt(0, 3, 32)};
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      for (const std::uint32_t tokens : {0U, 1U, 5U, 31U, 32U})
        for (std::uint32_t threads = 1; threads <= 3; ++threads) {
          Step step = step_of(setting, 5);
          step.query = bucket(step.query);
          KernelCase use = step.use();
          use.parameters.tokens = tokens;
          SCOPED_TRACE(use.text());
          const KernelResult result = run_kernel(*kernel, use, threads);
          EXPECT_TRUE(rows_are_untouched(result.output, tokens));
          std::vector<double> expected = formula(step, static_cast<double>(0.3F));
          expected.resize(expected.size() / 32 * tokens);
          EXPECT_LE(nmse(leading_values(result.output, tokens), expected), 1e-10);
        }
  });
}

TEST(Attention, StridedQueriesAreReadAlike) {
  Step step = step_of({.heads = 4, .kv_heads = 2, .head_dim = 20, .tokens = prompt(0, 3, 32)}, 9);
  Step across = step;
  across.query = tensor_of(DType::F32, {20, 32, 4});
  const std::vector<double> values = values_of(step.query);
  for (std::size_t i = 0; i < values.size(); ++i)
    store_element(DType::F32, across.query.bytes.data(), i % 20 * 128 + i / 20, values[i]);
  across.query = permuted(across.query, {1, 2, 0});
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar(), &simd()})
      EXPECT_EQ(run_kernel(*kernel, across.use()).output.bytes, run_kernel(*kernel, step.use()).output.bytes);
  });
}

TEST(Attention, StridedStateIsDeclined) {
  Step step = step_of({.heads = 2, .kv_heads = 2, .head_dim = 16, .tokens = prompt(0, 3, 2)}, 9);
  step.keys = permuted(step.keys, {1, 0, 2, 3});
  step.values = permuted(step.values, {1, 0, 2, 3});
  for (const CpuKernel* kernel : {&scalar(), &simd()})
    EXPECT_EQ(run_kernel(*kernel, step.use()).declined, "needs contiguous keys and values");
}

}  // namespace
}  // namespace shunt::test::attention_tests
