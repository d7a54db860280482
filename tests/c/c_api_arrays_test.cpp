// Array functions as called from a C program.
#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <memory>
#include <string>

#include "shunt/shunt.h"

namespace {

class CApiArrays : public testing::Test {
 protected:
  void SetUp() override {
    shunt_runtime_options options{};
    options.threads = 1;
    options.devices = "cpu";
    runtime_.reset(shunt_runtime_open(&options, &error_));
    ASSERT_NE(runtime_, nullptr) << error_.message;
    arrays_.reset(shunt_arrays_new(runtime_.get(), &error_));
    ASSERT_NE(arrays_, nullptr) << error_.message;
  }

  shunt_error error_{};
  std::unique_ptr<shunt_runtime, decltype(&shunt_runtime_close)> runtime_{nullptr, &shunt_runtime_close};
  std::unique_ptr<shunt_arrays, decltype(&shunt_arrays_free)> arrays_{nullptr, &shunt_arrays_free};
};

TEST_F(CApiArrays, ComputeAndSayWhere) {
  const std::array<float, 4> a{1, 2, 3, 4};
  const std::array<float, 4> b{10, 20, 30, 40};
  std::array<float, 4> out{};
  shunt_array_run run{};
  const shunt_array_call call{.devices = "cpu:scalar", .timeout_us = 3'600'000'000};
  shunt_arrays* const arrays = arrays_.get();
  ASSERT_EQ(shunt_arrays_add(arrays, a.data(), b.data(), out.data(), 4, &call, &run, &error_), SHUNT_OK)
      << error_.message;
  EXPECT_EQ(out, (std::array<float, 4>{11, 22, 33, 44}));
  EXPECT_STREQ(run.device, "cpu:scalar");
  EXPECT_STREQ(run.reason, "only_candidate");
  EXPECT_STREQ(run.failures, "");
  EXPECT_GE(run.us, 0);
  ASSERT_EQ(shunt_arrays_multiply(arrays, a.data(), b.data(), out.data(), 4, nullptr, &run, nullptr), SHUNT_OK);
  EXPECT_EQ(out, (std::array<float, 4>{10, 40, 90, 160}));
  EXPECT_STREQ(run.device, "cpu:simd");
  ASSERT_EQ(shunt_arrays_matmul(arrays, a.data(), b.data(), out.data(), 2, 2, 2, nullptr, nullptr, nullptr), SHUNT_OK);
  EXPECT_EQ(out, (std::array<float, 4>{70, 100, 150, 220}));
  ASSERT_EQ(shunt_arrays_dot(arrays, a.data(), b.data(), out.data(), 4, nullptr, nullptr, nullptr), SHUNT_OK);
  EXPECT_EQ(out[0], 300);
  ASSERT_EQ(shunt_arrays_sum(arrays, b.data(), out.data(), 4, nullptr, nullptr, nullptr), SHUNT_OK);
  EXPECT_EQ(out[0], 100);
  const std::array<float, 4> even{5, 5, 7, 7};
  ASSERT_EQ(shunt_arrays_softmax(arrays, even.data(), out.data(), 2, 2, nullptr, nullptr, nullptr), SHUNT_OK);
  EXPECT_EQ(out, (std::array<float, 4>{0.5F, 0.5F, 0.5F, 0.5F}));
  ASSERT_EQ(shunt_arrays_sum(arrays, nullptr, out.data(), 0, nullptr, &run, nullptr), SHUNT_OK);
  EXPECT_EQ(out[0], 0);
  EXPECT_STREQ(run.device, "");
  EXPECT_NE(std::string(shunt_arrays_explain(arrays)).find("cpu:scalar:\n  add below 2^3 elements: "),
            std::string::npos)
      << shunt_arrays_explain(arrays);
}

TEST_F(CApiArrays, MistakesAreReported) {
  std::array<float, 4> x{1, 2, 3, 4};
  shunt_arrays* const arrays = arrays_.get();
  EXPECT_EQ(shunt_arrays_new(nullptr, &error_), nullptr);
  EXPECT_STREQ(error_.message, "the runtime is NULL");
  EXPECT_EQ(shunt_arrays_sum(nullptr, x.data(), x.data(), 4, nullptr, nullptr, &error_), SHUNT_INVALID);
  EXPECT_STREQ(error_.message, "the arrays object is NULL");
  EXPECT_EQ(shunt_arrays_add(arrays, x.data(), nullptr, x.data(), 4, nullptr, nullptr, &error_), SHUNT_INVALID);
  EXPECT_STREQ(error_.message, "b is NULL");
  EXPECT_EQ(shunt_arrays_sum(arrays, x.data(), nullptr, 4, nullptr, nullptr, &error_), SHUNT_INVALID);
  const shunt_array_call call{.devices = "abacus", .timeout_us = 0};
  EXPECT_EQ(shunt_arrays_sum(arrays, x.data(), x.data(), 4, &call, nullptr, &error_), SHUNT_INVALID);
  EXPECT_NE(std::string(error_.message).find("abacus"), std::string::npos) << error_.message;
  const std::size_t huge = std::numeric_limits<std::size_t>::max() / 2;
  EXPECT_EQ(shunt_arrays_softmax(arrays, x.data(), x.data(), huge, 3, nullptr, nullptr, &error_), SHUNT_INVALID);
  EXPECT_EQ(shunt_arrays_matmul(arrays, x.data(), x.data(), x.data(), huge, 3, huge, nullptr, nullptr, &error_),
            SHUNT_INVALID);
  EXPECT_EQ(x, (std::array<float, 4>{1, 2, 3, 4}));
  EXPECT_EQ(shunt_arrays_explain(nullptr), nullptr);
  shunt_arrays_free(nullptr);
}

}  // namespace
