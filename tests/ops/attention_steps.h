// Steps of attention for its tests, and what they should give.
#pragma once

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>
#include <vector>

#include "ops/kernel_case.h"

namespace shunt::test::attention_tests {

inline constexpr std::uint32_t kSequences = 3;

struct Setting {
  std::uint32_t heads = 1;
  std::uint32_t kv_heads = 1;
  std::uint32_t head_dim = 16;
  std::uint32_t page_tokens = 16;
  std::uint32_t sequence_pages = 4;
  std::uint32_t sequences = kSequences;
  // The sequence and position of each token.
  std::vector<std::pair<int, int>> tokens{};
  DType state = DType::F16;
  DType query = DType::F32;
  float soft_cap = 0;
  std::uint32_t window = 0;
  bool sinks = false;
};

// Returns `count` consecutive tokens of one sequence.
inline std::vector<std::pair<int, int>> prompt(int sequence, int first, int count) {
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

// Sequences with shuffled pages, and a few pages that belong to none.
inline Step step_of(const Setting& setting, std::uint64_t seed) {
  const auto tokens = static_cast<std::uint32_t>(setting.tokens.size());
  const std::uint32_t pages = setting.sequences * setting.sequence_pages + 2;
  const Shape state{pages, setting.page_tokens, setting.kv_heads, setting.head_dim};
  std::vector<double> order(pages);
  std::iota(order.begin(), order.end(), 0.0);
  std::shuffle(order.begin(), order.end(), std::mt19937_64(seed));
  order.resize(std::size_t{setting.sequences} * setting.sequence_pages);
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
            .pages = tensor_of(DType::I32, {setting.sequences, setting.sequence_pages}, order)};
  step.keys.operand.kind = TensorKind::state;
  step.values.operand.kind = TensorKind::state;
  step.soft_cap = setting.soft_cap;
  step.window = setting.window;
  if (setting.sinks) step.sinks = random_tensor(DType::F32, {setting.heads}, seed + 4, -1, 6);
  return step;
}

// Two passes over all visible positions, straight from the definition.
inline std::vector<double> formula(const Step& step, double scale) {
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

inline std::vector<std::pair<int, int>> interleaved() {
  std::vector<std::pair<int, int>> tokens;
  for (int i = 0; i < 9; ++i) tokens.emplace_back(i % 3, 5 * i + i % 2);
  tokens.insert(tokens.begin() + 4, {{0, -1}, {-1, 3}, {3, 3}, {1, 1000}});
  return tokens;
}

inline std::vector<std::pair<int, int>> joined(std::vector<std::pair<int, int>> a,
                                               const std::vector<std::pair<int, int>>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline std::vector<Setting> settings() {
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
inline std::vector<Setting> settings_with_more() {
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

// Prompts with few threads, whose blocks have several slabs: also with slabs that begin within a token's heads, with
// all of a block's rows, and with tokens among them that see nothing.
inline std::vector<Setting> settings_of_several_slabs() {
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

// Makes the cache of another dtype, and its heads whole blocks.
inline void set_cache(Setting& setting, DType state) {
  const std::uint32_t block = info_of(state).block_elements;
  setting.state = state;
  setting.head_dim = (setting.head_dim + block - 1) / block * block;
}

// Steps of few tokens whose positions are split into parts: with as many rows as dot products take, with more, with
// several sequences of different length, and with more tokens than parts, and with a window.
inline std::vector<Setting> settings_of_several_parts() {
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

}  // namespace shunt::test::attention_tests
