// Specifics of OpenGL and OpenGL ES; the tests for each API cover what every device must do.
#include "devices/gl/device.h"

#include <chrono>
#include <cstdlib>
#include <thread>

#include "devices/each_api.h"

namespace shunt::gl {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string name(Api api) { return std::string(name_of(api)); }

// z = x + y over `count` floats in one buffer.
struct AddCase {
  static constexpr std::uint64_t kPlace = 256;  // tensors begin at multiples of it
  Operand operand;
  const Operand* inputs[2] = {&operand, &operand};
  Attributes attributes;
  std::unique_ptr<Buffer> buffer;
  std::vector<ProgramOp> ops;
  std::unique_ptr<Program> program;

  explicit AddCase(Device& device, std::uint32_t count = 3)
      : operand(Operand::contiguous(DType::F32, {count, 1})),
        buffer(device.allocate(3 * kPlace, BufferUse::values).value()) {
    const std::uint64_t size = count * sizeof(float);
    ops.push_back({.call = {.op = Op::add, .attributes = &attributes, .inputs = inputs, .output = &operand},
                   .inputs = {{buffer.get(), 0, size}, {buffer.get(), kPlace, size}},
                   .output = {buffer.get(), 2 * kPlace, size},
                   .name = "sum"});
    program = device.prepare({.name = "add", .ops = ops}).value();
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

void expect_a_right_sum(Device& device) {
  AddCase add(device);
  EXPECT_TRUE(add.write(device, 0, {1, 2, 3}));
  EXPECT_TRUE(add.write(device, 1, {10, 20, 30}));
  EXPECT_TRUE(device.submit(*add.program, {}).wait());
  EXPECT_EQ(add.result(device), (std::vector<float>{11, 22, 33}));
}

Code code_of(const Status& status) { return status ? Code{} : status.error().code; }

std::string refusal_of_library(const char* file, Code code) {
  EXPECT_EQ(setenv("SHUNT_EGL_LIBRARY", file, 1), 0);
  const auto egl = Egl::open();
  unsetenv("SHUNT_EGL_LIBRARY");
  EXPECT_FALSE(egl.has_value());
  EXPECT_EQ(egl.error().code, code);
  return egl.error().message;
}

TEST(GlLibrary, ThatIsAbsentIsNamed) {
  EXPECT_EQ(refusal_of_library("/nowhere/libEGL.so.1", Code::io),
            "/nowhere/libEGL.so.1 of SHUNT_EGL_LIBRARY cannot be opened; on Debian and Ubuntu install libegl1");
}

TEST(GlLibrary, ThatIsNoneOfEglIsRefused) {
  EXPECT_EQ(refusal_of_library("libm.so.6", Code::unsupported), "libEGL.so.1 lacks eglGetProcAddress; install another");
}

TEST(GlLibrary, FindsWholeWordsInListsOfExtensions) {
  EXPECT_TRUE(lists("EGL_a EGL_b", "EGL_b"));
  EXPECT_FALSE(lists("EGL_abc EGL_b", "EGL_a"));
  EXPECT_FALSE(lists(nullptr, "EGL_a"));
}

class GlDevices : public testing::TestWithParam<Api> {
 protected:
  void SetUp() override {
    const BackendReport report = open_api(GetParam());
    if (!report.devices.empty()) return;
    if (test::is_expected(name(GetParam()))) FAIL() << report.absent_because;
    GTEST_SKIP() << name(GetParam()) << " is absent: " << report.absent_because;
  }

  static std::unique_ptr<Device> open(Api api, const Adjust& adjust = {}) {
    BackendReport report = open_api(api, {}, adjust);
    return std::move(report.devices.at(0));
  }
  static std::unique_ptr<Device> open(const Adjust& adjust = {}) { return open(GetParam(), adjust); }
};

TEST_P(GlDevices, AreAbsentWithoutTheirLibrary) {
  ASSERT_EQ(setenv("SHUNT_EGL_LIBRARY", "/nowhere/libEGL.so.1", 1), 0);
  const BackendReport report = open_api(GetParam());
  unsetenv("SHUNT_EGL_LIBRARY");
  EXPECT_EQ(report.api, name(GetParam()));
  EXPECT_TRUE(report.devices.empty());
  EXPECT_TRUE(report.absent_because.starts_with("/nowhere/libEGL.so.1 ")) << report.absent_because;
}

TEST_P(GlDevices, SayWhatTheyAre) {
  const auto device = open();
  const DeviceInfo& info = device->info();
  EXPECT_EQ(info.id, name(GetParam()) + ":0");
  EXPECT_FALSE(info.name.empty());
  EXPECT_TRUE(info.api_version.starts_with(GetParam() == Api::gl ? "OpenGL 4." : "OpenGL ES 3."));
  EXPECT_EQ(info.emulated, info.type == DeviceType::cpu);
  EXPECT_EQ(info.emulated, info.compute_resource == "cpu");
  EXPECT_EQ(info.alignment_bytes % 256, 0U);
  EXPECT_GE(info.largest_binding_bytes, std::uint64_t{1} << 27U);  // the APIs' guaranteed minimum
}

TEST_P(GlDevices, BeginWithZeros) {
  const auto device = open();
  // More than one upload piece if the API cannot clear, and not a whole number of words.
  const std::uint64_t bytes = (std::uint64_t{1} << 20U) + 7;
  const auto buffer = device->allocate(bytes, BufferUse::state).value();
  EXPECT_EQ(buffer->bytes(), bytes);
  std::vector<std::byte> content(bytes, std::byte{1});
  ASSERT_TRUE(device->read({buffer.get(), 0, bytes}, content).wait());
  EXPECT_EQ(content, std::vector<std::byte>(bytes));
}

TEST_P(GlDevices, MoveBytesThatAreNoWholeWords) {
  const auto device = open();
  const auto buffer = device->allocate(11, BufferUse::values).value();
  const std::byte written[] = {std::byte{1}, std::byte{2}, std::byte{3}};
  ASSERT_TRUE(device->write({buffer.get(), 5, 3}, written).wait());
  std::vector<std::byte> content(5);
  ASSERT_TRUE(device->read({buffer.get(), 4, 5}, content).wait());
  EXPECT_EQ(content, (std::vector<std::byte>{{}, std::byte{1}, std::byte{2}, std::byte{3}, {}}));
  EXPECT_TRUE(device->write({buffer.get(), 11, 0}, {}).wait());
  EXPECT_TRUE(device->read({buffer.get(), 11, 0}, {}).wait());
}

TEST_P(GlDevices, MayBeUsedFromOneThreadAfterTheOther) {
  const auto device = open();
  AddCase add(*device);
  ASSERT_TRUE(add.write(*device, 0, {1, 2, 3}));
  std::thread([&] {
    EXPECT_TRUE(add.write(*device, 1, {10, 20, 30}));
    EXPECT_TRUE(device->submit(*add.program, {}).wait());
    expect_a_right_sum(*device);
  }).join();
  EXPECT_EQ(add.result(*device), (std::vector<float>{11, 22, 33}));
  Event event = device->submit(*add.program, {});
  std::thread([&] { EXPECT_TRUE(event.wait()); }).join();
  std::thread([&] { EXPECT_EQ(add.result(*device), (std::vector<float>{11, 22, 33})); }).join();
}

TEST_P(GlDevices, WorkBesideEachOtherOnOneThread) {
  const auto first = open(Api::gl);
  const auto second = open(GetParam());
  AddCase one(*first);
  AddCase two(*second);
  ASSERT_TRUE(one.write(*first, 0, {1, 2, 3}));
  ASSERT_TRUE(two.write(*second, 0, {4, 5, 6}));
  Event first_done = first->submit(*one.program, {});
  Event second_done = second->submit(*two.program, {});
  EXPECT_TRUE(second_done.wait());
  EXPECT_TRUE(first_done.wait());
  EXPECT_EQ(one.result(*first), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(two.result(*second), (std::vector<float>{4, 5, 6}));
}

TEST_P(GlDevices, WorkAtTheSameTimeOnThreadsOfTheirOwn) {
  std::vector<std::thread> users;
  for (int user = 0; user < 2; ++user)
    users.emplace_back([] {
      const auto device = open();
      for (int repeat = 0; repeat < 20; ++repeat) expect_a_right_sum(*device);
    });
  for (std::thread& user : users) user.join();
}

TEST_P(GlDevices, LeaveAThreadTheContextThatItHad) {
  const auto egl = Egl::open().value();
  std::shared_ptr<Context> own;
  for (const Display& display : egl->displays())
    if (auto made = Context::create(egl, display, Api::gles, {}); made && own == nullptr) own = *made;
  ASSERT_NE(own, nullptr);
  const auto device = open();
  EXPECT_EQ(egl->call().GetCurrentContext(), nullptr);
  {
    const Current current(*own);
    ASSERT_TRUE(current.status());
    const EglContext before = egl->call().GetCurrentContext();
    expect_a_right_sum(*device);
    EXPECT_EQ(egl->call().GetCurrentContext(), before);
  }
  EXPECT_EQ(egl->call().GetCurrentContext(), nullptr);
}

TEST_P(GlDevices, RefuseMoreMemoryThanThereIsAndGoOn) {
  const auto device = open();
  for (const std::uint64_t bytes : {std::uint64_t{1} << 60U, ~std::uint64_t{0}}) {
    const auto buffer = device->allocate(bytes, BufferUse::values);
    ASSERT_FALSE(buffer.has_value());
    EXPECT_EQ(buffer.error().code, Code::out_of_memory);
    EXPECT_TRUE(buffer.error().message.starts_with(std::to_string(bytes) + " bytes on " + device->info().id + ": "))
        << buffer.error().message;
  }
  EXPECT_TRUE(device->health().status);
  expect_a_right_sum(*device);
}

// A driver that fails when a test asks for it.
struct Faults {
  bool reset = false;
  bool never_ends = false;
  GLenum error = kNoError;  // returned once
};
Faults faults;

GLenum answer_reset() { return faults.reset ? kGuiltyContextReset : kNoError; }
GLenum answer_wait(GLsync, GLbitfield, GLuint64) { return faults.never_ends ? kTimeoutExpired : kAlreadySignaled; }
GLenum answer_error() { return std::exchange(faults.error, kNoError); }

class FailingGlDevices : public GlDevices {
 protected:
  void SetUp() override {
    faults = {};
    GlDevices::SetUp();
  }
  static std::unique_ptr<Device> open_failing() {
    return open([](Functions& functions) {
      functions.GetGraphicsResetStatus = answer_reset;
      functions.ClientWaitSync = answer_wait;
      functions.GetError = answer_error;
    });
  }
};

TEST_P(FailingGlDevices, ADeadlineThatHasPassedIsATimeOutOfThatSubmissionAlone) {
  const auto device = open();
  AddCase add(*device);
  ASSERT_TRUE(add.write(*device, 0, {1, 2, 3}));
  const Status late = device->submit(*add.program, {.timeout = std::chrono::nanoseconds(-1)}).wait();
  EXPECT_EQ(code_of(late), Code::timed_out);
  EXPECT_EQ(add.result(*device), (std::vector<float>{0, 0, 0})) << "nothing was started";
  EXPECT_TRUE(device->health().status);
  EXPECT_EQ(device->health().epoch, 0U);
  EXPECT_TRUE(device->submit(*add.program, {.timeout = std::chrono::nanoseconds::max()}).wait());
  EXPECT_EQ(add.result(*device), (std::vector<float>{1, 2, 3}));
}

TEST_P(FailingGlDevices, WorkThatNeverEndsStaysPendingWithoutADeadline) {
  const auto device = open_failing();
  AddCase add(*device);
  faults.never_ends = true;
  Event event = device->submit(*add.program, {});
  EXPECT_TRUE(device->advance());
  EXPECT_FALSE(event.poll());
  faults.never_ends = false;
  EXPECT_TRUE(device->advance());
  EXPECT_TRUE(event.poll());
  EXPECT_FALSE(device->advance());
}

TEST_P(FailingGlDevices, WorkThatStillRunsAtItsDeadlineIsATimeOutAndLosesTheDevice) {
  const auto device = open_failing();
  AddCase add(*device);
  faults.never_ends = true;
  // A deadline that passes before everything is submitted is also a timeout, and leaves the device as it was.
  for (milliseconds time(10); device->health().status && time < std::chrono::minutes(1); time *= 4)
    EXPECT_EQ(code_of(device->submit(*add.program, {.timeout = time}).wait()), Code::timed_out);
  EXPECT_EQ(code_of(device->health().status), Code::timed_out);
  EXPECT_EQ(device->health().epoch, 1U);
  EXPECT_EQ(code_of(device->submit(*add.program, {}).wait()), Code::timed_out);
}

TEST_P(FailingGlDevices, ALostDeviceEndsAllThatIsPendingAndRefusesItsHandles) {
  const auto device = open_failing();
  AddCase one(*device);
  AddCase two(*device);
  Event first = device->submit(*one.program, {});
  Event second = device->submit(*two.program, {});
  faults.reset = true;
  EXPECT_EQ(code_of(first.wait()), Code::device_lost);
  ASSERT_TRUE(second.poll());
  EXPECT_EQ(code_of(second.status()), Code::device_lost);
  EXPECT_EQ(code_of(device->health().status), Code::device_lost);
  EXPECT_EQ(device->health().epoch, 1U);
  faults.reset = false;
  EXPECT_EQ(code_of(one.write(*device, 0, {1, 2, 3})), Code::device_lost);
  std::byte content[4];
  EXPECT_EQ(code_of(device->read({one.buffer.get(), 0, 4}, content).wait()), Code::device_lost);
  EXPECT_EQ(code_of(device->submit(*one.program, {}).wait()), Code::device_lost);
  EXPECT_EQ(device->prepare({.name = "again", .ops = one.ops}).error().code, Code::device_lost);
  EXPECT_EQ(device->allocate(16, BufferUse::values).error().code, Code::device_lost);
  EXPECT_FALSE(device->advance());
  expect_a_right_sum(*open());
}

TEST_P(FailingGlDevices, ADeviceLostByATransferEndsWhatIsPending) {
  const auto device = open_failing();
  AddCase add(*device);
  Event event = device->submit(*add.program, {});
  faults.error = kContextLost;
  EXPECT_EQ(code_of(add.write(*device, 0, {1, 2, 3})), Code::device_lost);
  EXPECT_EQ(code_of(event.wait()), Code::device_lost);
  EXPECT_FALSE(device->advance());
}

TEST_P(FailingGlDevices, AnErrorThatComesLateReachesTheEvent) {
  const auto device = open_failing();
  AddCase add(*device);
  Event event = device->submit(*add.program, {});
  faults.error = kOutOfMemory;
  const Status done = event.wait();
  EXPECT_EQ(code_of(done), Code::out_of_memory);
  EXPECT_EQ(done.error().message,
            "program \"add\" on " + name(GetParam()) + ":0: glClientWaitSync: GL_OUT_OF_MEMORY (0x0505)");
  EXPECT_TRUE(device->health().status);
  EXPECT_TRUE(device->submit(*add.program, {}).wait());
  event = device->submit(*add.program, {});
  faults.error = kContextLost;
  EXPECT_EQ(code_of(event.wait()), Code::device_lost);
  EXPECT_EQ(code_of(device->health().status), Code::device_lost);
}

TEST_P(FailingGlDevices, AKernelThatDoesNotCompileIsAnInternalErrorWithTheLog) {
  static decltype(Functions::ShaderSource) shader_source = nullptr;
  const auto device = open([](Functions& functions) {
    shader_source = functions.ShaderSource;
    functions.ShaderSource = [](GLuint shader, GLsizei, const GLchar* const*, const GLint*) {
      const GLchar* const text = "#version 310 es\nnot_a_type x;\n";
      shader_source(shader, 1, &text, nullptr);
    };
  });
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
  EXPECT_TRUE(
      program.error().message.starts_with("program \"add\" on " + device->info().id + ": kernel elementwise on "))
      << program.error().message;
  EXPECT_NE(program.error().message.find("error"), std::string::npos) << program.error().message;
  EXPECT_TRUE(device->health().status);
}

std::string test_name(const testing::TestParamInfo<Api>& test) { return name(test.param); }
INSTANTIATE_TEST_SUITE_P(Gl, GlDevices, testing::Values(Api::gl, Api::gles), test_name);
INSTANTIATE_TEST_SUITE_P(Gl, FailingGlDevices, testing::Values(Api::gl, Api::gles), test_name);

}  // namespace
}  // namespace shunt::gl
