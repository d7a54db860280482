// Failures of the simulated Metal device surface as the right code at the right event, without leaks.
#include <chrono>

#include "simulated/doubling.h"
#include "simulated/simulated_metal.h"

namespace shunt::simulated {
namespace {

class MetalFaults : public Doubling {
 protected:
  void SetUp() override { open(MetalSimulation::open()); }
  void TearDown() override {
    close();
    MetalSimulation::set_fault(MetalFault::none);
    EXPECT_EQ(MetalSimulation::control().live_objects(), before_);
  }

  void expect_failure(const Status& status, Code code, std::string_view words) {
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, code) << status.error().message;
    EXPECT_NE(status.error().message.find(words), std::string::npos) << status.error().message;
  }

  MetalSimulation simulation_;
  std::uint64_t before_ = MetalSimulation::control().live_objects();
};

TEST_F(MetalFaults, SaysThatItIsSimulatedWhereverItIsListed) {
  const DeviceInfo& info = device().info();
  EXPECT_EQ(info.id, "metal:0");
  EXPECT_NE(info.name.find("simulated"), std::string::npos) << info.name;
  EXPECT_EQ(info.vendor, "simulated");
  EXPECT_EQ(info.type, DeviceType::cpu);
  EXPECT_EQ(info.compute_resource, "cpu");
  EXPECT_EQ(info.details.back(), "simulated");
  EXPECT_TRUE(info.emulated);
  const auto registry = open_devices({.devices = "cpu,metal", .threads = 1, .pin_to_cpus = {}, .known = {}});
  ASSERT_TRUE(registry.has_value());
  const auto chosen = select_devices(*registry, "");
  ASSERT_TRUE(chosen.has_value());
  for (const Device* other : *chosen) EXPECT_NE(other->info().vendor, "simulated");
}

TEST_F(MetalFaults, EachStepIsOneCommandBuffer) {
  const std::uint64_t commits = MetalSimulation::control().commits();
  for (const std::uint32_t tokens : {7U, 30U}) {
    Event event = device().submit(*program_, {.parameters = {.tokens = tokens}});
    ASSERT_TRUE(event.wait().has_value());
    EXPECT_EQ(sum_of_result(), 2.0F * static_cast<float>(tokens));
    ASSERT_TRUE(device().write({y_.get(), 0, kBytes}, std::vector<std::byte>(kBytes)).wait().has_value());
  }
  EXPECT_EQ(MetalSimulation::control().commits(), commits + 2);
}

TEST_F(MetalFaults, AnEventIsPendingUntilTheDeviceIsAsked) {
  Event event = submit();
  EXPECT_FALSE(event.poll());
  EXPECT_TRUE(event.wait().has_value());
  EXPECT_FALSE(device().advance()) << "nothing is left to do";
}

TEST_F(MetalFaults, MemoryIsMappedAndZeroed) {
  auto buffer = device().allocate(7, BufferUse::state);
  ASSERT_TRUE(buffer.has_value());
  ASSERT_EQ((*buffer)->host().size(), 7U);
  for (const std::byte byte : (*buffer)->host()) EXPECT_EQ(byte, std::byte{0});
  EXPECT_TRUE(device().allocate(0, BufferUse::values).has_value());
}

TEST_F(MetalFaults, KernelsAreCompiledForInfinitiesAndNan) { EXPECT_TRUE(MetalSimulation::control().precise()); }

TEST_F(MetalFaults, NoBufferIsOutOfMemoryAndTheDeviceGoesOn) {
  MetalSimulation::set_fault(MetalFault::no_buffer);
  const auto buffer = device().allocate(1 << 20, BufferUse::values);
  ASSERT_FALSE(buffer.has_value());
  EXPECT_EQ(buffer.error().code, Code::out_of_memory);
  EXPECT_NE(buffer.error().message.find("1048576 bytes"), std::string::npos) << buffer.error().message;
  EXPECT_EQ(prepare().error().code, Code::out_of_memory);
  MetalSimulation::set_fault(MetalFault::none);
  EXPECT_TRUE(device().health().status.has_value());
  EXPECT_TRUE(submit().wait().has_value());
  EXPECT_EQ(sum_of_result(), 2.0F * kElements);
  EXPECT_LE(device().memory_available().value_or(device().info().memory_bytes) + 2 * kBytes,
            device().info().memory_bytes);
}

TEST_F(MetalFaults, AnErrorOfAProgramEndsItsEventAndTheDeviceGoesOn) {
  constexpr std::pair<std::int64_t, Code> kErrors[] = {
      {1, Code::internal}, {3, Code::internal}, {8, Code::out_of_memory}, {9, Code::internal}};
  for (const auto& [number, code] : kErrors) {
    MetalSimulation::set_fault(MetalFault::command_error, number);
    Event event = submit();
    EXPECT_FALSE(event.poll()) << "Metal does not know yet";
    expect_failure(event.wait(), code, "program \"sums\" on metal:0: simulated error (" + std::to_string(number) + ")");
    EXPECT_TRUE(device().health().status.has_value());
    EXPECT_EQ(device().health().epoch, 0U);
    EXPECT_TRUE(submit().wait().has_value());
  }
}

TEST_F(MetalFaults, AnErrorOfTheDeviceEndsAllThatIsPending) {
  constexpr std::pair<std::int64_t, Code> kErrors[] = {
      {2, Code::timed_out}, {4, Code::device_lost}, {11, Code::device_lost}};
  for (const auto& [number, code] : kErrors) {
    auto other = prepare();
    ASSERT_TRUE(other.has_value());
    MetalSimulation::set_fault(MetalFault::command_error, number);
    Event first = submit();
    Event second = device().submit(**other, {.parameters = {.tokens = kElements}});
    expect_failure(first.wait(), code, "program \"sums\" on metal:0");
    EXPECT_TRUE(second.poll()) << "it went down with the device";
    expect_failure(second.wait(), code, "simulated error");
    EXPECT_EQ(device().health().status.error().code, code);
    EXPECT_EQ(device().health().epoch, 1U);
    EXPECT_EQ(submit().wait().error().code, code);
    EXPECT_EQ(prepare().error().code, code);
    EXPECT_EQ(device().allocate(16, BufferUse::values).error().code, code);
    EXPECT_EQ(device().write({x_.get(), 0, kBytes}, std::vector<std::byte>(kBytes)).wait().error().code, code);
    other->reset();
    close();
    MetalSimulation::set_fault(MetalFault::none);
    EXPECT_EQ(MetalSimulation::control().live_objects(), before_);
    open(MetalSimulation::open());
    EXPECT_TRUE(submit().wait().has_value()) << "a device opened anew works";
  }
}

TEST_F(MetalFaults, WhatNeverEndsIsTimedOutAndItsMemoryIsKept) {
  MetalSimulation::set_fault(MetalFault::never_done);
  const std::uint64_t held = MetalSimulation::control().live_objects();
  Event event = submit(std::chrono::nanoseconds(0));
  expect_failure(event.wait(), Code::timed_out, "program \"sums\" on metal:0: not done by its deadline");
  EXPECT_EQ(device().health().status.error().code, Code::timed_out);
  EXPECT_EQ(submit().wait().error().code, Code::timed_out);
  std::vector<std::byte> bytes(kBytes);
  EXPECT_EQ(device().read({y_.get(), 0, kBytes}, bytes).wait().error().code, Code::timed_out);
  close();
  EXPECT_GT(MetalSimulation::control().live_objects(), before_) << "the kernel may still write there";
  EXPECT_LT(MetalSimulation::control().live_objects(), held);
}

TEST_F(MetalFaults, AKernelThatDoesNotCompileIsNamed) {
  close();
  MetalSimulation::set_fault(MetalFault::no_library);
  report_ = MetalSimulation::open();
  ASSERT_EQ(report_.devices.size(), 1U) << report_.absent_because;
  x_ = allocate();
  y_ = allocate();
  const auto program = prepare();
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().code, Code::internal);
  EXPECT_NE(program.error().message.find("kernel elementwise on Metal on the CPU: newLibraryWithSource: the simulation "
                                         "has no such kernel (3)"),
            std::string::npos)
      << program.error().message;
}

TEST(MetalAbsence, SaysAtWhichStageItStopped) {
  {
    const MetalSimulation simulation("/nowhere/libnothing.so");
    const BackendReport report = MetalSimulation::open();
    EXPECT_TRUE(report.devices.empty());
    EXPECT_NE(report.absent_because.find("/nowhere/libnothing.so of SHUNT_METAL_LIBRARY"), std::string::npos)
        << report.absent_because;
  }
  {
    const MetalSimulation simulation("libm.so.6");
    EXPECT_NE(MetalSimulation::open().absent_because.find("there is no function "), std::string::npos);
  }
  const MetalSimulation simulation;
  const std::uint64_t before = MetalSimulation::control().live_objects();
  MetalSimulation::set_fault(MetalFault::no_device);
  EXPECT_EQ(MetalSimulation::open().absent_because, "Metal finds no GPU");
  EXPECT_EQ(MetalSimulation::control().live_objects(), before);
}

#if !defined(__APPLE__)
TEST(MetalAbsence, OnAMachineThatIsNotApplesItSaysSo) {
  ASSERT_EQ(std::getenv("SHUNT_METAL_LIBRARY"), nullptr);
  EXPECT_NE(MetalSimulation::open().absent_because.find("Metal is Apple's"), std::string::npos);
}
#endif

}  // namespace
}  // namespace shunt::simulated
