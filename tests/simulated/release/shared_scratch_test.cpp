// Programs whose ops share what a kernel before them has left in scratch memory.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "shunt/computation.h"
#include "simulated/simulated.h"

namespace shunt::simulated {
namespace {

constexpr std::uint32_t kTokens = 16;
constexpr std::uint32_t kUsed = 2;
constexpr std::uint32_t kColumns = 64;
constexpr std::uint32_t kRows = 16;

// Returns both products of one x and one choice among eight experts: with matrices of all eight, and of the first four.
std::vector<std::vector<float>> products_on(const char* device) {
  const std::vector<std::uint16_t> ones(std::size_t{8} * kRows * kColumns, 0x3C00);
  std::vector<float> x(std::size_t{kTokens} * kColumns);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7);
  std::vector<std::int32_t> ids(std::size_t{kTokens} * kUsed);
  for (std::size_t i = 0; i < ids.size(); ++i) ids[i] = static_cast<std::int32_t>(i * 3 % 8);
  MemoryWeights weights;
  GraphBuilder builder;
  const Tensor in = builder.input("x", DType::F32, {kTokens, 1, kColumns});
  const Tensor chosen = builder.input("ids", DType::I32, {kTokens, kUsed});
  for (const std::uint32_t experts : {8U, 4U}) {
    const std::string name = std::to_string(experts);
    const std::size_t elements = std::size_t{experts} * kRows * kColumns;
    EXPECT_TRUE(
        weights.add(name, DType::F16, {experts, kRows, kColumns}, std::as_bytes(std::span(ones).first(elements))));
    const Tensor weight = builder.weight(name, DType::F16, {experts, kRows, kColumns});
    builder.output(builder.linear_experts(in, weight, chosen, {}, {}));
  }
  const auto runtime = Runtime::create({.threads = 1, .devices = device, .calibrated = false});
  const auto computation = Computation::create(*std::move(builder).finish(), **runtime, &weights,
                                               {.strategy = Strategy::gpu, .numerics = Numerics::exact});
  EXPECT_TRUE(computation.has_value()) << computation.error().message;
  EXPECT_TRUE((*computation)->write("x", std::as_bytes(std::span(x))));
  EXPECT_TRUE((*computation)->write("ids", std::as_bytes(std::span(ids))));
  EXPECT_TRUE((*computation)->run());
  std::vector<std::vector<float>> products(2, std::vector<float>(std::size_t{kTokens} * kUsed * kRows));
  for (std::uint32_t i = 0; i < 2; ++i)
    EXPECT_TRUE((*computation)->read(i, 0, std::as_writable_bytes(std::span(products[i]))));
  return products;
}

TEST(SharedScratch, IsNotOfOpsWithAnotherNumberOfMatrices) {
  const Simulation simulation;
  EXPECT_EQ(products_on("cuda:0"), products_on("cpu:scalar"));
}

}  // namespace
}  // namespace shunt::simulated
