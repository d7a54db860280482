// Specifics of WebGPU: errors that arrive late, four-byte words, and operands that must not overlap.
//
// Runs on SwiftShader. Without Dawn or SwiftShader the tests are skipped and say why; if SHUNT_EXPECT_APIS names
// webgpu, that is a failure.
#include "devices/webgpu/device.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <numeric>
#include <sstream>

#include "base/own_cache.h"
#include "devices/discovery/registry.h"

namespace shunt::webgpu {
namespace {

using test::Setting;

constexpr const char* kDawn = SHUNT_TEST_DATA "/../../tools/npm/node_modules/bun-webgpu-linux-x64/libwebgpu_wrapper.so";
constexpr const char* kSwiftShader = "/usr/lib/chromium/vk_swiftshader_icd.json";

bool is_expected() {
  const char* expected = std::getenv("SHUNT_EXPECT_APIS");
  std::istringstream words(expected == nullptr ? "" : expected);
  for (std::string word; words >> word;)
    if (word == "webgpu") return true;
  return false;
}

BackendReport open() {
  // Keeps the caller's settings: another driver may be under test.
  std::optional<Setting> library;
  std::optional<Setting> driver;
  if (std::getenv("SHUNT_WEBGPU_LIBRARY") == nullptr && std::filesystem::exists(kDawn))
    library.emplace("SHUNT_WEBGPU_LIBRARY", kDawn);
  if (std::getenv("VK_ICD_FILENAMES") == nullptr) driver.emplace("VK_ICD_FILENAMES", kSwiftShader);
  auto report = open_webgpu({});
  return report ? std::move(*report) : BackendReport{};
}

class WebGpu : public testing::Test {
 protected:
  void SetUp() override {
    report_ = open();
    if (!report_.devices.empty()) return;
    if (is_expected()) FAIL() << "webgpu is absent: " << report_.absent_because;
    GTEST_SKIP() << "webgpu is absent: " << report_.absent_because;
  }

  WebGpuDevice& device() { return static_cast<WebGpuDevice&>(*report_.devices.front()); }
  std::unique_ptr<Buffer> allocate(std::uint64_t bytes) {
    auto buffer = device().allocate(bytes, BufferUse::values);
    EXPECT_TRUE(buffer.has_value()) << buffer.error().message;
    return std::move(*buffer);
  }
  template <class T>
  void write(Buffer& buffer, std::uint64_t offset, const std::vector<T>& values) {
    const auto bytes = std::as_bytes(std::span(values));
    const Status written = device().write({&buffer, offset, bytes.size()}, bytes).wait();
    EXPECT_TRUE(written.has_value()) << written.error().message;
  }
  template <class T>
  std::vector<T> read(Buffer& buffer, std::uint64_t offset, std::size_t count) {
    std::vector<T> values(count);
    const auto bytes = std::as_writable_bytes(std::span(values));
    const Status done = device().read({&buffer, offset, bytes.size()}, bytes).wait();
    EXPECT_TRUE(done.has_value()) << done.error().message;
    return values;
  }
  std::unique_ptr<Program> prepare(const ProgramOp& op) {
    auto program = device().prepare({.name = "test", .ops = {&op, 1}});
    EXPECT_TRUE(program.has_value()) << program.error().message;
    EXPECT_LE((*program)->scratch_bytes(), device().supports({&op.call, 1}).scratch_bytes);
    return std::move(*program);
  }
  void expect_failure(const Status& status, Code code, std::string_view said) {
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, code) << status.error().message;
    EXPECT_NE(status.error().message.find(said), std::string::npos) << status.error().message;
  }

  BackendReport report_;
};

std::vector<float> counted(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

// sum = x + y, at any place in memory.
struct Add {
  Operand x;
  Operand y;
  Operand sum;
  const Operand* inputs[2] = {&x, &y};
  Attributes attributes;

  explicit Add(Operand both) : x(both), y(both), sum(both) {}
  Add(Operand first, Operand second, Operand result) : x(first), y(second), sum(result) {}
  [[nodiscard]] ProgramOp op(const Binding& first, const Binding& second, const Binding& result) const {
    return {.call = {.op = Op::add, .attributes = &attributes, .inputs = inputs, .output = &sum},
            .inputs = {first, second},
            .output = result,
            .name = "sum"};
  }
};

TEST_F(WebGpu, SaysThatSwiftShaderIsEmulated) {
  const DeviceInfo& info = device().info();
  EXPECT_EQ(info.id, "webgpu:0");
  EXPECT_EQ(info.emulated, info.type == DeviceType::cpu);
  EXPECT_EQ(info.emulated, info.compute_resource == "cpu");
  EXPECT_EQ(info.alignment_bytes, 256U);
  EXPECT_GE(info.largest_binding_bytes, std::uint64_t{128} << 20U);
}

TEST_F(WebGpu, WritesAndReadsAnyNumberOfBytes) {
  for (std::size_t count : {1U, 2U, 3U, 4U, 5U, 7U, 255U, 257U, 1022U}) {
    const auto buffer = allocate(2048);
    std::vector<std::uint8_t> expected(2048, 0xA5);
    write(*buffer, 0, expected);
    std::vector<std::uint8_t> part(count);
    std::iota(part.begin(), part.end(), std::uint8_t{1});
    for (const std::uint64_t offset : {0U, 256U, 1024U}) {
      write(*buffer, offset, part);
      std::ranges::copy(part, expected.begin() + static_cast<std::ptrdiff_t>(offset));
      EXPECT_EQ(read<std::uint8_t>(*buffer, offset, count), part) << count << " bytes at " << offset;
    }
    EXPECT_EQ(read<std::uint8_t>(*buffer, 0, 2048), expected) << count << " bytes";
  }
}

TEST_F(WebGpu, WritesTheLastBytesOfABufferOfAnOddSize) {
  const auto buffer = allocate(263);
  std::vector<std::uint8_t> all(263);
  std::iota(all.begin(), all.end(), std::uint8_t{0});
  EXPECT_EQ(read<std::uint8_t>(*buffer, 0, 263), std::vector<std::uint8_t>(263, 0));
  write(*buffer, 0, all);
  EXPECT_EQ(read<std::uint8_t>(*buffer, 0, 263), all);
}

TEST_F(WebGpu, AddsATensorToItself) {
  const auto buffer = allocate(1024);
  const Add add(Operand::contiguous(DType::F32, {5, 1}));
  write(*buffer, 0, counted(5));
  const Binding x{buffer.get(), 0, 20};
  const auto program = prepare(add.op(x, x, {buffer.get(), 256, 20}));
  ASSERT_TRUE(device().submit(*program, {}).wait().has_value());
  EXPECT_EQ(read<float>(*buffer, 256, 5), (std::vector<float>{2, 4, 6, 8, 10}));
}

TEST_F(WebGpu, WritesAResultOverItsInputs) {
  const auto buffer = allocate(1024);
  const Add add(Operand::contiguous(DType::F32, {5, 1}));
  write(*buffer, 0, counted(5));
  const Binding x{buffer.get(), 0, 20};
  const auto program = prepare(add.op(x, x, x));
  for (int repeat = 0; repeat < 2; ++repeat) ASSERT_TRUE(device().submit(*program, {}).wait().has_value());
  EXPECT_EQ(read<float>(*buffer, 0, 5), (std::vector<float>{4, 8, 12, 16, 20}));
}

// Columns of one tensor: both inputs span nearly all of it, and neither begins at an offset valid for bindings.
TEST_F(WebGpu, AddsViewsOfOneTensor) {
  const auto buffer = allocate(1024);
  Operand view = Operand::contiguous(DType::F32, {3, 2});
  const Operand result = view;
  view.strides[0] = 4;
  const Add add(view, view, result);
  write(*buffer, 0, counted(12));
  const std::uint64_t bytes = view.span_bytes();
  const auto program =
      prepare(add.op({buffer.get(), 0, bytes}, {buffer.get(), 8, bytes}, {buffer.get(), 512, result.span_bytes()}));
  ASSERT_TRUE(device().submit(*program, {}).wait().has_value());
  EXPECT_EQ(read<float>(*buffer, 512, 6), (std::vector<float>{4, 6, 12, 14, 20, 22}));
}

TEST_F(WebGpu, RefusesMoreMemoryThanABufferCanHave) {
  const auto buffer = device().allocate(std::uint64_t{1} << 60U, BufferUse::values);
  ASSERT_FALSE(buffer.has_value());
  EXPECT_EQ(buffer.error().code, Code::out_of_memory);
  EXPECT_NE(buffer.error().message.find("1152921504606846976 bytes on webgpu:0: "), std::string::npos)
      << buffer.error().message;
  EXPECT_TRUE(device().health().status.has_value());
  EXPECT_NE(allocate(16), nullptr);
}

// Dawn itself can simulate a device that is out of memory.
TEST_F(WebGpu, TellsThatTheDeviceRanOutOfMemoryFromOtherErrors) {
  struct PretendedShortage {
    ChainedStruct chain{nullptr, 0x00050040};
    Bool at_wire_client = 0;
    Bool at_native_map = 0;
    Bool at_device = 1;
  };
  const PretendedShortage shortage;
  const BufferDescriptor descriptor{.next = &shortage.chain, .usage = kStorage, .bytes = 256};
  Context& context = device().context();
  context.open_scopes();
  const Owned<BufferHandle> buffer(context.call().DeviceCreateBuffer(context.handle(), &descriptor),
                                   {context.call().BufferRelease});
  const auto outcome = context.close_scopes();
  expect_failure(context.settle(*outcome), Code::out_of_memory, "");
  EXPECT_TRUE(context.take_stray_error().has_value());
}

TEST_F(WebGpu, BringsALateValidationErrorToTheSubmissionThatCausedIt) {
  const Add add(Operand::contiguous(DType::F32, {5, 1}));
  const auto kept = allocate(1024);
  auto freed = allocate(1024);
  const auto good = prepare(add.op({kept.get(), 0, 20}, {kept.get(), 256, 20}, {kept.get(), 512, 20}));
  const auto bad = prepare(add.op({freed.get(), 0, 20}, {freed.get(), 256, 20}, {freed.get(), 512, 20}));
  freed.reset();
  Event before = device().submit(*good, {});
  Event failing = device().submit(*bad, {});
  Event after = device().submit(*good, {});
  EXPECT_FALSE(failing.poll());
  EXPECT_TRUE(before.wait().has_value());
  expect_failure(failing.wait(), Code::internal, "program \"test\" on webgpu:0: [Buffer");
  EXPECT_TRUE(after.wait().has_value());
  EXPECT_TRUE(device().health().status.has_value());
}

TEST_F(WebGpu, SaysOfALostDeviceThatItIsLost) {
  const Add add(Operand::contiguous(DType::F32, {5, 1}));
  const auto buffer = allocate(1024);
  const Binding x{buffer.get(), 0, 20};
  const auto program = prepare(add.op(x, x, {buffer.get(), 256, 20}));
  std::vector<std::byte> bytes(20);
  device().context().destroy();
  expect_failure(device().submit(*program, {}).wait(), Code::device_lost, "");
  expect_failure(device().submit(*program, {}).wait(), Code::device_lost, "");
  expect_failure(device().read(x, bytes).wait(), Code::device_lost, "");
  expect_failure(device().write(x, bytes).wait(), Code::device_lost, "");
  const auto more = device().allocate(16, BufferUse::values);
  ASSERT_FALSE(more.has_value());
  EXPECT_EQ(more.error().code, Code::device_lost);
  EXPECT_FALSE(device().health().status.has_value());
  EXPECT_EQ(device().health().epoch, 1U);
}

TEST_F(WebGpu, EndsWhatIsPendingWhenTheDeviceIsLost) {
  const Add add(Operand::contiguous(DType::F32, {5, 1}));
  const auto buffer = allocate(1024);
  const Binding x{buffer.get(), 0, 20};
  const auto program = prepare(add.op(x, x, {buffer.get(), 256, 20}));
  std::vector<std::byte> bytes(20);
  Event submitted = device().submit(*program, {});
  Event reading = device().read(x, bytes);
  device().context().destroy();
  expect_failure(submitted.wait(), Code::device_lost, "program \"test\" on webgpu:0: ");
  expect_failure(reading.wait(), Code::device_lost, "reading 20 bytes on webgpu:0: ");
}

TEST_F(WebGpu, RefusesWorkWhoseDeadlineHasPassed) {
  const Add add(Operand::contiguous(DType::F32, {5, 1}));
  const auto buffer = allocate(1024);
  const Binding x{buffer.get(), 0, 20};
  const auto program = prepare(add.op(x, x, {buffer.get(), 256, 20}));
  const Submission late{.timeout = std::chrono::nanoseconds(-1)};
  expect_failure(device().submit(*program, late).wait(), Code::timed_out, "program \"test\" on webgpu:0: ");
  EXPECT_TRUE(device().submit(*program, {}).wait().has_value());
}

// A product that takes seconds on SwiftShader.
TEST_F(WebGpu, EndsWorkThatRunsPastItsDeadline) {
  constexpr std::uint32_t kSize = 256;
  const Operand operand = Operand::contiguous(DType::F32, {kSize, kSize});
  const Operand* inputs[] = {&operand, &operand, nullptr};
  const Attributes attributes;
  const std::uint64_t bytes = operand.span_bytes();
  const auto buffer = allocate(3 * bytes);
  const ProgramOp op{.call = {.op = Op::linear, .attributes = &attributes, .inputs = {inputs, 2}, .output = &operand},
                     .inputs = {{buffer.get(), 0, bytes}, {buffer.get(), bytes, bytes}},
                     .output = {buffer.get(), 2 * bytes, bytes},
                     .name = "product"};
  const auto program = prepare(op);
  const Submission hurried{.timeout = std::chrono::milliseconds(5)};
  expect_failure(device().submit(*program, hurried).wait(), Code::timed_out, "program \"test\" on webgpu:0: ");
  EXPECT_EQ(device().health().status.error().code, Code::timed_out);
  EXPECT_EQ(device().health().epoch, 1U);
  expect_failure(device().submit(*program, {}).wait(), Code::timed_out, "");
}

TEST_F(WebGpu, IsAbsentWithoutTheLibrary) {
  const Setting library("SHUNT_WEBGPU_LIBRARY", "/nowhere/libwebgpu_wrapper.so");
  const BackendReport report = open();
  EXPECT_TRUE(report.devices.empty());
  EXPECT_NE(report.absent_because.find("/nowhere/libwebgpu_wrapper.so"), std::string::npos) << report.absent_because;
  EXPECT_NE(report.absent_because.find("npm ci --prefix tools/npm"), std::string::npos) << report.absent_because;
}

TEST_F(WebGpu, IsAbsentWhereNoAdapterIs) {
  const Setting driver("VK_ICD_FILENAMES", "/nowhere/icd.json");
  const BackendReport report = open();
  EXPECT_TRUE(report.devices.empty());
  EXPECT_NE(report.absent_because.find("finds no adapter"), std::string::npos) << report.absent_because;
}

TEST(WebGpuKernels, DeclareWhatTheyBind) {
  if (!has_shaders(ShaderLanguage::wgsl)) GTEST_SKIP() << "built without Node: no WGSL";
  for (const Shader& shader : shaders()) {
    if (!shader.is_in(ShaderLanguage::wgsl)) continue;  // a Vulkan kernel
    const auto bindings = bindings_of(shader.wgsl);
    ASSERT_GE(bindings.size(), 3U) << shader.name;
    for (const KernelBinding& binding : bindings)
      EXPECT_EQ(binding.type == BufferBindingType::uniform, binding.number < kOutputBinding)
          << shader.name << " at " << binding.number;
  }
}

}  // namespace
}  // namespace shunt::webgpu
