// What a caller reads and writes stays inside the memory it names, on every device: the core checks before a device is
// asked, so none has to.
#include <array>
#include <limits>
#include <vector>

#include "devices/each_api.h"
#include "shunt/computation.h"

namespace shunt {
namespace {

class DeviceBuffers : public test::EachApi {
 protected:
  void SetUp() override {
    EachApi::SetUp();
    if (devices_.empty()) return;
    // One device is enough, as the check stands above all.
    Registry one;
    for (BackendReport& backend : registry_.backends)
      if (!backend.devices.empty() && one.backends.empty()) {
        backend.devices.resize(1);
        one.backends.push_back(std::move(backend));
      }
    runtime_ = Runtime::over(std::move(one), std::make_unique<trace::Recorder>());
    GraphBuilder builder;
    const Tensor x = builder.input("x", DType::F32, Shape{4});
    builder.output(builder.add(x, x));
    auto graph = std::move(builder).finish();
    ASSERT_TRUE(graph.has_value()) << graph.error().message;
    auto computation = Computation::create(std::move(*graph), *runtime_, nullptr);
    ASSERT_TRUE(computation.has_value()) << computation.error().message;
    computation_ = std::move(*computation);
    const std::array<float, 4> values = {1, 2, 3, 4};
    ASSERT_TRUE(computation_->write("x", std::as_bytes(std::span(values))).has_value());
    ASSERT_TRUE(computation_->run().has_value());
  }
  void TearDown() override {
    computation_.reset();
    runtime_.reset();
  }

  [[nodiscard]] Code code_of_read(std::uint64_t offset, std::size_t bytes) {
    std::vector<std::byte> place(bytes);
    const Status read = computation_->read(0, offset, place);
    return read ? Code::internal : read.error().code;
  }

  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Computation> computation_;
};

TEST_P(DeviceBuffers, ReadsInsideAreRight) {
  std::array<float, 4> sums{};
  ASSERT_TRUE(computation_->read(0, 0, std::as_writable_bytes(std::span(sums))).has_value());
  EXPECT_EQ(sums, (std::array<float, 4>{2, 4, 6, 8}));
  ASSERT_TRUE(computation_->read(0, 12, std::as_writable_bytes(std::span(sums).first(1))).has_value());
  EXPECT_EQ(sums[0], 8) << "the last element";
  EXPECT_TRUE(computation_->read(0, 16, {}).has_value()) << "nothing, from the end";
  EXPECT_TRUE(computation_->read(0, 0, {}).has_value());
  EXPECT_TRUE(computation_->write("x", {}).has_value());
}

TEST_P(DeviceBuffers, WhatReachesPastTheEndIsInvalid) {
  constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();
  EXPECT_EQ(code_of_read(0, 17), Code::invalid);
  EXPECT_EQ(code_of_read(13, 4), Code::invalid);
  EXPECT_EQ(code_of_read(17, 0), Code::invalid) << "even of nothing";
  EXPECT_EQ(code_of_read(kLast, 1), Code::invalid) << "the sum is 0";
  EXPECT_EQ(code_of_read(kLast - 3, 16), Code::invalid) << "the sum is 12";
  const std::vector<std::byte> more(17);
  EXPECT_EQ(computation_->write("x", more).error().code, Code::invalid);
}

SHUNT_FOR_EACH_API(DeviceBuffers);

}  // namespace
}  // namespace shunt
