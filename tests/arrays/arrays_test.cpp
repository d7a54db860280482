// Results of array functions for every method, and the errors for mistakes.
#include "shunt/arrays.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "arrays/machine.h"

namespace shunt {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr std::string_view kMethods[] = {"cpu:simd", "cpu:scalar", "sim:0"};

class ArrayFunctions : public testing::Test {
 protected:
  ArraysMachine machine_{{near_spec()}};
  std::unique_ptr<Arrays> arrays_ = machine_.arrays();

  void expect_right(const ArrayCase& example, std::string_view method) {
    SCOPED_TRACE(method);
    const Floats a = example.a();
    const Floats b = example.b();
    Floats out(example.results(), -7);
    const auto run = example.run(*arrays_, a, b, out, {.devices = method});
    ASSERT_TRUE(run.has_value()) << run.error().message;
    EXPECT_EQ(run->device, method);
    EXPECT_EQ(run->reason, ArrayReason::only_candidate);
    EXPECT_EQ(run->failures, "");
    example.expect_right(out, example.expected(a, b));
  }
};

TEST_F(ArrayFunctions, AreRightOnEveryMethodAndSize) {
  for (const std::string_view method : kMethods)
    for (const std::size_t size : {1U, 2U, 3U, 63U, 255U, 257U, 1000U, 1023U, 1024U, 1025U, 5001U})
      for (const char* function : {"add", "multiply", "dot", "sum", "softmax"})
        expect_right({function, size, size}, method);
}

TEST_F(ArrayFunctions, AreRightOnLargeArrays) {
  for (const std::string_view method : kMethods) {
    for (const char* function : {"add", "multiply", "dot", "sum"}) expect_right({function, 300001}, method);
    expect_right({"softmax", 140000, 7000}, method);
    expect_right({"softmax", 140001, 140001}, method);
  }
}

TEST_F(ArrayFunctions, MultiplyMatricesOfAnyExtents) {
  for (const std::string_view method : kMethods)
    for (const std::size_t rows : {1U, 2U, 7U, 33U})
      for (const std::size_t inner : {1U, 5U, 64U, 129U})
        for (const std::size_t columns : {1U, 3U, 66U}) expect_right({"matmul", rows, columns, inner}, method);
}

TEST_F(ArrayFunctions, SoftmaxOfRowsIsThatOfEachRow) {
  for (const std::string_view method : kMethods)
    for (const std::size_t columns : {1U, 2U, 33U, 100U}) expect_right({"softmax", 7 * columns, columns}, method);
}

TEST_F(ArrayFunctions, OfNothingNeedNoDevice) {
  Floats none;
  float total = 5;
  for (const auto& run : {arrays_->add(none, none, none), arrays_->softmax(none, 0, none), arrays_->sum(none, total),
                          arrays_->matmul(none, none, {0, 3, 0}, none)}) {
    ASSERT_TRUE(run.has_value()) << run.error().message;
    EXPECT_EQ(run->device, "");
    EXPECT_EQ(run->reason, ArrayReason::nothing_to_compute);
  }
  EXPECT_EQ(total, 0);
  total = 5;
  EXPECT_TRUE(arrays_->dot(none, none, total).has_value());
  EXPECT_EQ(total, 0);
  Floats product(6, 5);
  EXPECT_TRUE(arrays_->matmul(none, none, {2, 0, 3}, product).has_value());
  EXPECT_EQ(product, Floats(6, 0)) << "sums of nothing";
}

TEST_F(ArrayFunctions, MayWriteWhereTheirInputsLie) {
  const ArrayCase examples[] = {
      {"add", 100}, {"multiply", 100}, {"softmax", 100, 50}, {"add", 140001}, {"multiply", 140001}};
  for (const std::string_view method : kMethods)
    for (const ArrayCase& example : examples) {
      SCOPED_TRACE(std::string(method) + " " + example.function);
      const std::size_t size = example.size;
      const Floats a = example.a();
      const Floats b = example.b();
      Floats values = a;
      ASSERT_TRUE(example.run(*arrays_, values, b, values, {.devices = method}).has_value());
      example.expect_right(values, example.expected(a, b));
      values = b;
      ASSERT_TRUE(example.run(*arrays_, a, values, values, {.devices = method}).has_value());
      example.expect_right(values, example.expected(a, b));
      // Shifted by one element in either direction.
      for (const std::size_t to : {0U, 1U}) {
        values.assign(size + 1, 0);
        const std::span<float> from = std::span(values).subspan(1 - to, size);
        std::ranges::copy(a, from.begin());
        const std::span<float> shifted = std::span(values).subspan(to, size);
        ASSERT_TRUE(example.run(*arrays_, from, b, shifted, {.devices = method}).has_value());
        example.expect_right(Floats(shifted.begin(), shifted.end()), example.expected(a, b));
      }
    }
  const ArrayCase square{"matmul", 40, 40, 40};
  for (const std::string_view method : kMethods) {
    Floats values = square.a();
    ASSERT_TRUE(square.run(*arrays_, values, square.b(), values, {.devices = method}).has_value());
    square.expect_right(values, square.expected(square.a(), square.b()));
  }
}

TEST_F(ArrayFunctions, PassOnWhatIsNoNumberAsIeeeSays) {
  for (const std::string_view method : kMethods)
    for (const std::size_t size : {5U, 3000U, 300000U}) {
      SCOPED_TRACE(std::string(method) + " " + std::to_string(size));
      const ArrayCall call{.devices = method};
      Floats a(size, 1);
      Floats b(size, 2);
      a[0] = kInfinity, b[0] = -kInfinity;
      a[1] = kNan;
      a[2] = kInfinity, b[2] = 0;
      Floats out(size);
      ASSERT_TRUE(arrays_->add(a, b, out, call).has_value());
      EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[1]));
      EXPECT_EQ(out[2], kInfinity);
      EXPECT_EQ(out[3], 3);
      ASSERT_TRUE(arrays_->multiply(a, b, out, call).has_value());
      EXPECT_EQ(out[0], -kInfinity);
      EXPECT_TRUE(std::isnan(out[1]) && std::isnan(out[2]));
      EXPECT_EQ(out[3], 2);
      ASSERT_TRUE(arrays_->sum(a, out[0], call).has_value());
      EXPECT_TRUE(std::isnan(out[0]));
      ASSERT_TRUE(arrays_->sum(b, out[0], call).has_value());
      EXPECT_EQ(out[0], -kInfinity);
      ASSERT_TRUE(arrays_->dot(a, b, out[0], call).has_value());
      EXPECT_TRUE(std::isnan(out[0]));
      const Floats scores = {0, -kInfinity, 0, 0, kNan, 0};
      ASSERT_TRUE(arrays_->softmax(scores, 3, std::span(out).first(3), call).error().code == Code::invalid);
      Floats shares(6);
      ASSERT_TRUE(arrays_->softmax(scores, 3, shares, call).has_value());
      EXPECT_EQ(Floats(shares.begin(), shares.begin() + 3), Floats({0.5F, 0, 0.5F}));
      EXPECT_TRUE(std::isnan(shares[3]) && std::isnan(shares[4]) && std::isnan(shares[5]));
    }
  for (const std::string_view method : kMethods) {
    Floats out(4);
    const Floats a = {kInfinity, 0, 1, 1};
    ASSERT_TRUE(arrays_->matmul(a, Floats{1, 2, 0, 1}, {2, 2, 2}, out, {.devices = method}).has_value());
    EXPECT_EQ(out, Floats({kInfinity, kInfinity, 1, 3})) << method;
    ASSERT_TRUE(arrays_->matmul(a, Floats{0, 2, kNan, 1}, {2, 2, 2}, out, {.devices = method}).has_value());
    EXPECT_TRUE(std::isnan(out[0]) && std::isnan(out[2])) << method;
  }
}

TEST_F(ArrayFunctions, RefuseSizesThatDoNotGoTogether) {
  Floats x(6);
  Floats y(5);
  float total = 0;
  const auto message = [](const Result<ArrayRun>& run) {
    EXPECT_FALSE(run.has_value());
    if (run) return std::string();
    EXPECT_EQ(run.error().code, Code::invalid);
    return run.error().message;
  };
  EXPECT_EQ(message(arrays_->add(x, y, x)), "add: b has 5 elements, must have 6");
  EXPECT_EQ(message(arrays_->multiply(x, x, y)), "multiply: the result has 5 elements, must have 6");
  EXPECT_EQ(message(arrays_->dot(x, y, total)), "dot: b has 5 elements, must have 6");
  EXPECT_EQ(message(arrays_->softmax(x, 4, x)), "softmax: 6 elements are not whole rows of 4 columns");
  EXPECT_EQ(message(arrays_->softmax(x, 0, x)), "softmax: 6 elements are not whole rows of 0 columns");
  EXPECT_EQ(message(arrays_->matmul(x, x, {2, 3, 3}, x)), "matmul: b has 6 elements, must have 9");
  EXPECT_EQ(message(arrays_->matmul(x, x, {2, 3, 2}, x)), "matmul: the result has 6 elements, must have 4");
  const std::size_t huge = std::size_t{1} << 32U;
  EXPECT_NE(message(arrays_->matmul(x, x, {huge, huge, 3}, x)).find("4294967296"), std::string::npos);
  // Its elements are never read.
  const std::span<const float> long_array(x.data(), (std::size_t{1} << 31U) + 1);
  EXPECT_NE(message(arrays_->sum(long_array, total)).find("2147483649"), std::string::npos);
}

TEST_F(ArrayFunctions, NameDevicesThatAreNotThere) {
  Floats x(4, 1);
  auto run = arrays_->add(x, x, x, {.devices = "abacus"});
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().code, Code::invalid);
  EXPECT_NE(run.error().message.find("\"abacus\"; choose from: sim:0 cpu:simd"), std::string::npos)
      << run.error().message;
  run = arrays_->add(x, x, x, {.devices = "cuda:0"});
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().code, Code::unsupported);
  EXPECT_NE(run.error().message.find("no library in this test"), std::string::npos) << run.error().message;
  EXPECT_EQ(x, Floats(4, 1));
  const auto opened = std::move(*Runtime::create({.threads = 1, .devices = "cpu:scalar"}));
  const auto scalar = std::move(*Arrays::create(*opened));
  run = scalar->add(x, x, x, {.devices = "cpu:simd"});
  ASSERT_FALSE(run.has_value());
  EXPECT_EQ(run.error().code, Code::unsupported) << "it is there, but was not chosen";
  run = scalar->add(x, x, x);
  ASSERT_TRUE(run.has_value()) << run.error().message;
  EXPECT_EQ(run->device, "cpu:scalar");
  EXPECT_EQ(x, Floats(4, 2));
}

TEST(Arrays, RefusesOptionsThatMakeNoSense) {
  const ArraysMachine machine({});
  const auto code = [&](const ArraysOptions& options) {
    return Arrays::create(*machine.runtime, options).error().code;
  };
  EXPECT_EQ(code({.margin = 0.9}), Code::invalid);
  EXPECT_EQ(code({.margin = std::nan("")}), Code::invalid);
  EXPECT_EQ(code({.exploring_share = 1.5}), Code::invalid);
  EXPECT_EQ(code({.most_prepared = 0}), Code::invalid);
  EXPECT_EQ(Arrays::create(*ArraysMachine({}, false).runtime).error().code, Code::invalid);
}

TEST(Arrays, TinyCallsNeverGoToAGpuUnlessItIsNamed) {
  sim::Spec free = near_spec();
  free.launch_us = free.op_us = free.link.latency_us = 0;
  const ArraysMachine machine({free});
  const auto arrays = machine.arrays({.exploring_share = 1});
  for (int again = 0; again < 30; ++again)
    for (const ArrayCase& example : one_of_each(400)) {
      Floats out(example.results());
      const auto run = example.run(*arrays, example.a(), example.b(), out);
      ASSERT_TRUE(run.has_value()) << run.error().message;
      EXPECT_TRUE(run->device.starts_with("cpu:")) << example.function << " on " << run->device;
    }
  const Floats large(10000);
  Floats out(10000);
  EXPECT_EQ(arrays->add(large, large, out)->device, "sim:0") << "it is predicted to be fastest";
  EXPECT_EQ(
      arrays->add(std::span(large).first(9), std::span(large).first(9), std::span(out).first(9), {.devices = "sim:0"})
          ->device,
      "sim:0");
}

TEST(Arrays, MeasurementsCorrectAPrediction) {
  // Its prediction is a tenth of the other's time; it takes a hundred times as long.
  sim::Spec boaster = near_spec("sim:0");
  boaster.believed = boaster.rate;
  boaster.rate_of_family["elementwise"] = {.flops_per_s = 1e6, .bytes_per_s = 1e6};
  sim::Spec honest = near_spec("sim:1");
  honest.launch_us = 10;
  const ArraysMachine machine({boaster, honest}, false);
  const auto arrays = machine.arrays({.exploring_share = 0});
  const Floats a = numbers(10000, 1);
  Floats out(a.size());
  const auto first = arrays->add(a, a, out);
  EXPECT_EQ(first->device, "sim:0");
  EXPECT_EQ(first->reason, ArrayReason::predicted);
  EXPECT_GT(first->us, 1000);
  EXPECT_EQ(arrays->add(a, a, out)->device, "sim:1");
  const auto third = arrays->add(a, a, out);
  EXPECT_EQ(third->device, "sim:1");
  EXPECT_EQ(third->reason, ArrayReason::measured);
  EXPECT_EQ(arrays->dot(a, a, out[0])->device, "sim:0") << "nothing is known of it";
  EXPECT_NE(arrays->explain().find("sim:1:\n  add below 2^14 elements: "), std::string::npos) << arrays->explain();
}

TEST(Arrays, KeepsFewProgramsAndSharesThemAmongSizes) {
  const ArraysMachine machine({});
  const auto arrays = machine.arrays({.most_prepared = 3});
  const auto sum_up = [&](std::size_t size) {
    const ArrayCase example{"add", size};
    Floats out(size);
    ASSERT_TRUE(example.run(*arrays, example.a(), example.b(), out, {.devices = "cpu:simd"}).has_value());
    example.expect_right(out, example.expected(example.a(), example.b()));
  };
  for (std::size_t size = 257; size <= 512; size += 5) sum_up(size);
  EXPECT_EQ(arrays->prepared(), 1U);
  for (const std::size_t size : {100U, 1000U, 3000U, 9000U, 300U, 100U}) {
    sum_up(size);
    EXPECT_LE(arrays->prepared(), 3U);
  }
  EXPECT_EQ(arrays->prepared(), 3U);
}

TEST(Arrays, EveryReasonHasAName) {
  EXPECT_EQ(name_of(ArrayReason::only_candidate), "only_candidate");
  EXPECT_EQ(words_of(ArrayReason::fallback), "the next in the chain after one that failed");
}

}  // namespace
}  // namespace shunt
