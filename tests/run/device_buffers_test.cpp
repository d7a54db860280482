// Callers' reads and writes stay inside the memory they name on every device, and any byte range inside is readable.
#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

#include "devices/each_api.h"
#include "run/opened_devices.h"
#include "shunt/computation.h"

namespace shunt {
namespace {

constexpr std::uint64_t kLast = std::numeric_limits<std::uint64_t>::max();

// x + x on one device.
struct Doubling {
  std::unique_ptr<Runtime> runtime;
  std::unique_ptr<Computation> computation;

  Doubling(std::unique_ptr<Device> device, std::uint32_t elements) {
    Registry registry;
    registry.backends.push_back({.api = std::string(api_of(device->info().id)), .devices = {}});
    registry.backends.back().devices.push_back(std::move(device));
    runtime = runtime_over(std::move(registry), std::make_unique<trace::Recorder>());
    GraphBuilder builder;
    const Tensor x = builder.input("x", DType::F32, Shape{elements});
    builder.output(builder.add(x, x));
    auto graph = std::move(builder).finish();
    EXPECT_TRUE(graph.has_value()) << graph.error().message;
    auto made = Computation::create(std::move(*graph), *runtime, nullptr);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    if (made) computation = std::move(*made);
  }

  [[nodiscard]] Code code_of_read(std::uint64_t offset, std::size_t bytes) const {
    std::vector<std::byte> place(bytes, std::byte{77});
    const Status read = computation->read(0, offset, place);
    EXPECT_EQ(std::ranges::count(place, std::byte{77}), static_cast<std::ptrdiff_t>(bytes)) << "nothing is written";
    return read ? Code::internal : read.error().code;
  }
  [[nodiscard]] Code code_of_write(std::size_t bytes) const {
    const Status written = computation->write("x", std::vector<std::byte>(bytes));
    return written ? Code::internal : written.error().code;
  }
};

class DeviceBuffers : public test::EachApi {
 protected:
  // Calls check(doubling) for each device of the API; x is 1, 2, 3, 4.
  template <class Check>
  void on_each(const Check& check) {
    for (BackendReport& backend : registry_.backends)
      for (std::unique_ptr<Device>& device : backend.devices) {
        SCOPED_TRACE(device->info().id);
        const Doubling doubling(std::move(device), 4);
        ASSERT_NE(doubling.computation, nullptr);
        const std::array<float, 4> values = {1, 2, 3, 4};
        ASSERT_TRUE(doubling.computation->write("x", std::as_bytes(std::span(values))).has_value());
        ASSERT_TRUE(doubling.computation->run().has_value());
        check(doubling);
        std::array<float, 4> after{};
        ASSERT_TRUE(doubling.computation->read(0, 0, std::as_writable_bytes(std::span(after))).has_value());
        EXPECT_EQ(after, (std::array<float, 4>{2, 4, 6, 8})) << "no refused call has changed anything";
      }
  }
};

TEST_P(DeviceBuffers, AnyBytesInsideCanBeRead) {
  on_each([](const Doubling& doubling) {
    const std::array<float, 4> sums = {2, 4, 6, 8};
    const auto bytes = std::as_bytes(std::span(sums));
    for (std::size_t offset = 0; offset <= bytes.size(); ++offset)
      for (std::size_t count = 0; offset + count <= bytes.size(); ++count) {
        std::vector<std::byte> place(count);
        const Status read = doubling.computation->read(0, offset, place);
        ASSERT_TRUE(read.has_value()) << read.error().message;
        EXPECT_TRUE(std::ranges::equal(place, bytes.subspan(offset, count))) << count << " from " << offset;
      }
  });
}

TEST_P(DeviceBuffers, NothingCanBeReadFromTheEndAndWritten) {
  on_each([](const Doubling& doubling) {
    EXPECT_TRUE(doubling.computation->read(0, 16, {}).has_value()) << "the very end";
    EXPECT_TRUE(doubling.computation->read(0, 0, {}).has_value());
    EXPECT_TRUE(doubling.computation->write("x", {}).has_value());
    EXPECT_EQ(doubling.code_of_read(17, 0), Code::invalid) << "nothing, but past the end";
    EXPECT_EQ(doubling.code_of_read(kLast, 0), Code::invalid);
  });
}

TEST_P(DeviceBuffers, WhatReachesPastTheEndIsInvalid) {
  on_each([](const Doubling& doubling) {
    EXPECT_EQ(doubling.code_of_read(0, 17), Code::invalid);
    EXPECT_EQ(doubling.code_of_read(13, 4), Code::invalid);
    EXPECT_EQ(doubling.code_of_read(16, 1), Code::invalid);
    EXPECT_EQ(doubling.code_of_read(1000, 1), Code::invalid);
    EXPECT_EQ(doubling.code_of_write(17), Code::invalid);
    EXPECT_EQ(doubling.code_of_write(1U << 20U), Code::invalid);
  });
}

TEST_P(DeviceBuffers, AnOffsetThatWrapsAroundIsInvalid) {
  on_each([](const Doubling& doubling) {
    EXPECT_EQ(doubling.code_of_read(kLast, 1), Code::invalid) << "the sum is 0";
    EXPECT_EQ(doubling.code_of_read(kLast - 3, 16), Code::invalid) << "the sum is 12";
    EXPECT_EQ(doubling.code_of_read(kLast - 15, 16), Code::invalid) << "the sum is 0";
    EXPECT_EQ(doubling.code_of_read(std::uint64_t{1} << 63U, 16), Code::invalid);
    EXPECT_EQ(doubling.code_of_read(std::uint64_t{1} << 32U, 16), Code::invalid) << "in 32 bits it is 0";
  });
}

TEST_P(DeviceBuffers, TheFirstBytesOfAnInputCanBeWritten) {
  on_each([](const Doubling& doubling) {
    const std::array<float, 4> values = {1, 2, 3, 4};
    const std::array<float, 4> others = {1.1F, 2.2F, 3.3F, 4.4F};
    for (const std::size_t count : {1U, 2U, 3U, 4U, 6U, 13U, 16U, 0U}) {
      std::array<float, 4> expected = values;
      std::memcpy(expected.data(), others.data(), count);
      ASSERT_TRUE(doubling.computation->write("x", std::as_bytes(std::span(values))).has_value());
      ASSERT_TRUE(doubling.computation->write("x", std::as_bytes(std::span(others)).first(count)).has_value());
      ASSERT_TRUE(doubling.computation->run().has_value());
      std::array<float, 4> sums{};
      ASSERT_TRUE(doubling.computation->read(0, 0, std::as_writable_bytes(std::span(sums))).has_value());
      for (std::size_t i = 0; i < sums.size(); ++i) EXPECT_EQ(sums[i], 2 * expected[i]) << count << " bytes";
    }
  });
}

TEST_P(DeviceBuffers, ATensorWithoutElementsHasNoBytes) {
  for (BackendReport& backend : registry_.backends)
    for (std::unique_ptr<Device>& device : backend.devices) {
      SCOPED_TRACE(device->info().id);
      const Doubling doubling(std::move(device), 0);
      ASSERT_NE(doubling.computation, nullptr);
      EXPECT_TRUE(doubling.computation->write("x", {}).has_value());
      EXPECT_EQ(doubling.code_of_write(1), Code::invalid);
      EXPECT_TRUE(doubling.computation->run().has_value());
      EXPECT_TRUE(doubling.computation->read(0, 0, {}).has_value());
      EXPECT_EQ(doubling.code_of_read(0, 1), Code::invalid);
      EXPECT_EQ(doubling.code_of_read(1, 0), Code::invalid);
    }
}

SHUNT_FOR_APIS(DeviceBuffers, test::all_apis());

}  // namespace
}  // namespace shunt
