// The skeleton keeps the contract as far as it goes.
#include <gtest/gtest.h>

#include <array>

#include "devices/registry.h"

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
  EXPECT_EQ(device_.import_host({}).error().code, Code::unsupported);
  EXPECT_EQ(device_.copy_from_peer(device_, {}, {}).wait().error().message, "null:0 has no link to null:0");
  EXPECT_EQ(device_.allocate(std::uint64_t{1} << 40U, BufferUse::values).error().code, Code::out_of_memory);
}

TEST_F(NullDevice, IsInNoRegistry) {
  const Registry registry = *open_devices({.devices = "cpu", .threads = 1});
  for (const BackendReport& backend : registry.backends) EXPECT_NE(backend.api, "null");
  EXPECT_TRUE(device_.info().emulated);
}

}  // namespace
}  // namespace shunt
