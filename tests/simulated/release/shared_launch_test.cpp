// Calls that do not need each other's results and share a launch.
#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "shunt/computation.h"
#include "simulated/simulated.h"

namespace shunt::simulated {
namespace {

constexpr std::uint32_t kInner = 256;

// Products of small integers, which every device computes exactly.
class Products {
 public:
  explicit Products(std::uint32_t tokens) : tokens_(tokens) { x = builder_.input("x", DType::F32, {tokens, kInner}); }

  // Returns the product with a matrix of that many rows: F16, Q4_K or Q6_K.
  Tensor times(Tensor of, std::uint32_t rows, DType dtype = DType::F16) {
    const std::string name = std::to_string(count_++);
    std::vector<std::byte>& bytes = matrices_.emplace_back(*bytes_of(dtype, {rows, kInner}));
    const std::size_t row_bytes = bytes.size() / rows;
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>((i * 37 + count_) % 251);
    for (std::size_t at = 0; at < bytes.size(); at += row_bytes) {
      if (dtype == DType::F16)
        for (std::size_t i = 0; i < kInner; ++i) put_half(bytes, at + 2 * i, (at + i + count_) % 5 == 0 ? 0x3C00 : 0);
      if (dtype == DType::Q4_K) {  // a row is a superblock: d, dmin, scales, integers
        put_half(bytes, at, 0x3C00);
        put_half(bytes, at + 2, 0);
      }
      if (dtype == DType::Q6_K) put_half(bytes, at + row_bytes - 2, 0x3C00);
    }
    EXPECT_TRUE(weights_.add(name, dtype, {rows, kInner}, bytes));
    return builder_.linear(of, builder_.weight(name, dtype, {rows, kInner}));
  }
  void put_out(Tensor result, std::uint32_t rows) {
    builder_.output(result);
    sizes_.push_back(std::size_t{tokens_} * rows);
  }

  struct Ran {
    std::vector<std::vector<float>> results;
    std::uint64_t kernels = 0;  // of a run, once weights are loaded
  };
  Ran on(const char* device) && {
    const auto runtime = Runtime::create({.threads = 1, .devices = device, .calibrated = false});
    const auto computation = Computation::create(*std::move(builder_).finish(), **runtime, &weights_,
                                                 {.strategy = Strategy::gpu, .numerics = Numerics::exact});
    EXPECT_TRUE(computation.has_value()) << computation.error().message;
    std::vector<float> values(std::size_t{tokens_} * kInner);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 7);
    EXPECT_TRUE((*computation)->write("x", std::as_bytes(std::span(values))));
    EXPECT_TRUE((*computation)->run());
    const std::uint64_t before = Simulation::control().kernels();
    EXPECT_TRUE((*computation)->run());
    Ran ran{.kernels = Simulation::control().kernels() - before};
    for (std::uint32_t i = 0; i < sizes_.size(); ++i) {
      ran.results.emplace_back(sizes_[i]);
      EXPECT_TRUE((*computation)->read(i, 0, std::as_writable_bytes(std::span(ran.results.back()))));
    }
    return ran;
  }

  Tensor x;

 private:
  // 0x3C00 is 1.
  static void put_half(std::span<std::byte> bytes, std::size_t at, std::uint16_t half) {
    std::memcpy(&bytes[at], &half, sizeof(half));
  }

  GraphBuilder builder_;
  std::deque<std::vector<std::byte>> matrices_;  // weights_ refers to them
  MemoryWeights weights_;
  std::uint32_t tokens_;
  std::uint32_t count_ = 0;
  std::vector<std::size_t> sizes_;
};

// Compares CUDA with the reference. Returns how many kernels a run takes.
std::uint64_t kernels_of(const std::function<void(Products&)>& add, std::uint32_t tokens = 1) {
  const Simulation simulation;
  Products products(tokens);
  add(products);
  const Products::Ran ran = std::move(products).on("cuda:0");
  Products again(tokens);
  add(again);
  EXPECT_EQ(ran.results, std::move(again).on("cpu:scalar").results);
  return ran.kernels;
}

TEST(SharedLaunch, IsOfProductsOfOneX) {
  for (const std::uint32_t tokens : {1U, 3U})
    EXPECT_EQ(kernels_of(
                  [](Products& products) {
                    for (const std::uint32_t rows : {1024U, 16U, 256U})
                      products.put_out(products.times(products.x, rows), rows);
                  },
                  tokens),
              1U);
}

TEST(SharedLaunch, IsOfFourAtMost) {
  const auto kernels = [](std::uint32_t count) {
    return kernels_of([count](Products& products) {
      for (std::uint32_t i = 0; i < count; ++i) products.put_out(products.times(products.x, 32), 32);
    });
  };
  EXPECT_EQ(kernels(4), 1U);
  EXPECT_EQ(kernels(8), 2U);
  EXPECT_EQ(kernels(9), 3U);
}

// Files of mixed types have values of another type than queries and keys.
TEST(SharedLaunch, IsOfWeightsOfTwoTypes) {
  const auto kernels = [](std::vector<DType> dtypes, std::uint32_t tokens) {
    return kernels_of(
        [&](Products& products) {
          for (const DType dtype : dtypes) products.put_out(products.times(products.x, 48, dtype), 48);
        },
        tokens);
  };
  using enum DType;
  EXPECT_EQ(kernels({Q4_K, Q4_K, Q6_K}, 1), 1U);
  EXPECT_EQ(kernels({Q4_K, Q4_K, Q6_K}, 2), 2U) << "there is no such kernel for more rows of x";
  EXPECT_EQ(kernels({Q4_K, Q6_K, Q6_K, F16}, 1), 2U);
  EXPECT_EQ(kernels({Q6_K, Q4_K}, 1), 2U) << "nor for this order";
}

// A block computes several rows, and the last block of each call only some.
TEST(SharedLaunch, IsOfNormsToo) {
  const Simulation simulation;
  constexpr std::uint32_t kRows = 21;
  std::vector<float> x(std::size_t{kRows} * kInner);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 13) - 5;
  const auto norms_on = [&](const char* device) {
    GraphBuilder builder;
    const Tensor in = builder.input("x", DType::F32, {kRows, kInner});
    for (const float epsilon : {1e-6F, 1.0F, 10.0F}) builder.output(builder.rms_norm(in, {{Attr::epsilon, epsilon}}));
    const auto runtime = Runtime::create({.threads = 1, .devices = device, .calibrated = false});
    const auto computation = Computation::create(*std::move(builder).finish(), **runtime, nullptr,
                                                 {.strategy = Strategy::gpu, .numerics = Numerics::exact});
    EXPECT_TRUE(computation.has_value()) << computation.error().message;
    EXPECT_TRUE((*computation)->write("x", std::as_bytes(std::span(x))));
    EXPECT_TRUE((*computation)->run());
    std::vector<float> all;
    for (std::uint32_t i = 0; i < 3; ++i) {
      std::vector<float> norm(x.size());
      EXPECT_TRUE((*computation)->read(i, 0, std::as_writable_bytes(std::span(norm))));
      all.insert(all.end(), norm.begin(), norm.end());
    }
    return all;
  };
  const std::uint64_t before = Simulation::control().kernels();
  const std::vector<float> norms = norms_on("cuda:0");
  EXPECT_EQ(Simulation::control().kernels() - before, 1U);
  const std::vector<float> expected = norms_on("cpu:scalar");
  for (std::size_t i = 0; i < norms.size(); ++i) ASSERT_NEAR(norms[i], expected[i], 1e-5F) << i;
}

TEST(SharedLaunch, IsNotOfAProductThatNeedsTheOther) {
  EXPECT_EQ(kernels_of([](Products& products) {
              const Tensor first = products.times(products.x, kInner);
              products.put_out(products.times(first, kInner), kInner);
            }),
            2U);
}

}  // namespace
}  // namespace shunt::simulated
