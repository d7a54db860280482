// Failures of Vulkan surface as the right code at the right event, and nothing hangs.
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <string_view>
#include <thread>

#include "devices/each_api.h"
#include "devices/faulty_vulkan.h"
#include "devices/one_add.h"

namespace shunt {
namespace {

using test::VulkanFault;

// Replaces Vulkan's library with the tests' own, whose devices pretend to be what the parameter says.
class VulkanFaults : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    ASSERT_EQ(setenv("SHUNT_VULKAN_LIBRARY", SHUNT_FAULTY_VULKAN, 1), 0);
    ASSERT_EQ(setenv("SHUNT_VULKAN_PRETENDS", GetParam(), 1), 0);
    open();
    if (registry_.devices().empty()) {
      if (test::is_expected("vulkan")) FAIL() << "vulkan is absent";
      GTEST_SKIP() << "vulkan is absent";
    }
    library_ = dlopen(SHUNT_FAULTY_VULKAN, RTLD_NOW | RTLD_NOLOAD);
    ASSERT_NE(library_, nullptr);
    set_fault_ = reinterpret_cast<decltype(&set_vulkan_fault)>(dlsym(library_, "set_vulkan_fault"));
    blocks_ = reinterpret_cast<decltype(&vulkan_blocks)>(dlsym(library_, "vulkan_blocks"));
    release_ = reinterpret_cast<decltype(&release_vulkan_submissions)>(dlsym(library_, "release_vulkan_submissions"));
    submissions_ = reinterpret_cast<decltype(&vulkan_submissions)>(dlsym(library_, "vulkan_submissions"));
  }
  void TearDown() override {
    if (set_fault_ != nullptr) set_fault_(VulkanFault::none, 0);
    registry_ = {};
    if (library_ != nullptr) dlclose(library_);
    unsetenv("SHUNT_VULKAN_LIBRARY");
    unsetenv("SHUNT_VULKAN_PRETENDS");
  }
  void open() {
    registry_ = *open_devices({.devices = "vulkan", .recorder = &recorder_});
    if (!registry_.devices().empty()) device_ = registry_.devices().front();
  }
  [[nodiscard]] std::string absence() const {
    return std::ranges::find(registry_.backends, "vulkan", &BackendReport::api)->absent_because;
  }
  void set_fault(VulkanFault fault, int after = 0) { set_fault_(fault, after); }
  // Returns whether the memory is the device's own, which the host reaches only through copies.
  [[nodiscard]] static bool stages() { return std::string_view(GetParam()).contains("discrete"); }

  trace::Recorder recorder_;
  Registry registry_;
  Device* device_ = nullptr;
  void* library_ = nullptr;
  decltype(&set_vulkan_fault) set_fault_ = nullptr;
  decltype(&vulkan_blocks) blocks_ = nullptr;
  decltype(&vulkan_submissions) submissions_ = nullptr;
  decltype(&release_vulkan_submissions) release_ = nullptr;
};

INSTANTIATE_TEST_SUITE_P(Pretending, VulkanFaults, testing::Values("fences", "discrete queues", "integrated"),
                         [](const auto& test) {
                           std::string name = test.param;
                           std::ranges::replace(name, ' ', '_');
                           return name;
                         });

// Devices whose memory the host reaches only through copies.
class VulkanStaging : public VulkanFaults {};
INSTANTIATE_TEST_SUITE_P(Pretending, VulkanStaging, testing::Values("discrete queues"),
                         [](const auto&) { return std::string("discrete_queues"); });

std::vector<std::byte> pattern(std::size_t bytes, std::size_t seed) {
  std::vector<std::byte> content(bytes);
  for (std::size_t i = 0; i < bytes; ++i) content[i] = static_cast<std::byte>(i * 31 + (i >> 12U) + seed);
  return content;
}

std::vector<std::byte> content_of(Device& device, Buffer& buffer) {
  std::vector<std::byte> content(buffer.bytes());
  const Status read = device.read({&buffer, 0, content.size()}, content).wait();
  EXPECT_TRUE(read.has_value()) << read.error().message;
  return content;
}

TEST_P(VulkanFaults, WithoutAFaultTheLibraryIsTheRealOne) {
  test::OneAdd add(*device_);
  ASSERT_TRUE(add.status()) << add.status().error().message;
  EXPECT_TRUE(add.run().has_value());
  EXPECT_EQ(add.result(), (std::vector<float>{11, 22, 33, 44}));
  EXPECT_TRUE(device_->health().status.has_value());
}

TEST_P(VulkanFaults, BytesComeBackAsTheyWereWrittenAndTheRestIsZero) {
  constexpr std::uint64_t kBytes = (std::uint64_t{17} << 20U) + 7;  // more than is read at a time
  auto buffer = device_->allocate(kBytes, BufferUse::values);
  ASSERT_TRUE(buffer.has_value()) << buffer.error().message;
  EXPECT_EQ((*buffer)->host().empty(), stages());
  std::vector<std::byte> expected(kBytes);
  const auto write = [&](std::uint64_t offset, const std::vector<std::byte>& bytes) {
    EXPECT_TRUE(device_->write({buffer->get(), offset, bytes.size()}, bytes).wait().has_value());
    std::ranges::copy(bytes, expected.begin() + static_cast<std::ptrdiff_t>(offset));
  };
  write(3, pattern(5, 1));
  write(4, pattern(9 << 20U, 2));  // over a small write that may still be pending
  write(kBytes - 5, pattern(5, 3));
  write(100, pattern(17, 4));
  EXPECT_TRUE(content_of(*device_, **buffer) == expected);
  std::vector<std::byte> part(6);
  ASSERT_TRUE(device_->read({buffer->get(), 99, part.size()}, part).wait().has_value());
  EXPECT_TRUE(std::ranges::equal(part, std::span(expected).subspan(99, 6)));
}

TEST_P(VulkanStaging, MoreIsWrittenThanFitsBetweenTheHostAndTheDevice) {
  const std::vector<std::byte> content = pattern(std::size_t{34} << 20U, 5);
  auto buffer = device_->allocate(content.size(), BufferUse::weights);
  ASSERT_TRUE(buffer.has_value()) << buffer.error().message;
  ASSERT_TRUE(device_->write({buffer->get(), 0, content.size()}, content).wait().has_value());
  EXPECT_TRUE(content_of(*device_, **buffer) == content);
}

TEST_P(VulkanFaults, APendingReadSeesTheProgramBeforeItAndNotTheWriteAfterIt) {
  test::OneAdd add(*device_);
  Event run = add.start();
  std::vector<float> sums(4);
  Event read = device_->read(add.sum(), std::as_writable_bytes(std::span(sums)));
  const std::vector<float> other = {1, 1, 1, 1};
  ASSERT_TRUE(device_->write(add.sum(), std::as_bytes(std::span(other))).wait().has_value());
  ASSERT_TRUE(read.wait().has_value());
  ASSERT_TRUE(run.wait().has_value());
  EXPECT_EQ(sums, (std::vector<float>{11, 22, 33, 44}));
  EXPECT_EQ(add.result(), other);
}

TEST_P(VulkanStaging, WhatAProgramBringsIsReadWithoutAskingTheDevice) {
  test::OneAdd add(*device_, {}, true);
  ASSERT_TRUE(add.run().has_value());
  const int before = submissions_();
  EXPECT_EQ(add.result(), (std::vector<float>{11, 22, 33, 44}));
  std::vector<float> part(2);
  const Binding inside{add.sum().buffer, add.sum().offset + 4, 8};
  ASSERT_TRUE(device_->read(inside, std::as_writable_bytes(std::span(part))).wait().has_value());
  EXPECT_EQ(part, (std::vector<float>{22, 33}));
  EXPECT_EQ(submissions_(), before);
}

TEST_P(VulkanStaging, WhatAProgramBroughtIsForgottenWhenTheBufferChanges) {
  test::OneAdd add(*device_, {}, true);
  ASSERT_TRUE(add.run().has_value());
  const float one = 1;
  const Binding second{add.sum().buffer, add.sum().offset + 4, 4};
  ASSERT_TRUE(device_->write(second, std::as_bytes(std::span(&one, 1))).wait().has_value());
  EXPECT_EQ(add.result(), (std::vector<float>{11, 1, 33, 44}));
  ASSERT_TRUE(add.run().has_value());
  EXPECT_EQ(add.result(), (std::vector<float>{11, 22, 33, 44}));

  test::OneAdd other(*device_);
  ASSERT_TRUE(other.run().has_value());
  const Operand four = Operand::contiguous(DType::F32, Shape{4});
  const std::array inputs{&four, &four};
  const Attributes none;
  const ProgramOp twice{.call = {Op::add, &none, inputs, &four},
                        .inputs = {other.sum(), other.sum()},
                        .output = add.sum(),
                        .name = "twice"};
  const auto program = device_->prepare({.name = "twice", .ops = {&twice, 1}});
  ASSERT_TRUE(program.has_value()) << program.error().message;
  ASSERT_TRUE(device_->submit(**program, {}).wait().has_value());
  EXPECT_EQ(add.result(), (std::vector<float>{22, 44, 66, 88}));
}

TEST_P(VulkanStaging, ALargeWriteWaitsForTheProgramThatReadsWhatItChanges) {
  std::vector<float> values(1U << 18U, 5.0F);
  const auto bytes = std::as_writable_bytes(std::span(values));
  auto buffer = device_->allocate(bytes.size(), BufferUse::values);
  ASSERT_TRUE(buffer.has_value());
  const Binding all{buffer->get(), 0, bytes.size()};
  ASSERT_TRUE(device_->write(all, bytes).wait().has_value());
  test::OneAdd add(*device_, {buffer->get(), 0, 16});
  Event run = add.start();
  std::ranges::fill(values, 7.0F);
  ASSERT_TRUE(device_->write(all, bytes).wait().has_value());
  std::ranges::fill(values, 0.0F);
  EXPECT_TRUE(device_->read(all, bytes).wait().has_value());
  EXPECT_TRUE(run.wait().has_value());
  EXPECT_EQ(std::ranges::count(values, 7.0F), static_cast<std::ptrdiff_t>(values.size()));
  EXPECT_EQ(add.result(), (std::vector<float>{15, 25, 35, 45}));
  EXPECT_TRUE(add.run().has_value());
  EXPECT_EQ(add.result(), (std::vector<float>{17, 27, 37, 47}));
}

TEST_P(VulkanStaging, ABufferMayEndWhileItsBytesAreOnTheirWay) {
  const std::vector<std::byte> content = pattern(4 << 20U, 6);
  for (int i = 0; i < 9; ++i) {
    auto buffer = device_->allocate(content.size(), BufferUse::values);
    ASSERT_TRUE(buffer.has_value());
    ASSERT_TRUE(device_->write({buffer->get(), 0, content.size()}, content).wait().has_value());
  }
  test::OneAdd add(*device_);
  EXPECT_TRUE(add.run().has_value());
  EXPECT_EQ(add.result(), (std::vector<float>{11, 22, 33, 44}));
}

TEST_P(VulkanFaults, SmallBuffersShareMemoryAndAreZeroedWhenUsedAgain) {
  std::vector<std::unique_ptr<Buffer>> buffers;
  const int before = blocks_();
  for (int i = 0; i < 64; ++i) {
    auto buffer = device_->allocate(10'000, BufferUse::values);
    ASSERT_TRUE(buffer.has_value());
    ASSERT_TRUE(device_->write({buffer->get(), 0, 10'000}, pattern(10'000, 7)).wait().has_value());
    buffers.push_back(std::move(*buffer));
  }
  EXPECT_LE(blocks_() - before, stages() ? 3 : 1) << "64 buffers, and memory to stage their bytes";
  EXPECT_TRUE(content_of(*device_, *buffers[63]) == pattern(10'000, 7));
  buffers.clear();
  for (int i = 0; i < 64; ++i) {
    auto buffer = device_->allocate(10'000, BufferUse::values);
    ASSERT_TRUE(buffer.has_value());
    EXPECT_TRUE(content_of(*device_, **buffer) == std::vector<std::byte>(10'000));
    buffers.push_back(std::move(*buffer));
  }
}

TEST_P(VulkanFaults, ALargeBufferGivesItsMemoryBackAtOnce) {
  const int before = blocks_();
  auto buffer = device_->allocate(std::uint64_t{200} << 20U, BufferUse::weights);
  ASSERT_TRUE(buffer.has_value()) << buffer.error().message;
  EXPECT_EQ(blocks_(), before + 1);
  buffer->reset();
  // The buffer is no longer a copy target.
  ASSERT_TRUE(device_->allocate(16, BufferUse::values).has_value());
  auto other = device_->allocate(16, BufferUse::values);
  ASSERT_TRUE(other.has_value());
  EXPECT_TRUE(content_of(*device_, **other) == std::vector<std::byte>(16));
  EXPECT_LE(blocks_(), before + (stages() ? 3 : 1));
}

TEST_P(VulkanFaults, AProfiledProgramRecordsItsOpsByTheDevicesClock) {
  recorder_.set_enabled(true);
  test::OneAdd add(*device_);
  ASSERT_TRUE(add.run().has_value());
  EXPECT_EQ(recorder_.snapshot().size(), 1U) << "only the program, as nobody asked for more";
  ASSERT_TRUE(add.start({.step = 7, .profile = true}).wait().has_value());
  const std::vector<trace::ExecutionEvent> events = recorder_.snapshot();
  if (!device_->info().features.contains(DeviceFeature::timestamps)) return;
  ASSERT_EQ(events.size(), 3U);
  const trace::ExecutionEvent& program = events[1];
  const trace::ExecutionEvent& op = events[2];
  EXPECT_EQ(program.kind, trace::Kind::program);
  EXPECT_EQ(op.kind, trace::Kind::op);
  EXPECT_EQ(recorder_.text_of(op.what), "add sum");
  EXPECT_EQ(op.step, 7U);
  EXPECT_GE(op.start_ns, program.start_ns);
  EXPECT_LE(op.start_ns + op.duration_ns, program.start_ns + program.duration_ns);
  EXPECT_EQ(add.result(), (std::vector<float>{11, 22, 33, 44}));
}

TEST_P(VulkanFaults, AnAllocationThatFailsIsOutOfMemoryAndTheDeviceGoesOn) {
  constexpr std::uint64_t kBytes = std::uint64_t{300} << 20U;
  set_fault(VulkanFault::allocation_fails);
  const auto refused = device_->allocate(kBytes, BufferUse::values);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
  EXPECT_NE(refused.error().message.find("314572800 bytes"), std::string::npos) << refused.error().message;
  EXPECT_TRUE(device_->health().status.has_value());
  set_fault(VulkanFault::none);
  EXPECT_TRUE(device_->allocate(kBytes, BufferUse::values).has_value());
}

TEST_P(VulkanStaging, WhicheverAllocationFailsItIsOutOfMemory) {
  int after = 0;
  for (bool failed = true; failed; ++after) {
    ASSERT_LT(after, 20);
    registry_ = {};
    open();
    if (device_ == nullptr || registry_.devices().empty()) FAIL() << "it was there before";
    set_fault(VulkanFault::allocation_fails, after);
    test::OneAdd add(*device_);
    Status done = add.run();
    if (done) {
      static_cast<void>(add.result());
      done = add.status();
    }
    failed = !done;
    if (failed) {
      EXPECT_EQ(done.error().code, Code::out_of_memory) << done.error().message;
    }
    EXPECT_TRUE(device_->health().status.has_value());
    set_fault(VulkanFault::none);
  }
  EXPECT_GE(after, 2) << "none was made to fail";
}

TEST_P(VulkanFaults, MoreThanTheDriverGivesIsOutOfMemory) {
  const auto refused = device_->allocate(std::uint64_t{1} << 46U, BufferUse::values);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
  EXPECT_NE(refused.error().message.find("70368744177664 bytes"), std::string::npos) << refused.error().message;
}

void expect_the_end(Device& device, Code code) {
  const Health health = device.health();
  ASSERT_FALSE(health.status.has_value());
  EXPECT_EQ(health.status.error().code, code);
  EXPECT_EQ(health.epoch, 1U);
  const auto refused = device.allocate(16, BufferUse::values);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, code);
}

TEST_P(VulkanFaults, ADeviceLostAtSubmissionEndsTheEvent) {
  test::OneAdd add(*device_);
  set_fault(VulkanFault::submit_loses_device);
  const Status done = add.run();
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::device_lost);
  set_fault(VulkanFault::none);
  expect_the_end(*device_, Code::device_lost);
  EXPECT_EQ(add.run().error().code, Code::device_lost) << "what is lost stays lost";
}

TEST_P(VulkanFaults, ADeviceLostLateEndsTheEventOfThatSubmission) {
  test::OneAdd add(*device_);
  ASSERT_TRUE(add.status().has_value());
  set_fault(VulkanFault::wait_loses_device);
  const Status done = add.run();
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::device_lost);
  EXPECT_NE(done.error().message.find("one add"), std::string::npos) << done.error().message;
  set_fault(VulkanFault::none);
  expect_the_end(*device_, Code::device_lost);
}

TEST_P(VulkanStaging, ADeviceLostInATransferIsLost) {
  const std::vector<std::byte> content = pattern(1 << 20U, 8);
  for (const VulkanFault fault : {VulkanFault::submit_loses_device, VulkanFault::wait_loses_device}) {
    registry_ = {};
    open();
    auto buffer = device_->allocate(content.size(), BufferUse::values);
    ASSERT_TRUE(buffer.has_value());
    set_fault(fault);
    Status moved = device_->write({buffer->get(), 0, content.size()}, content).wait();
    std::vector<std::byte> back(content.size());
    if (moved) moved = device_->read({buffer->get(), 0, back.size()}, back).wait();
    ASSERT_FALSE(moved.has_value());
    EXPECT_EQ(moved.error().code, Code::device_lost);
    set_fault(VulkanFault::none);
    expect_the_end(*device_, Code::device_lost);
  }
}

TEST_P(VulkanFaults, ASubmissionThatNeverCompletesTimesOut) {
  test::OneAdd add(*device_);
  test::OneAdd another(*device_);
  ASSERT_TRUE(add.status().has_value());
  set_fault(VulkanFault::never_completes);
  Event run = add.start({.timeout = std::chrono::nanoseconds(0)});
  Event next = another.start();
  std::vector<float> sums(4);
  Event read = device_->read(another.sum(), std::as_writable_bytes(std::span(sums)));
  EXPECT_EQ(run.wait().error().code, Code::timed_out);
  EXPECT_EQ(next.wait().error().code, Code::timed_out) << "it would never get its turn";
  EXPECT_EQ(read.wait().error().code, Code::timed_out) << "what is read is never there";
  set_fault(VulkanFault::none);
  expect_the_end(*device_, Code::timed_out);
}

TEST_P(VulkanFaults, WhatIsAvailableIsAskedOfTheDriverAndCountsBlocksThatAreNotFull) {
  registry_ = {};
  ASSERT_EQ(setenv("SHUNT_VULKAN_PRETENDS", "budget", 1), 0);
  open();
  constexpr std::uint64_t kLeft = std::uint64_t{1} << 29U;
  const auto before = device_->memory_available();
  ASSERT_TRUE(before.has_value());
  EXPECT_GE(*before, kLeft);
  const auto buffer = device_->allocate(std::uint64_t{1} << 20U, BufferUse::values);
  ASSERT_TRUE(buffer.has_value());
  const auto after = device_->memory_available();
  ASSERT_TRUE(after.has_value());
  EXPECT_GE(*after, kLeft);
  EXPECT_NE(*after, *before) << "what is free of blocks has changed";
}

TEST_P(VulkanFaults, MemoryOfTheHostIsUsedInPlaceWhereItIsTheDevicesToo) {
  std::vector<float> values(4096);
  std::iota(values.begin(), values.end(), 1.0F);
  // Kernels read it from any offset that is valid for their bindings.
  const auto address = reinterpret_cast<std::uintptr_t>(values.data());
  const std::span<const float> aligned = std::span(values).subspan((256 - address % 256) / sizeof(float), 1024);
  const std::shared_ptr<const void> owner(values.data(), [](const void*) {});
  const auto imported = device_->import_host(std::as_bytes(aligned), owner);
  const bool may = !stages() && std::ranges::count(device_->info().details, "imports host memory") != 0;
  ASSERT_EQ(imported.has_value(), may) << (imported ? "it was imported" : imported.error().message);
  if (!imported) {
    EXPECT_EQ(imported.error().code, Code::unsupported);
    return;
  }
  std::vector<float> back(1024);
  ASSERT_TRUE(device_->read({imported->get(), 0, 4096}, std::as_writable_bytes(std::span(back))).wait().has_value());
  EXPECT_TRUE(std::ranges::equal(back, aligned));
  test::OneAdd add(*device_, {imported->get(), 256, 16});
  ASSERT_TRUE(add.run().has_value());
  EXPECT_EQ(add.result(), (std::vector<float>{aligned[64] + 10, aligned[65] + 20, aligned[66] + 30, aligned[67] + 40}));
  const auto odd = device_->import_host(std::as_bytes(aligned).subspan(1), owner);
  ASSERT_FALSE(odd.has_value());
  EXPECT_EQ(odd.error().code, Code::unsupported);
  EXPECT_EQ(device_->import_host(std::as_bytes(aligned), nullptr).error().code, Code::unsupported)
      << "nobody keeps it for a submission that outlives its deadline";
}

// The submission starts after everything it touches has been closed.
TEST_P(VulkanFaults, WhatASubmissionMayStillTouchOutlivesAllThatWasClosed) {
  constexpr std::size_t kPage = 4096;
  std::shared_ptr<std::byte> pages(static_cast<std::byte*>(std::aligned_alloc(kPage, kPage)), std::free);
  std::memcpy(pages.get(), std::array<float, 4>{1, 2, 3, 4}.data(), 4 * sizeof(float));
  const std::weak_ptr<std::byte> alive = pages;
  auto imported = device_->import_host({pages.get(), kPage}, pages);
  const bool imports = std::string_view(GetParam()).contains("integrated") &&
                       std::ranges::count(device_->info().details, "imports host memory") != 0;
  ASSERT_EQ(imported.has_value(), imports);
  {
    test::OneAdd add(*device_, imports ? Binding{imported->get(), 0, 16} : Binding{});
    ASSERT_TRUE(add.run().has_value());
    set_fault(VulkanFault::holds_submissions);
    EXPECT_EQ(add.run(std::chrono::nanoseconds(1)).error().code, Code::timed_out);
  }
  if (imports) imported->reset();
  pages.reset();
  registry_ = {};
  EXPECT_EQ(alive.expired(), !imports) << "it is kept for the submission, and only for that";
  release_();
}

TEST_P(VulkanFaults, ClosingDoesNotWaitForWhatNeverEnds) {
  {
    test::OneAdd add(*device_);
    set_fault(VulkanFault::holds_submissions);
    EXPECT_EQ(add.run(std::chrono::nanoseconds(1)).error().code, Code::timed_out);
  }
  registry_ = {};
}

TEST_P(VulkanFaults, ADeviceBelowWhatKernelsNeedIsAbsentAndSaysOfWhat) {
  registry_ = {};
  ASSERT_EQ(setenv("SHUNT_VULKAN_PRETENDS", "limits", 1), 0);
  open();
  ASSERT_TRUE(registry_.devices().empty());
  const std::string why = absence();
  EXPECT_NE(why.find("maxPerStageDescriptorStorageBuffers is 4, and kernels need 8"), std::string::npos) << why;
}

// Mesa's driver exposes both clocks.
TEST(Vulkan, AProgramEndedWhenTheDeviceSaysThoughNobodyLooked) {
  trace::Recorder recorder;
  recorder.set_enabled(true);
  const Registry registry = *open_devices({.devices = "vulkan", .recorder = &recorder});
  const auto devices = registry.devices();
  const auto mesa = std::ranges::find(devices, "Mesa", [](const Device* device) { return device->info().vendor; });
  if (mesa == devices.end()) {
    if (test::is_expected("vulkan")) FAIL() << "Mesa's driver is absent";
    GTEST_SKIP() << "Mesa's driver is absent";
  }
  test::OneAdd add(**mesa);
  ASSERT_TRUE(add.run().has_value());
  // On a busy machine the first pauses may be too short.
  constexpr std::chrono::seconds kLongestPause{10};
  bool is_over = false;
  for (std::chrono::milliseconds pause{10}; !is_over && pause < kLongestPause; pause *= 2) {
    const std::uint64_t begin_ns = trace::now_ns();
    Event event = add.start();
    std::this_thread::sleep_for(pause);
    const std::uint64_t look_ns = trace::now_ns();
    ASSERT_TRUE(event.wait().has_value());
    const trace::ExecutionEvent program = recorder.snapshot().back();
    EXPECT_GE(program.start_ns, begin_ns);
    EXPECT_GT(program.duration_ns, 0U);
    is_over = program.start_ns + program.duration_ns < look_ns;
  }
  EXPECT_TRUE(is_over);
}

TEST(Vulkan, WithoutItsLibraryItIsAbsentAndSaysWhy) {
  ASSERT_EQ(setenv("SHUNT_VULKAN_LIBRARY", "/nowhere/libvulkan.so.1", 1), 0);
  const Registry registry = *open_devices({.devices = "vulkan"});
  unsetenv("SHUNT_VULKAN_LIBRARY");
  EXPECT_TRUE(registry.devices().empty());
  const auto vulkan = std::ranges::find(registry.backends, "vulkan", &BackendReport::api);
  ASSERT_NE(vulkan, registry.backends.end());
  EXPECT_NE(vulkan->absent_because.find("/nowhere/libvulkan.so.1"), std::string::npos) << vulkan->absent_because;
}

}  // namespace
}  // namespace shunt
