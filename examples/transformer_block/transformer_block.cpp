// A transformer block built by hand: norm, grouped-query attention over a paged cache, norm, gated feed-forward; run
// token by token, with the cache as state that stays on the devices, and as one prompt. Both have to give the same.
//
//   transformer_block [DEVICES]
#include <fmt/format.h>

#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "shunt/computation.h"

namespace {

using namespace shunt;

constexpr std::uint32_t kTokens = 6;
constexpr std::uint32_t kWidth = 64;
constexpr std::uint32_t kHeads = 4;
constexpr std::uint32_t kKvHeads = 2;
constexpr std::uint32_t kHeadDim = 16;
constexpr std::uint32_t kHidden = 96;
constexpr std::uint32_t kPages = 2;
constexpr std::uint32_t kPageTokens = 4;

// The matrices of the block, which the graph's weights are read from.
struct Block {
  std::vector<std::vector<float>> values;
  MemoryWeights weights;

  Status add(std::string_view name, const Shape& shape) {
    std::vector<float>& made = values.emplace_back(shape.elements());
    for (std::size_t i = 0; i < made.size(); ++i)
      made[i] = std::sin(0.7F * static_cast<float>(i + 1) + static_cast<float>(values.size())) / 8;
    return weights.add(name, DType::F32, shape, std::as_bytes(std::span(made)));
  }
};

Result<std::unique_ptr<Block>> make_block() {
  auto block = std::make_unique<Block>();
  SHUNT_TRY(block->add("attn_norm", {kWidth}));
  SHUNT_TRY(block->add("query", {kHeads * kHeadDim, kWidth}));
  SHUNT_TRY(block->add("key", {kKvHeads * kHeadDim, kWidth}));
  SHUNT_TRY(block->add("value", {kKvHeads * kHeadDim, kWidth}));
  SHUNT_TRY(block->add("attn_output", {kWidth, kHeads * kHeadDim}));
  SHUNT_TRY(block->add("ffn_norm", {kWidth}));
  SHUNT_TRY(block->add("gate", {kHidden, kWidth}));
  SHUNT_TRY(block->add("up", {kHidden, kWidth}));
  SHUNT_TRY(block->add("down", {kWidth, kHidden}));
  return block;
}

// The graph of a step of `tokens` tokens.
Result<Graph> build(const MemoryWeights& weights, std::uint32_t tokens) {
  GraphBuilder graph;
  const auto weight = [&](std::string_view name) {
    for (const WeightInfo& info : weights.weights())
      if (info.name == name) return graph.weight(name, info.dtype, info.shape);
    return Tensor{};
  };
  const auto heads = [&](Tensor x, std::uint32_t count) {
    return graph.reshape(x, {{Attr::dims, Shape{tokens, count, kHeadDim}}});
  };
  const Tensor x = graph.input("x", DType::F32, {tokens, kWidth});
  const Tensor positions = graph.input("positions", DType::I32, {tokens});
  const Tensor sequences = graph.input("sequences", DType::I32, {tokens});
  const Tensor pages = graph.input("pages", DType::I32, {1, kPages});
  const Shape cache{kPages, kPageTokens, kKvHeads, kHeadDim};

  const Tensor a = graph.rms_norm_mul(x, weight("attn_norm"));
  const Tensor query = graph.rotary(heads(graph.linear(a, weight("query")), kHeads), positions, {});
  const Tensor key = graph.rotary(heads(graph.linear(a, weight("key")), kKvHeads), positions, {});
  const Tensor value = heads(graph.linear(a, weight("value")), kKvHeads);
  const Tensor keys = graph.cache_write(graph.state("keys", DType::F32, cache), key, positions, sequences, pages);
  const Tensor values = graph.cache_write(graph.state("values", DType::F32, cache), value, positions, sequences, pages);
  const Tensor mixed = graph.attention(query, keys, values, positions, sequences, pages, {},
                                       {{Attr::scale, 1.0F / std::sqrt(static_cast<float>(kHeadDim))}});
  const Tensor flat = graph.reshape(mixed, {{Attr::dims, Shape{tokens, kHeads * kHeadDim}}});
  const Tensor y = graph.linear_add(flat, weight("attn_output"), x);
  const Tensor b = graph.rms_norm_mul(y, weight("ffn_norm"));
  const Tensor hidden = graph.swiglu(graph.linear(b, weight("gate")), graph.linear(b, weight("up")));
  graph.output(graph.linear_add(hidden, weight("down"), y));
  return std::move(graph).finish();
}

template <class T>
Status write(Computation& computation, std::string_view input, const std::vector<T>& values) {
  return computation.write(input, std::as_bytes(std::span(values)));
}

// Rows [tokens, kWidth] that follow the first `done` ones of the sequence.
Status step(Computation& computation, std::span<const float> rows, std::uint32_t done, std::span<float> out) {
  const auto tokens = static_cast<std::uint32_t>(rows.size() / kWidth);
  std::vector<std::int32_t> positions;
  for (std::uint32_t i = 0; i < tokens; ++i) positions.push_back(static_cast<std::int32_t>(done + i));
  SHUNT_TRY(computation.write("x", std::as_bytes(rows)));
  SHUNT_TRY(write(computation, "positions", positions));
  SHUNT_TRY(write(computation, "sequences", std::vector<std::int32_t>(tokens, 0)));
  SHUNT_TRY(write(computation, "pages", std::vector<std::int32_t>{0, 1}));
  SHUNT_TRY(computation.run());
  return computation.read(0, 0, std::as_writable_bytes(out));
}

Status run(const std::string& devices) {
  SHUNT_TRY_ASSIGN(const auto runtime, Runtime::create({.devices = devices}));
  SHUNT_TRY_ASSIGN(const auto block, make_block());
  std::vector<float> x(kTokens * kWidth);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::cos(1.3F * static_cast<float>(i));

  SHUNT_TRY_ASSIGN(Graph prompt, build(block->weights, kTokens));
  SHUNT_TRY_ASSIGN(const auto at_once, Computation::create(std::move(prompt), *runtime, &block->weights));
  std::vector<float> whole(x.size());
  SHUNT_TRY(step(*at_once, x, 0, whole));
  fmt::print("{}", at_once->explain());

  SHUNT_TRY_ASSIGN(Graph single, build(block->weights, 1));
  SHUNT_TRY_ASSIGN(const auto one_by_one, Computation::create(std::move(single), *runtime, &block->weights));
  float largest = 0;
  for (std::uint32_t token = 0; token < kTokens; ++token) {
    std::vector<float> row(kWidth);
    SHUNT_TRY(step(*one_by_one, std::span(x).subspan(std::size_t{token} * kWidth, kWidth), token, row));
    for (std::size_t i = 0; i < kWidth; ++i)
      largest = std::fmax(largest, std::fabs(row[i] - whole[std::size_t{token} * kWidth + i]));
  }
  fmt::print("largest difference between one prompt and token by token: {:.1e}\n", largest);
  if (!(largest < 1e-3F)) return fail(Code::internal, "that is too much");
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  const Status status = run(count > 1 ? arguments[1] : "");
  if (!status) std::fprintf(stderr, "transformer_block: %s\n", status.error().message.c_str());
  return status ? 0 : 1;
}
