#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>

#include "devices/cpu/memory.h"
#include "devices/cpu/program.h"
#include "devices/discovery/registry.h"

namespace shunt {
namespace {

class CpuDevices : public testing::Test {
 protected:
  Registry registry_ = *open_devices({.devices = "cpu", .threads = 2});
  Device& scalar() { return *(*select_devices(registry_, "cpu:scalar"))[0]; }
};

std::span<const std::byte> bytes(const std::vector<float>& values) { return std::as_bytes(std::span(values)); }

// z = x + y over `count` floats in one buffer.
struct AddCase {
  Operand operand;
  const Operand* inputs[2] = {&operand, &operand};
  Attributes attributes;
  std::unique_ptr<Buffer> buffer;
  std::vector<ProgramOp> ops;

  AddCase(Device& device, std::uint32_t count, Extent extent = Extent::fixed)
      : operand(Operand::contiguous(DType::F32, {count, 1}, TensorKind::value, extent)) {
    const std::uint64_t size = count * sizeof(float);
    buffer = std::move(*device.allocate(3 * size, BufferUse::values));
    ops.push_back({.call = {.op = Op::add, .attributes = &attributes, .inputs = inputs, .output = &operand},
                   .inputs = {{buffer.get(), 0, size}, {buffer.get(), size, size}},
                   .output = {buffer.get(), 2 * size, size},
                   .name = "sum"});
  }
};

// Returns whether the system was asked for huge pages at an address: whether its mapping in /proc/self/smaps has the
// flag "hg" (Linux, Documentation/filesystems/proc.rst).
bool wants_huge_pages(const std::byte* address) {
  std::ifstream maps("/proc/self/smaps");
  std::string line;
  bool is_here = false;
  while (std::getline(maps, line)) {
    std::istringstream range(line);  // "7f3c00000000-7f3c00400000 rw-p"
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    char dash = 0;
    if (range >> std::hex >> begin >> dash >> end && dash == '-') {
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      is_here = begin <= at && at < end;
    }
    if (is_here && line.starts_with("VmFlags:")) return (line + " ").find(" hg ") != std::string::npos;
  }
  return false;
}

TEST_F(CpuDevices, StateHasHugePagesBehindItsStart) {
  if (!std::filesystem::exists("/sys/kernel/mm/transparent_hugepage")) GTEST_SKIP() << "the system has none";
  constexpr std::size_t kBytes = 4 * cpu::kSmallPagesBytes;
  const auto state = *scalar().allocate(kBytes, BufferUse::state);
  const auto values = *scalar().allocate(kBytes, BufferUse::values);
  EXPECT_FALSE(wants_huge_pages(state->host().data() + cpu::kSmallPagesBytes - 1));
  EXPECT_TRUE(wants_huge_pages(state->host().data() + cpu::kSmallPagesBytes));
  EXPECT_TRUE(wants_huge_pages(state->host().data() + kBytes - 1));
  EXPECT_FALSE(wants_huge_pages(values->host().data() + kBytes - 1));
  EXPECT_EQ((*scalar().allocate(100, BufferUse::state))->bytes(), 100U);
}

TEST_F(CpuDevices, AreTwoOnOneResourceAndOnePool) {
  const auto devices = registry_.devices();
  ASSERT_EQ(devices.size(), 2U);
  EXPECT_EQ(devices[0]->info().id, "cpu:simd");
  EXPECT_EQ(devices[1]->info().id, "cpu:scalar");
  EXPECT_EQ(devices[0]->info().compute_resource, devices[1]->info().compute_resource);
  EXPECT_EQ(devices[0]->info().memory_pool, devices[1]->info().memory_pool);
  EXPECT_EQ(devices[0]->info().compute_units, 2U);
}

TEST_F(CpuDevices, AreSelectedByIdAndByApiInTheOrderGiven) {
  const auto chosen = select_devices(registry_, " cpu:scalar, cpu");
  ASSERT_TRUE(chosen.has_value());
  ASSERT_EQ(chosen->size(), 2U);
  EXPECT_EQ((*chosen)[0]->info().id, "cpu:scalar");
  const auto unknown = select_devices(registry_, "cpu,gpu:7");
  ASSERT_FALSE(unknown.has_value());
  EXPECT_EQ(unknown.error().code, Code::invalid);
  EXPECT_EQ(unknown.error().message, "unknown device \"gpu:7\"; choose from: cpu:simd cpu:scalar");
}

TEST_F(CpuDevices, ComputeWhatWasWritten) {
  for (Device* device : registry_.devices()) {
    AddCase add(*device, 5);
    auto program = device->prepare({.name = "add", .ops = add.ops});
    ASSERT_TRUE(program.has_value()) << program.error().message;
    const std::vector<float> x{1, 2, 3, 4, 5, 10, 20, 30, 40, 50};
    ASSERT_TRUE(device->write({add.buffer.get(), 0, 40}, bytes(x)).wait().has_value());
    ASSERT_TRUE(device->submit(**program, {}).wait().has_value());
    std::vector<float> sum(5);
    ASSERT_TRUE(device->read({add.buffer.get(), 40, 20}, std::as_writable_bytes(std::span(sum))).wait().has_value());
    EXPECT_EQ(sum, (std::vector<float>{11, 22, 33, 44, 55}));
  }
}

TEST_F(CpuDevices, TouchOnlyTheRowsThatAParameterBlockCallsValid) {
  AddCase add(scalar(), 4, Extent::tokens);
  auto program = scalar().prepare({.name = "add", .ops = add.ops});
  ASSERT_TRUE(program.has_value());
  std::vector<float> all(12, 1);
  ASSERT_TRUE(scalar().write({add.buffer.get(), 0, 48}, bytes(all)).wait().has_value());
  ASSERT_TRUE(scalar().submit(**program, {.parameters = {.tokens = 3}}).wait().has_value());
  ASSERT_TRUE(scalar().read({add.buffer.get(), 0, 48}, std::as_writable_bytes(std::span(all))).wait().has_value());
  EXPECT_EQ(all, (std::vector<float>{1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 1}));
}

TEST_F(CpuDevices, AnExpiredTimeoutSurfacesAtTheEvent) {
  AddCase add(scalar(), 4);
  auto program = scalar().prepare({.name = "add", .ops = add.ops});
  ASSERT_TRUE(program.has_value());
  const Status status = scalar().submit(**program, {.timeout = std::chrono::nanoseconds(-1)}).wait();
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Code::timed_out);
  EXPECT_TRUE(scalar().submit(**program, {}).wait().has_value());
}

TEST_F(CpuDevices, EventsCallBackOnceAndCanBeAwaitedFromAnotherThread) {
  AddCase add(scalar(), 4);
  auto program = scalar().prepare({.name = "add", .ops = add.ops});
  ASSERT_TRUE(program.has_value());
  for (int repeat = 0; repeat < 100; ++repeat) {
    Event event = scalar().submit(**program, {});
    std::atomic<int> calls{0};
    event.on_done([&](const Status& status) { calls += status ? 1 : 100; });
    std::thread other([event]() mutable { EXPECT_TRUE(event.wait().has_value()); });
    EXPECT_TRUE(event.wait().has_value());
    other.join();
    EXPECT_EQ(calls.load(), 1);
    event.on_done([&](const Status&) { ++calls; });
    EXPECT_EQ(calls.load(), 2);
  }
}

TEST_F(CpuDevices, ServeTwoThreadsWithOneDeviceEach) {
  std::vector<std::thread> users;
  for (Device* device : registry_.devices())
    users.emplace_back([device] {
      AddCase add(*device, 4);
      const auto program = device->prepare({.name = "add", .ops = add.ops});
      ASSERT_TRUE(program.has_value());
      for (int repeat = 0; repeat < 5000; ++repeat) ASSERT_TRUE(device->submit(**program, {}).wait().has_value());
    });
  for (std::thread& user : users) user.join();
}

// As long as a core's own cache holds them.
TEST_F(CpuDevices, FetchTheMatricesThatOpsReadWhole) {
  const Attributes attributes;
  const Operand rows = Operand::contiguous(DType::F32, {8, 16}, TensorKind::weight);
  const Operand id = Operand::contiguous(DType::I32, {1});
  const Operand x = Operand::contiguous(DType::F32, {1, 16});
  const Operand sum = Operand::contiguous(DType::F32, {1, 8});
  const Operand* gathers[] = {&rows, &id};
  const Operand* adds[] = {&x, &rows, &sum};
  const auto buffer = *scalar().allocate(4096, BufferUse::values);
  const auto at = [&](std::uint64_t offset, const Operand& operand) {
    return Binding{.buffer = buffer.get(), .offset = offset, .bytes = operand.span_bytes()};
  };
  const ProgramOp ops[] = {{.call = {Op::gather, &attributes, gathers, &x},
                            .inputs = {at(0, rows), at(512, id)},
                            .output = at(1024, x),
                            .name = "row"},
                           {.call = {Op::linear_add, &attributes, adds, &sum},
                            .inputs = {at(1024, x), at(1536, rows), at(2048, sum)},
                            .output = at(3072, sum),
                            .name = "sum"}};
  const auto program = scalar().prepare({.name = "both", .ops = ops});
  ASSERT_TRUE(program.has_value()) << program.error().message;
  const auto reads = static_cast<const cpu::CpuProgram&>(**program).first_reads();
  ASSERT_EQ(reads.size(), 2U);
  const std::byte* const weight = buffer->host().data() + 1536;
  for (std::size_t thread = 0; thread < 2; ++thread) {
    EXPECT_EQ(reads[thread][0].data(), weight + 256 * thread);
    EXPECT_EQ(reads[thread][0].size(), 256U);
    EXPECT_TRUE(reads[thread][1].empty());
  }
}

TEST_F(CpuDevices, SayWhyTheyCannotRunAnOp) {
  const Attributes attributes;
  const Operand operand = Operand::contiguous(DType::F32, {4});
  const Operand* inputs[] = {&operand};
  const OpCall calls[] = {{.op = Op::reshape, .attributes = &attributes, .inputs = inputs, .output = &operand}};
  for (Device* device : registry_.devices())
    EXPECT_EQ(device->supports(calls).reason, "reshape: " + device->info().id + " has no kernel of the family");
}

TEST_F(CpuDevices, RefuseMoreMemoryThanThereIs) {
  const auto buffer = scalar().allocate(std::uint64_t{1} << 60U, BufferUse::values);
  ASSERT_FALSE(buffer.has_value());
  EXPECT_EQ(buffer.error().code, Code::out_of_memory);
}

}  // namespace
}  // namespace shunt
