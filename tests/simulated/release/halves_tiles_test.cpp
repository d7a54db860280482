// Products of many rows by matrix instructions, whose tiles have all sizes, and whose weights have all magnitudes.
#include <gtest/gtest.h>

#include <bit>
#include <string>
#include <vector>

#include "ops/cuda.h"
#include "shunt/computation.h"
#include "simulated/simulated.h"

namespace shunt::simulated {
namespace {

constexpr std::uint32_t kXColumns = 192;

struct TileCase {
  std::uint32_t tokens;
  std::uint32_t rows;  // of the weight
  bool gated;          // there are gate and up
  std::string x_rows;  // of a tile
};

// Returns the kernel for a weight of so many rows.
std::string halves_kernel_for(std::uint32_t tokens, std::uint32_t rows) {
  const Operand x = Operand::contiguous(DType::F32, {tokens, kXColumns});
  const Operand weight = Operand::contiguous(DType::BF16, {rows, kXColumns}, TensorKind::weight);
  const Operand result = Operand::contiguous(DType::F32, {tokens, rows});
  const Operand* const inputs[] = {&x, &weight};
  const Attributes none;
  return choose_cuda({.op = Op::linear,
                      .attributes = &none,
                      .inputs = inputs,
                      .output = &result,
                      .numerics = Numerics::automatic},
                     {.capability = 80, .multiprocessors = 108, .shared_bytes = 163U << 10U})
      .main.name;
}

std::uint16_t bf16_of(float value) { return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U); }

// Returns rows whose elements are 2^-40, 1 or 2^20 times those of others, and grow along the columns of some rows.
std::vector<std::uint16_t> weights_of(std::uint32_t rows) {
  constexpr float kSizes[] = {0x1p-40F, 1.0F, 0x1p20F};
  std::vector<std::uint16_t> weights;
  for (std::uint32_t row = 0; row < rows; ++row)
    for (std::uint32_t column = 0; column < kXColumns; ++column) {
      const float size = row % 4 == 3 ? kSizes[column / 64] : kSizes[row % 4];
      weights.push_back(bf16_of(size * static_cast<float>((row * 37 + column * 11) % 61 + 1)));
    }
  return weights;
}

// Returns x W, or silu(x W) * x W of normalized x.
std::vector<float> halves_products_on(const char* device, const TileCase& of) {
  const auto& [tokens, rows, gated, x_rows] = of;
  const std::vector<std::uint16_t> numbers = weights_of(rows);
  std::vector<float> x(std::size_t{tokens} * kXColumns);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 23) * 0x1p-20F;
  const std::vector<float> ones(kXColumns, 1.0F);
  MemoryWeights weights;
  GraphBuilder builder;
  Tensor in = builder.input("x", DType::F32, {tokens, kXColumns});
  EXPECT_TRUE(weights.add("w", DType::BF16, {rows, kXColumns}, std::as_bytes(std::span(numbers))));
  EXPECT_TRUE(weights.add("n", DType::F32, {kXColumns}, std::as_bytes(std::span(ones))));
  if (gated) in = builder.rms_norm_mul(in, builder.weight("n", DType::F32, {kXColumns}));
  const Tensor product = builder.linear(in, builder.weight("w", DType::BF16, {rows, kXColumns}));
  builder.output(gated
                     ? builder.swiglu(product, builder.linear(in, builder.weight("w", DType::BF16, {rows, kXColumns})))
                     : product);
  const auto runtime = Runtime::create({.threads = 1, .devices = device, .calibrated = false});
  const auto computation = Computation::create(*std::move(builder).finish(), **runtime, &weights,
                                               {.strategy = Strategy::gpu, .numerics = Numerics::automatic});
  EXPECT_TRUE(computation.has_value()) << computation.error().message;
  EXPECT_TRUE((*computation)->write("x", std::as_bytes(std::span(x))));
  EXPECT_TRUE((*computation)->run());
  std::vector<float> products(std::size_t{tokens} * rows);
  EXPECT_TRUE((*computation)->read(0, 0, std::as_writable_bytes(std::span(products))));
  return products;
}

// Holds each row of the weight to the error of the arithmetic, since their magnitudes differ.
void expect_close(const std::vector<float>& actual, const std::vector<float>& expected, std::uint32_t rows) {
  for (std::uint32_t row = 0; row < rows; ++row) {
    double squares = 0;
    double errors = 0;
    for (std::size_t i = row; i < expected.size(); i += rows) {
      const double error = static_cast<double>(actual[i]) - static_cast<double>(expected[i]);
      squares += static_cast<double>(expected[i]) * static_cast<double>(expected[i]);
      errors += error * error;
    }
    ASSERT_LE(errors, squares * info_of(Arithmetic::halves).error) << "row " << row;
  }
}

class HalvesTiles : public testing::TestWithParam<TileCase> {};

TEST_P(HalvesTiles, HoldRowsOfAllMagnitudes) {
  const auto& [tokens, rows, gated, x_rows] = GetParam();
  ASSERT_EQ(halves_kernel_for(tokens, gated ? 2 * rows : rows), "shunt_linear_halves_BF16_" + x_rows);
  const Simulation simulation;
  const Target target("80");
  expect_close(halves_products_on("cuda:0", GetParam()), halves_products_on("cpu:scalar", GetParam()), rows);
}

INSTANTIATE_TEST_SUITE_P(Tiles, HalvesTiles,
                         testing::Values(TileCase{120, 300, false, "32"}, TileCase{120, 8440, false, "64"},
                                         TileCase{120, 17146, false, "128"}, TileCase{250, 16890, false, "256"},
                                         TileCase{120, 150, true, "32"}, TileCase{250, 8440, true, "256"}),
                         [](const auto& test) { return "Of" + test.param.x_rows + (test.param.gated ? "Gated" : ""); });

}  // namespace
}  // namespace shunt::simulated
