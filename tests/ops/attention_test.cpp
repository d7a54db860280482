#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

#include "ops/each_target.h"
#include "ops/kernel_case.h"
#include "sanitized.h"

namespace shunt::test::attention_tests {
namespace {

const CpuKernel& scalar() { return *cpu_family("attention").scalar; }
const CpuKernel& simd() { return *cpu_family("attention").simd; }

struct Setting {
  std::uint32_t heads = 1;
  std::uint32_t kv_heads = 1;
  std::uint32_t head_dim = 16;
  std::uint32_t page_tokens = 16;
  std::uint32_t sequence_pages = 4;
  // The sequence and position of each token.
  std::vector<std::pair<int, int>> tokens{};
  DType state = DType::F16;
  DType query = DType::F32;
  float soft_cap = 0;
  std::uint32_t window = 0;
  bool sinks = false;
};

// Returns `count` consecutive tokens of one sequence.
std::vector<std::pair<int, int>> prompt(int sequence, int first, int count) {
  std::vector<std::pair<int, int>> tokens;
  for (int i = 0; i < count; ++i) tokens.emplace_back(sequence, first + i);
  return tokens;
}

struct Step {
  Tensor query;
  Tensor keys;
  Tensor values;
  Tensor positions;
  Tensor sequences;
  Tensor pages;
  Tensor sinks{};  // absent if of rank 0
  float soft_cap = 0;
  std::uint32_t window = 0;

  [[nodiscard]] bool has_sinks() const { return sinks.operand.shape.rank() != 0; }
  [[nodiscard]] KernelCase use(float scale = 0.3F) const {
    KernelCase use{Op::attention,
                   {&query, &keys, &values, &positions, &sequences, &pages},
                   {{Attr::scale, scale}, {Attr::soft_cap, soft_cap}, {Attr::window, window}}};
    if (has_sinks()) use.inputs.push_back(&sinks);
    return use;
  }
};

constexpr std::uint32_t kSequences = 3;

// Three sequences with shuffled pages, and a few pages that belong to none.
Step step_of(const Setting& setting, std::uint64_t seed) {
  const auto tokens = static_cast<std::uint32_t>(setting.tokens.size());
  const std::uint32_t pages = kSequences * setting.sequence_pages + 2;
  const Shape state{pages, setting.page_tokens, setting.kv_heads, setting.head_dim};
  std::vector<double> order(pages);
  std::iota(order.begin(), order.end(), 0.0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  order.resize(std::size_t{kSequences} * setting.sequence_pages);
  std::vector<double> positions;
  std::vector<double> sequences;
  for (const auto& [sequence, position] : setting.tokens) {
    sequences.push_back(sequence);
    positions.push_back(position);
  }
  Step step{.query = random_tensor(setting.query, {tokens, setting.heads, setting.head_dim}, seed + 1),
            .keys = random_tensor(setting.state, state, seed + 2),
            .values = random_tensor(setting.state, state, seed + 3),
            .positions = tensor_of(DType::I32, {tokens}, positions),
            .sequences = tensor_of(DType::I32, {tokens}, sequences),
            .pages = tensor_of(DType::I32, {kSequences, setting.sequence_pages}, order)};
  step.keys.operand.kind = TensorKind::state;
  step.values.operand.kind = TensorKind::state;
  step.soft_cap = setting.soft_cap;
  step.window = setting.window;
  if (setting.sinks) step.sinks = random_tensor(DType::F32, {setting.heads}, seed + 4, -1, 6);
  return step;
}

// Two passes over all visible positions, straight from the definition.
std::vector<double> formula(const Step& step, double scale) {
  const std::vector<double> query = values_of(step.query);
  const std::vector<double> keys = values_of(step.keys);
  const std::vector<double> values = values_of(step.values);
  const std::vector<double> positions = values_of(step.positions);
  const std::vector<double> sequences = values_of(step.sequences);
  const std::vector<double> pages = values_of(step.pages);
  const Shape& state = step.keys.operand.shape;
  const std::size_t heads = step.query.operand.shape[1];
  const std::size_t dim = state[3];
  const auto sequence_pages = static_cast<double>(step.pages.operand.shape[1]);
  std::vector<double> result(query.size(), 0.0);
  for (std::size_t row = 0; row < step.query.operand.shape.rows(); ++row) {
    const double sequence = sequences[row / heads];
    if (sequence < 0 || sequence >= step.pages.operand.shape[0]) continue;
    std::vector<std::pair<double, std::size_t>> seen;  // weight, and first element of the row
    double sum = 0;
    const double position = positions[row / heads];
    if (step.has_sinks()) sum = std::exp(values_of(step.sinks)[row % heads]);
    for (double at = 0; at <= position && at < sequence_pages * state[1]; ++at) {
      const double page = pages[static_cast<std::size_t>(sequence * sequence_pages + std::floor(at / state[1]))];
      if (page < 0 || page >= state[0]) continue;
      if (step.window != 0 && at <= position - step.window) continue;
      const std::size_t kv_head = row % heads / (heads / state[2]);
      const std::size_t slot = static_cast<std::size_t>(page * state[1] + std::fmod(at, state[1]));
      const std::size_t begin = (slot * state[2] + kv_head) * dim;
      double score = 0;
      for (std::size_t i = 0; i < dim; ++i) score += query[row * dim + i] * keys[begin + i];
      score *= scale;
      const double cap = static_cast<double>(step.soft_cap);
      if (cap > 0) score = cap * std::tanh(score / cap);
      seen.emplace_back(std::exp(score), begin);
      sum += seen.back().first;
    }
    for (const auto& [weight, begin] : seen)
      for (std::size_t i = 0; i < dim; ++i) result[row * dim + i] += weight / sum * values[begin + i];
  }
  return result;
}

std::vector<std::pair<int, int>> interleaved() {
  std::vector<std::pair<int, int>> tokens;
  for (int i = 0; i < 9; ++i) tokens.emplace_back(i % 3, 5 * i + i % 2);
  tokens.insert(tokens.begin() + 4, {{0, -1}, {-1, 3}, {3, 3}, {1, 1000}});
  return tokens;
}

std::vector<std::pair<int, int>> joined(std::vector<std::pair<int, int>> a, const std::vector<std::pair<int, int>>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Setting> settings() {
  return {
      {.tokens = prompt(0, 0, 1)},
      {.heads = 8, .kv_heads = 2, .head_dim = 64, .tokens = prompt(1, 0, 40)},
      {.heads = 8, .kv_heads = 2, .head_dim = 64, .tokens = prompt(1, 63, 1)},
      {.heads = 4, .kv_heads = 4, .head_dim = 80, .page_tokens = 5, .sequence_pages = 30, .tokens = prompt(2, 17, 130)},
      {.heads = 6, .kv_heads = 2, .head_dim = 33, .page_tokens = 1, .sequence_pages = 70, .tokens = prompt(0, 66, 3)},
      {.heads = 6, .kv_heads = 3, .head_dim = 96, .page_tokens = 64, .sequence_pages = 4, .tokens = prompt(2, 200, 50)},
      {.heads = 2, .kv_heads = 1, .head_dim = 1, .page_tokens = 7, .sequence_pages = 9, .tokens = prompt(2, 0, 60)},
      {.heads = 5, .kv_heads = 1, .head_dim = 128, .tokens = prompt(2, 60, 1)},
      {.heads = 64, .kv_heads = 1, .head_dim = 24, .tokens = prompt(2, 10, 2)},
      {.heads = 3, .kv_heads = 3, .head_dim = 40, .tokens = interleaved()},
      {.heads = 4, .kv_heads = 2, .head_dim = 48, .tokens = joined(prompt(0, 3, 20), prompt(2, 30, 25))},
      {.heads = 2, .kv_heads = 2, .head_dim = 32, .tokens = {}},
  };
}

// The same with features of some architectures, one at a time and all at once.
std::vector<Setting> settings_with_more() {
  std::vector<Setting> all;
  for (const Setting& plain : settings()) {
    for (const std::uint32_t window : {1U, 70U}) {
      all.push_back(plain);
      all.back().window = window;
    }
    all.push_back(plain);
    all.back().soft_cap = 1.5F;
    all.push_back(plain);
    all.back().sinks = true;
    all.push_back(plain);
    all.back().window = 20;
    all.back().soft_cap = 3;
    all.back().sinks = true;
  }
  return all;
}

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

// Prompts with few threads, whose blocks have several slabs: also with slabs that begin within a token's heads, with
// all of a block's rows, and with tokens among them that see nothing.
std::vector<Setting> settings_of_several_slabs() {
  std::vector<std::pair<int, int>> blind = prompt(0, 10, 60);
  for (const std::size_t token : {3U, 7U, 8U}) blind[token].second = -1;
  blind[12].second = 100000;
  std::swap(blind[20], blind[41]);
  return {
      {.heads = 10,
       .kv_heads = 2,
       .head_dim = 100,
       .page_tokens = 7,
       .sequence_pages = 40,
       .tokens = prompt(0, 90, 73)},
      {.heads = 32, .kv_heads = 1, .head_dim = 32, .tokens = prompt(1, 0, 17)},
      {.heads = 2,
       .kv_heads = 2,
       .head_dim = 160,
       .page_tokens = 16,
       .sequence_pages = 14,
       .tokens = prompt(0, 0, 197)},
      {.heads = 4, .kv_heads = 2, .head_dim = 24, .page_tokens = 16, .sequence_pages = 8, .tokens = blind},
  };
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

// Makes the cache of another dtype, and its heads whole blocks.
void set_cache(Setting& setting, DType state) {
  const std::uint32_t block = info_of(state).block_elements;
  setting.state = state;
  setting.head_dim = (setting.head_dim + block - 1) / block * block;
}

// Steps of few tokens whose positions are split into parts: with as many rows as dot products take, with more, with
// several sequences of different length, and with more tokens than parts, and with a window.
std::vector<Setting> settings_of_several_parts() {
  Setting all{.heads = 8, .kv_heads = 2, .head_dim = 64, .page_tokens = 32, .sequence_pages = 40};
  all.tokens = {{0, 1200}};
  Setting rows8 = all;
  rows8.kv_heads = 1;
  Setting many = all;
  many.tokens = prompt(1, 900, 12);
  Setting sequences = all;
  sequences.head_dim = 48;
  sequences.tokens = {{0, 3}, {2, 1100}, {1, 500}, {1, 501}, {2, -1}, {0, 800}};
  Setting batch = all;
  batch.kv_heads = 8;
  for (int i = 0; i < 40; ++i) batch.tokens.emplace_back(i % 3, 600 + 10 * i);
  std::vector<Setting> settings{all, rows8, many, sequences, batch};
  const std::size_t count = settings.size();
  for (std::size_t i = 0; i < count; ++i) {
    settings.push_back(settings[i]);
    settings.back().window = 450;
    settings.back().soft_cap = 3;
    settings.back().sinks = true;
  }
  // Together they see far more than their window.
  settings.push_back(all);
  settings.back().tokens = {{1, 100}, {1, 1200}};
  settings.back().window = 20;
  return settings;
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
