// Attention on tensor cores, for each size of heads and each dtype of the cache that it reads.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "ops/arithmetic.h"
#include "ops/cuda.h"
#include "shunt/computation.h"
#include "simulated/simulated.h"

namespace shunt::simulated {
namespace {

constexpr std::uint32_t kHeads = 4;
constexpr std::uint32_t kKvHeads = 2;
constexpr std::uint32_t kPageTokens = 8;
constexpr std::uint32_t kPages = 10;

struct HeadUse {
  std::uint32_t head_dim;
  DType cache;
  std::uint32_t tokens;
  Numerics numerics;
};

std::string text_of(const HeadUse& use) {
  return fmt::format("heads of {}, cache {}, {} tokens, {}", use.head_dim, name_of(use.cache), use.tokens,
                     name_of(use.numerics));
}

std::vector<float> random_numbers(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-2, 2);
  std::vector<float> numbers(count);
  for (float& x : numbers) x = number(random);
  return numbers;
}

// Writes the keys and values of a prompt to the cache, and returns what its tokens get of them.
std::vector<float> attention_on(const char* device, const HeadUse& use) {
  const Shape cache{kPages, kPageTokens, kKvHeads, use.head_dim};
  GraphBuilder builder;
  const Tensor query = builder.input("query", DType::F32, {use.tokens, kHeads, use.head_dim});
  const Tensor positions = builder.input("positions", DType::I32, {use.tokens});
  const Tensor sequences = builder.input("sequences", DType::I32, {use.tokens});
  const Tensor pages = builder.input("pages", DType::I32, {1, kPages});
  const auto written = [&](const char* name) {
    const Tensor x = builder.input(std::string(name) + ".new", DType::F32, {use.tokens, kKvHeads, use.head_dim});
    return builder.cache_write(builder.state(name, use.cache, cache), x, positions, sequences, pages);
  };
  const Tensor keys = written("keys");
  const Tensor values = written("values");
  builder.output(builder.attention(query, keys, values, positions, sequences, pages, {}, {{Attr::scale, 0.125F}}));
  const auto runtime = Runtime::create({.threads = 1, .devices = device, .calibrated = false});
  const auto computation = Computation::create(*std::move(builder).finish(), **runtime, nullptr,
                                               {.strategy = Strategy::gpu, .numerics = use.numerics});
  EXPECT_TRUE(computation.has_value()) << computation.error().message;
  if (!computation) return {};
  const auto write = [&](const char* name, const auto& numbers) {
    EXPECT_TRUE((*computation)->write(name, std::as_bytes(std::span(numbers))).has_value());
  };
  std::vector<std::int32_t> places(use.tokens);
  for (std::uint32_t i = 0; i < use.tokens; ++i) places[i] = static_cast<std::int32_t>(i);
  write("query", random_numbers(std::size_t{use.tokens} * kHeads * use.head_dim, 1));
  write("keys.new", random_numbers(std::size_t{use.tokens} * kKvHeads * use.head_dim, 2));
  write("values.new", random_numbers(std::size_t{use.tokens} * kKvHeads * use.head_dim, 3));
  write("positions", places);
  write("sequences", std::vector<std::int32_t>(use.tokens, 0));
  write("pages", std::vector<std::int32_t>{7, 3, 9, 0, 5, 1, 8, 2, 6, 4});
  const Status done = (*computation)->run();
  EXPECT_TRUE(done.has_value()) << done.error().message;
  std::vector<float> result(std::size_t{use.tokens} * kHeads * use.head_dim);
  EXPECT_TRUE((*computation)->read(0, 0, std::as_writable_bytes(std::span(result))).has_value());
  return result;
}

double error_of(const std::vector<float>& result, const std::vector<float>& expected) {
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const double wanted = static_cast<double>(expected[i]);
    error += (static_cast<double>(result[i]) - wanted) * (static_cast<double>(result[i]) - wanted);
    power += wanted * wanted;
  }
  return error / power;
}

const CudaGpu kGpuOf90{.capability = 90, .multiprocessors = 132, .shared_bytes = 227U << 10U};

// Returns what `get` says of the call.
template <class Get>
auto of_call(const HeadUse& use, const Get& get) {
  const Operand query = Operand::contiguous(DType::F32, {use.tokens, kHeads, use.head_dim});
  const Operand cache =
      Operand::contiguous(use.cache, {kPages, kPageTokens, kKvHeads, use.head_dim}, TensorKind::state);
  const Operand places = Operand::contiguous(DType::I32, {use.tokens});
  const Operand pages = Operand::contiguous(DType::I32, {1, kPages});
  const Operand* const inputs[] = {&query, &cache, &cache, &places, &places, &pages};
  const Attributes attributes{{Attr::scale, 0.125F}};
  return get(OpCall{
      .op = Op::attention, .attributes = &attributes, .inputs = inputs, .output = &query, .numerics = use.numerics});
}

// Returns the kernel that an H100 takes by rule.
std::string kernel_of(const HeadUse& use) {
  return of_call(use, [](const OpCall& call) { return choose_cuda(call, kGpuOf90).main.name; });
}

// Returns the kernels that it could take.
std::vector<std::string_view> candidates_of(const HeadUse& use) {
  return of_call(use, [](const OpCall& call) {
    std::vector<std::string_view> names;
    for (const KernelCandidate& each : cuda_candidates(call, kGpuOf90, Layout::rows)) names.push_back(each.name);
    return names;
  });
}

class TensorCoreAttention : public testing::TestWithParam<std::uint32_t> {};

TEST_P(TensorCoreAttention, GivesTheReferencesResult) {
  const Simulation simulation;
  const std::uint32_t head_dim = GetParam();
  for (const DType cache : {DType::F16, DType::BF16, DType::Q8_0}) {
    if (head_dim % info_of(cache).block_elements != 0) continue;
    const std::string_view dtype = name_of(cache);
    const HeadUse few{head_dim, cache, 5, Numerics::exact};
    const HeadUse many{head_dim, cache, 70, Numerics::automatic};
    EXPECT_EQ(kernel_of(few), fmt::format("shunt_attention_split_{}_{}", head_dim, dtype));
    EXPECT_EQ(kernel_of(many), fmt::format("shunt_attention_tile_{}_{}_halves", head_dim, dtype));
    for (const HeadUse& use : {few, many}) {
      SCOPED_TRACE(text_of(use));
      const Arithmetic arithmetic = use.numerics == Numerics::exact ? Arithmetic::f32 : Arithmetic::halves;
      EXPECT_LE(error_of(attention_on("cuda:0", use), attention_on("cpu:scalar", use)), info_of(arithmetic).error);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Heads, TensorCoreAttention, testing::Values(64U, 80U, 96U, 112U, 128U, 192U, 256U),
                         testing::PrintToStringParamName());

TEST(TensorCoreAttention, OfBlocksWithExactNumericsIsLeftToOtherKernels) {
  EXPECT_EQ(kernel_of({128, DType::Q8_0, 70, Numerics::exact}), "shunt_attention_row_Q8_0_16");
  EXPECT_EQ(kernel_of({160, DType::Q8_0, 5, Numerics::exact}), "shunt_attention_row_Q8_0_32");
  EXPECT_EQ(kernel_of({288, DType::Q8_0, 5, Numerics::exact}), "shunt_attention");
}

TEST(TensorCoreAttention, HasSeveralKernelsForAnyNumberOfTokens) {
  using Names = std::vector<std::string_view>;
  for (const std::uint32_t tokens : {1U, 16U, 64U})
    EXPECT_EQ(candidates_of({128, DType::F16, tokens, Numerics::automatic}),
              (Names{"attention_split", "attention_tile", "attention_row"}));
  EXPECT_EQ(candidates_of({128, DType::F16, 70, Numerics::automatic}),
            (Names{"attention_tile", "attention_row", "attention_split"}));
  EXPECT_EQ(candidates_of({128, DType::Q8_0, 70, Numerics::exact}), (Names{"attention_row", "attention_split"}));
  EXPECT_EQ(candidates_of({288, DType::F16, 16, Numerics::automatic}), Names());
}

}  // namespace
}  // namespace shunt::simulated
