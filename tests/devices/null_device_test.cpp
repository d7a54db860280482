// The skeleton device keeps the contract as far as it can.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "devices/discovery/registry.h"

namespace shunt {

Result<BackendReport> open_null(const OpenOptions& options);

namespace {

class NullDevice : public testing::Test {
 protected:
  BackendReport report_ = *open_null({});
  Device& device_ = *report_.devices.at(0);
};

TEST_F(NullDevice, KeepsWhatIsWritten) {
  const auto buffer = std::move(*device_.allocate(8, BufferUse::state));
  constexpr std::array kWritten{std::byte{1}, std::byte{2}};
  ASSERT_TRUE(device_.write({buffer.get(), 3, 2}, kWritten).wait().has_value());
  std::array<std::byte, 4> read{};
  ASSERT_TRUE(device_.read({buffer.get(), 2, 4}, read).wait().has_value());
  EXPECT_EQ(read, (std::array{std::byte{0}, std::byte{1}, std::byte{2}, std::byte{0}}));
}

TEST_F(NullDevice, SaysWhyItComputesNothing) {
  EXPECT_TRUE(device_.supports({}));
  const OpCall calls[] = {{.op = Op::add}};
  EXPECT_EQ(device_.supports(calls).reason, "add: null:0 has no kernels");
  EXPECT_EQ(device_.prepare({.name = "sum"}).error().code, Code::unsupported);
  EXPECT_EQ(device_.import_host({}, nullptr).error().code, Code::unsupported);
  EXPECT_EQ(device_.allocate(std::uint64_t{1} << 40U, BufferUse::values).error().code, Code::out_of_memory);
}

TEST_F(NullDevice, CopiesWhatTheHostCanAddress) {
  constexpr std::uint64_t kBytes = 3;
  const auto from = std::move(*device_.allocate(kBytes, BufferUse::values));
  const auto to = std::move(*device_.allocate(kBytes + 1, BufferUse::values));
  std::ranges::fill(from->host(), std::byte{7});
  ASSERT_TRUE(device_.copy_from_peer(device_, {from.get(), 1, 2}, {to.get(), 2, 2}).wait());
  EXPECT_THAT(to->host(), testing::ElementsAre(std::byte{0}, std::byte{0}, std::byte{7}, std::byte{7}));
}

TEST_F(NullDevice, IsInNoRegistry) {
  const Registry registry = *open_devices({.devices = "cpu", .threads = 1});
  for (const BackendReport& backend : registry.backends) EXPECT_NE(backend.api, "null");
  EXPECT_TRUE(device_.info().emulated);
}

}  // namespace
}  // namespace shunt
