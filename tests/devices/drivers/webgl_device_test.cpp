// Specifics of WebGL2, on an OpenGL ES 3.0 context; the tests for each API cover what every device must do.
#include "devices/webgl/device.h"

#include <chrono>
#include <cstdlib>
#include <utility>

#include "base/system/shared_library.h"
#include "devices/each_api.h"
#include "devices/webgl/context.h"

namespace shunt::webgl {
namespace {

using std::chrono::milliseconds;

Code code_of(const Status& status) { return status ? Code{} : status.error().code; }

// z = x + y over `count` floats in one buffer. The test chooses where z begins, in floats.
struct AddCase {
  Operand operand;
  const Operand* inputs[2] = {&operand, &operand};
  Attributes attributes;
  std::unique_ptr<Buffer> buffer;
  std::vector<ProgramOp> ops;
  std::unique_ptr<Program> program;

  explicit AddCase(Device& device, std::uint32_t count = 3, std::uint64_t gap_bytes = 256)
      : operand(Operand::contiguous(DType::F32, {count, 1}, TensorKind::value, Extent::tokens)),
        buffer(device.allocate(3 * (count * sizeof(float) + gap_bytes), BufferUse::values).value()) {
    const std::uint64_t size = count * sizeof(float);
    ops.push_back({.call = {.op = Op::add, .attributes = &attributes, .inputs = inputs, .output = &operand},
                   .inputs = {{buffer.get(), 0, size}, {buffer.get(), size + gap_bytes, size}},
                   .output = {buffer.get(), 2 * (size + gap_bytes), size},
                   .name = "sum"});
    program = device.prepare({.name = "add", .ops = ops}).value();
  }

  Submission all(std::optional<std::chrono::nanoseconds> timeout = {}) const {
    return {.parameters = {.tokens = operand.shape[0]}, .timeout = timeout};
  }
  Status write(Device& device, std::size_t operand_number, const std::vector<float>& values) {
    return device.write(ops[0].inputs[operand_number], std::as_bytes(std::span(values))).wait();
  }
  std::vector<float> result(Device& device) {
    std::vector<float> values(operand.shape.elements());
    EXPECT_TRUE(device.read(ops[0].output, std::as_writable_bytes(std::span(values))).wait());
    return values;
  }
};

TEST(WebglOutsideOfABrowser, IsAbsent) {
  ASSERT_EQ(unsetenv("SHUNT_WEBGL_LIBRARY"), 0);
  const auto report = open_webgl2({});
  ASSERT_TRUE(report.has_value());
  EXPECT_TRUE(report->devices.empty());
  EXPECT_EQ(report->absent_because, "WebGL2 is a browser's API");
}

TEST(WebglOutsideOfABrowser, RefusesALibraryThatIsNone) {
  ASSERT_EQ(setenv("SHUNT_WEBGL_LIBRARY", "libm.so.6", 1), 0);
  const auto functions = open_api();
  unsetenv("SHUNT_WEBGL_LIBRARY");
  ASSERT_FALSE(functions.has_value());
  EXPECT_EQ(functions.error().message, "libm.so.6 of SHUNT_WEBGL_LIBRARY lacks shunt_webgl_functions");
}

TEST(WebglRectangles, AreColumnsOfARowOrWholeRows) {
  const auto expect = [](const Rectangle& is, GLint x, GLint y, GLsizei width, GLsizei height) {
    EXPECT_EQ(std::tie(is.x, is.y, is.width, is.height), std::tie(x, y, width, height));
  };
  constexpr GLsizei kRow = kRowWords;
  expect(rectangle_of(5, 3), 5, 0, 3, 1);
  expect(rectangle_of(kRowWords - 1, 1), kRow - 1, 0, 1, 1);
  expect(rectangle_of(3 * kRowWords, kRowWords), 0, 3, kRow, 1);
  expect(rectangle_of(kRowWords - 1, 2), 0, 0, kRow, 2);
  expect(rectangle_of(2 * kRowWords + 7, 3 * kRowWords), 0, 2, kRow, 4);
}

// A context that fails when a test asks for it.
struct Faults {
  bool lost = false;
  bool never_ends = false;
  GLenum error = kNoError;  // returned once
};
Faults faults;

class WebglDevices : public testing::Test {
 protected:
  void SetUp() override {
    faults = {};
    ASSERT_EQ(setenv("SHUNT_WEBGL_LIBRARY", SHUNT_WEBGL_ON_EGL, 1), 0);
    auto functions = open_api();
    if (functions) {
      functions_ = *functions;
      return;
    }
    if (test::is_expected("webgl2")) FAIL() << functions.error().message;
    GTEST_SKIP() << "webgl2 is absent: " << functions.error().message;
  }

  // Releases the context, which other code on this thread does not expect.
  void TearDown() override {
    const auto library = SharedLibrary::open(SHUNT_WEBGL_ON_EGL, "SHUNT_WEBGL_LIBRARY", "");
    ASSERT_TRUE(library.has_value());
    library->find<void (*)()>("shunt_webgl_leave")();
  }

  std::unique_ptr<Device> open() const { return std::move(open_device(functions_).value()); }
  std::unique_ptr<Device> open_failing() const {
    static Functions real;
    real = functions_;
    Functions failing = functions_;
    failing.IsContextLost = [] { return static_cast<GLboolean>(faults.lost ? 1 : 0); };
    failing.GetSynciv = [](GLsync, GLenum, GLsizei, GLsizei*, GLint* status) {
      *status = faults.never_ends ? kUnsignaled : kSignaled;
    };
    failing.GetError = [] {
      const GLenum error = std::exchange(faults.error, kNoError);
      return error != kNoError ? error : real.GetError();
    };
    return std::move(open_device(failing).value());
  }

  static void expect_a_right_sum(Device& device) {
    AddCase add(device);
    EXPECT_TRUE(add.write(device, 0, {1, 2, 3}));
    EXPECT_TRUE(add.write(device, 1, {10, 20, 30}));
    EXPECT_TRUE(device.submit(*add.program, add.all()).wait());
    EXPECT_EQ(add.result(device), (std::vector<float>{11, 22, 33}));
  }

  Functions functions_;
};

TEST_F(WebglDevices, SayWhatTheyAre) {
  const auto device = open();
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.id, "webgl2:0");
  EXPECT_FALSE(info.name.empty());
  EXPECT_EQ(info.emulated, info.type == DeviceType::cpu);
  EXPECT_EQ(info.emulated, info.compute_resource == "cpu");
  EXPECT_GE(info.largest_binding_bytes, std::uint64_t{1} << 26U);
}

TEST_F(WebglDevices, AreRefusedWhereTexturesAreTooSmall) {
  Functions small = functions_;
  small.GetIntegerv = [](GLenum, GLint* value) { *value = 2048; };
  const auto device = open_device(small);
  ASSERT_FALSE(device.has_value());
  EXPECT_EQ(device.error().code, Code::unsupported);
  EXPECT_TRUE(device.error().message.ends_with(" has textures of 2048 words a side, and kernels need 4096"))
      << device.error().message;
}

TEST_F(WebglDevices, BeginWithZeros) {
  const auto device = open();
  const std::uint64_t bytes = 3 * kRowWords * 4 + 7;
  const auto buffer = device->allocate(bytes, BufferUse::state).value();
  EXPECT_EQ(buffer->bytes(), bytes);
  std::vector<std::byte> content(bytes, std::byte{1});
  ASSERT_TRUE(device->read({buffer.get(), 0, bytes}, content).wait());
  EXPECT_EQ(content, std::vector<std::byte>(bytes));
}

TEST_F(WebglDevices, MoveAnyBytes) {
  const auto device = open();
  constexpr std::uint64_t kRow = kRowWords * 4;
  const std::uint64_t bytes = 70 * kRow + 7;
  const auto buffer = device->allocate(bytes, BufferUse::values).value();
  std::vector<std::byte> expected(bytes);
  for (std::size_t i = 0; i < bytes; ++i) expected[i] = static_cast<std::byte>(i * 31 + i / kRow);
  ASSERT_TRUE(device->write({buffer.get(), 0, bytes}, expected).wait());
  // Within a word, across words, across rows, many rows, and empty.
  constexpr std::pair<std::uint64_t, std::uint64_t> kPieces[] = {
      {5, 2},         {5, 11},    {4, 8},       {kRow - 3, 6}, {kRow, kRow}, {2 * kRow + 1, 66 * kRow},
      {bytes - 1, 1}, {bytes, 0}, {3, 2 * kRow}};
  for (const auto& [offset, size] : kPieces) {
    std::vector<std::byte> piece(size);
    for (std::size_t i = 0; i < size; ++i) piece[i] = static_cast<std::byte>(i * 7 + size);
    ASSERT_TRUE(device->write({buffer.get(), offset, size}, piece).wait());
    std::ranges::copy(piece, expected.begin() + static_cast<std::ptrdiff_t>(offset));
    std::vector<std::byte> back(size);
    ASSERT_TRUE(device->read({buffer.get(), offset, size}, back).wait());
    EXPECT_EQ(back, piece) << offset << " " << size;
  }
  std::vector<std::byte> content(bytes);
  ASSERT_TRUE(device->read({buffer.get(), 0, bytes}, content).wait());
  EXPECT_EQ(content, expected);
}

TEST_F(WebglDevices, RefuseMoreMemoryThanATextureHasAndGoOn) {
  const auto device = open();
  for (const std::uint64_t bytes : {device->info().largest_binding_bytes + 1, ~std::uint64_t{0}}) {
    const auto buffer = device->allocate(bytes, BufferUse::values);
    ASSERT_FALSE(buffer.has_value());
    EXPECT_EQ(buffer.error().code, Code::out_of_memory);
    EXPECT_TRUE(buffer.error().message.starts_with(std::to_string(bytes) + " bytes on webgl2:0: "))
        << buffer.error().message;
  }
  EXPECT_TRUE(device->health().status);
  expect_a_right_sum(*device);
}

TEST_F(WebglDevices, PassOnThatMemoryIsShort) {
  const auto device = open_failing();
  faults.error = kOutOfMemory;
  const auto buffer = device->allocate(16, BufferUse::values);
  ASSERT_FALSE(buffer.has_value());
  EXPECT_EQ(buffer.error().code, Code::out_of_memory);
  EXPECT_TRUE(buffer.error().message.ends_with(": texStorage2D: OUT_OF_MEMORY (0x0505)")) << buffer.error().message;
  expect_a_right_sum(*device);
}

// Results that begin and end anywhere in a row, or span several rows.
TEST_F(WebglDevices, WriteTheResultAndNothingBesideIt) {
  const auto device = open();
  for (const std::uint32_t count : {1U, 100U, 4096U, 4097U, 10000U}) {
    for (const std::uint64_t gap : {std::uint64_t{4}, std::uint64_t{256}, std::uint64_t{16000}}) {
      SCOPED_TRACE(std::to_string(count) + " after a gap of " + std::to_string(gap));
      AddCase add(*device, count, gap);
      std::vector<float> before(add.buffer->bytes() / sizeof(float));
      for (std::size_t i = 0; i < before.size(); ++i) before[i] = static_cast<float>(i + 1);
      const Binding whole{add.buffer.get(), 0, add.buffer->bytes()};
      ASSERT_TRUE(device->write(whole, std::as_bytes(std::span(before))).wait());
      const std::uint32_t valid = count - count / 3;
      const Status done = device->submit(*add.program, {.parameters = {.tokens = valid}}).wait();
      ASSERT_TRUE(done.has_value()) << done.error().message;
      std::vector<float> after(before.size());
      ASSERT_TRUE(device->read(whole, std::as_writable_bytes(std::span(after))).wait());
      std::vector<float> expected = before;
      const std::uint64_t second = count + gap / 4;
      for (std::uint64_t i = 0; i < valid; ++i) expected[2 * second + i] = before[i] + before[second + i];
      EXPECT_EQ(after, expected);
    }
  }
}

// State is drawn in place unless its texture also holds an input, which this context refuses as browsers do.
TEST_F(WebglDevices, WriteStateThatSharesATextureWithItsInputs) {
  const auto device = open();
  constexpr std::uint32_t kTokens = 2;
  constexpr std::uint32_t kColumns = 4;
  const Operand state = Operand::contiguous(DType::F32, {4, 2, 1, kColumns}, TensorKind::state);
  const Operand x = Operand::contiguous(DType::F32, {kTokens, 1, kColumns});
  const Operand numbers = Operand::contiguous(DType::I32, {kTokens});
  const Operand table = Operand::contiguous(DType::I32, {1, 4});
  const Operand* inputs[] = {&state, &x, &numbers, &numbers, &table};
  const Attributes attributes;
  for (const bool shared : {false, true}) {
    SCOPED_TRACE(shared ? "one texture" : "two textures");
    const auto values = device->allocate(2048, BufferUse::values).value();
    const auto own = device->allocate(state.span_bytes(), BufferUse::state).value();
    const Binding where =
        shared ? Binding{values.get(), 1024, state.span_bytes()} : Binding{own.get(), 0, state.span_bytes()};
    const ProgramOp op{.call = {.op = Op::cache_write, .attributes = &attributes, .inputs = inputs, .output = &state},
                       .inputs = {where,
                                  {values.get(), 0, 32},
                                  {values.get(), 256, 8},
                                  {values.get(), 512, 8},
                                  {values.get(), 768, 16}},
                       .output = where,
                       .name = "write"};
    const std::array<float, 8> rows = {1, 2, 3, 4, 5, 6, 7, 8};
    const std::array<std::int32_t, 2> positions = {1, 4};
    const std::array<std::int32_t, 4> pages = {3, 1, 0, 2};
    ASSERT_TRUE(device->write(op.inputs[1], std::as_bytes(std::span(rows))).wait());
    ASSERT_TRUE(device->write(op.inputs[2], std::as_bytes(std::span(positions))).wait());
    ASSERT_TRUE(device->write(op.inputs[4], std::as_bytes(std::span(pages))).wait());
    const auto program = device->prepare({.name = "cache", .ops = {&op, 1}});
    ASSERT_TRUE(program.has_value()) << program.error().message;
    const Status done = device->submit(**program, {}).wait();
    ASSERT_TRUE(done.has_value()) << done.error().message;
    std::vector<float> content(state.shape.elements());
    ASSERT_TRUE(device->read(where, std::as_writable_bytes(std::span(content))).wait());
    std::vector<float> expected(content.size());
    // Position 1 is on page 3, position 4 on page 0.
    std::copy_n(rows.begin(), kColumns, expected.begin() + (3 * 2 + 1) * std::ptrdiff_t{kColumns});
    std::copy_n(rows.begin() + kColumns, kColumns, expected.begin());
    EXPECT_EQ(content, expected);
  }
}

TEST_F(WebglDevices, ADeadlineThatHasPassedIsATimeOutOfThatSubmissionAlone) {
  const auto device = open();
  AddCase add(*device);
  ASSERT_TRUE(add.write(*device, 0, {1, 2, 3}));
  const Status late = device->submit(*add.program, add.all(std::chrono::nanoseconds(-1))).wait();
  EXPECT_EQ(code_of(late), Code::timed_out);
  EXPECT_EQ(add.result(*device), (std::vector<float>{0, 0, 0})) << "nothing was started";
  EXPECT_TRUE(device->health().status);
  EXPECT_EQ(device->health().epoch, 0U);
  EXPECT_TRUE(device->submit(*add.program, add.all(std::chrono::nanoseconds::max())).wait());
  EXPECT_EQ(add.result(*device), (std::vector<float>{1, 2, 3}));
}

TEST_F(WebglDevices, WorkThatNeverEndsStaysPendingWithoutADeadline) {
  const auto device = open_failing();
  AddCase add(*device);
  faults.never_ends = true;
  Event event = device->submit(*add.program, add.all());
  EXPECT_TRUE(device->advance());
  EXPECT_FALSE(event.poll());
  faults.never_ends = false;
  EXPECT_TRUE(device->advance());
  EXPECT_TRUE(event.poll());
  EXPECT_FALSE(device->advance());
}

TEST_F(WebglDevices, WorkThatStillRunsAtItsDeadlineIsATimeOutAndLosesTheDevice) {
  const auto device = open_failing();
  AddCase add(*device);
  faults.never_ends = true;
  // A deadline that passes before everything is submitted is also a timeout, and leaves the device as it was.
  for (milliseconds time(10); device->health().status && time < std::chrono::minutes(1); time *= 4)
    EXPECT_EQ(code_of(device->submit(*add.program, add.all(time)).wait()), Code::timed_out);
  EXPECT_EQ(code_of(device->health().status), Code::timed_out);
  EXPECT_EQ(device->health().epoch, 1U);
  EXPECT_EQ(code_of(device->submit(*add.program, add.all()).wait()), Code::timed_out);
}

TEST_F(WebglDevices, ALostContextEndsAllThatIsPendingAndRefusesItsHandles) {
  const auto device = open_failing();
  AddCase one(*device);
  AddCase two(*device);
  faults.never_ends = true;
  Event first = device->submit(*one.program, one.all());
  Event second = device->submit(*two.program, two.all());
  faults.lost = true;
  const Status lost = first.wait();
  EXPECT_EQ(code_of(lost), Code::device_lost);
  EXPECT_EQ(lost.error().message, "program \"add\" on webgl2:0: getSyncParameter: CONTEXT_LOST_WEBGL (0x9242)");
  ASSERT_TRUE(second.poll());
  EXPECT_EQ(code_of(second.status()), Code::device_lost);
  EXPECT_EQ(code_of(device->health().status), Code::device_lost);
  EXPECT_EQ(device->health().epoch, 1U);
  faults = {};
  EXPECT_EQ(code_of(one.write(*device, 0, {1, 2, 3})), Code::device_lost);
  std::byte content[4];
  EXPECT_EQ(code_of(device->read({one.buffer.get(), 0, 4}, content).wait()), Code::device_lost);
  EXPECT_EQ(code_of(device->submit(*one.program, one.all()).wait()), Code::device_lost);
  EXPECT_EQ(device->prepare({.name = "again", .ops = one.ops}).error().code, Code::device_lost);
  EXPECT_EQ(device->allocate(16, BufferUse::values).error().code, Code::device_lost);
  EXPECT_FALSE(device->advance());
  expect_a_right_sum(*open());
}

TEST_F(WebglDevices, AContextLostInATransferEndsWhatIsPending) {
  const auto device = open_failing();
  AddCase add(*device);
  Event event = device->submit(*add.program, add.all());
  faults.error = kContextLost;
  EXPECT_EQ(code_of(add.write(*device, 0, {1, 2, 3})), Code::device_lost);
  EXPECT_EQ(code_of(event.wait()), Code::device_lost);
  EXPECT_FALSE(device->advance());
}

TEST_F(WebglDevices, AnErrorThatComesLateReachesTheEvent) {
  const auto device = open_failing();
  AddCase add(*device);
  Event event = device->submit(*add.program, add.all());
  faults.error = kOutOfMemory;
  const Status done = event.wait();
  EXPECT_EQ(code_of(done), Code::out_of_memory);
  EXPECT_EQ(done.error().message, "program \"add\" on webgl2:0: getSyncParameter: OUT_OF_MEMORY (0x0505)");
  EXPECT_TRUE(device->health().status);
  EXPECT_TRUE(device->submit(*add.program, add.all()).wait());
}

TEST_F(WebglDevices, AKernelThatDoesNotCompileIsAnInternalErrorWithTheLog) {
  static Functions real;
  real = functions_;
  Functions failing = functions_;
  failing.ShaderSource = [](GLuint shader, GLsizei, const GLchar* const*, const GLint*) {
    const GLchar* const text = "#version 300 es\nnot_a_type x;\n";
    real.ShaderSource(shader, 1, &text, nullptr);
  };
  const auto device = std::move(open_device(failing).value());
  const Attributes attributes;
  const Operand operand = Operand::contiguous(DType::F32, {4, 1});
  const Operand* inputs[] = {&operand, &operand};
  const auto buffer = device->allocate(16, BufferUse::values).value();
  const Binding binding{buffer.get(), 0, 16};
  const ProgramOp ops[] = {{.call = {.op = Op::add, .attributes = &attributes, .inputs = inputs, .output = &operand},
                            .inputs = {binding, binding},
                            .output = binding,
                            .name = "sum"}};
  const auto program = device->prepare({.name = "add", .ops = ops});
  ASSERT_FALSE(program.has_value());
  EXPECT_EQ(program.error().code, Code::internal);
  EXPECT_TRUE(program.error().message.starts_with("program \"add\" on webgl2:0: kernel elementwise on "))
      << program.error().message;
  EXPECT_NE(program.error().message.find("error"), std::string::npos) << program.error().message;
  EXPECT_TRUE(device->health().status);
}

TEST(WebglKernels, AreOfThePlainLanguage) {
  for (const Shader& shader : shaders()) {
    for (const std::string_view text : {shader.essl300, shader.essl300_points}) {
      if (text.empty()) continue;
      SCOPED_TRACE(shader.family);
      EXPECT_TRUE(text.starts_with("#version 300 es"));
      for (const char* word : {"layout(binding", ", binding", "#extension", " buffer "})
        EXPECT_EQ(text.find(word), std::string_view::npos) << word;
      EXPECT_NE(text.find("uniform Call"), std::string_view::npos);
    }
    EXPECT_TRUE(shader.essl300.empty() || shader.essl300_points.empty()) << shader.name << " has one form at most";
  }
}

}  // namespace
}  // namespace shunt::webgl
