// Closes runtime, model, session, computation and arrays in every order, through the C and C++ interfaces, while
// nothing runs and while a submission is in flight. AddressSanitizer detects any use after the end.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "c/bundled_model.h"
#include "devices/each_api.h"
#include "devices/faulty_vulkan.h"
#include "shunt/arrays.h"
#include "shunt/computation.h"
#include "shunt/model.h"
#include "shunt/shunt.h"

namespace {

constexpr std::array<float, 4> kX{1, 2, 3, 4};
constexpr std::array<float, 4> kSum{11, 22, 33, 44};

// A constant in the caller's memory, which must stay until its computation has ended.
struct Constant {
  using Values = std::array<float, 4>;
  std::unique_ptr<Values> values = std::make_unique<Values>(Values{10, 20, 30, 40});
};

// The objects to close; values are positions in an order.
enum Part : std::size_t { kRuntime, kModelFile, kSession, kComputation, kArrays, kParts };
using Order = std::array<std::size_t, kParts>;

std::vector<Order> all_orders() {
  Order order{kRuntime, kModelFile, kSession, kComputation, kArrays};
  std::vector<Order> orders;
  do orders.push_back(order);
  while (std::ranges::next_permutation(order).found);
  return orders;
}

// Every order of the runtime, the model and the session; the rest is closed before, after or in between.
std::vector<Order> main_orders() {
  std::array<std::size_t, 3> main{kRuntime, kModelFile, kSession};
  std::vector<Order> orders;
  do
    orders.push_back(orders.size() % 2 == 0 ? Order{kComputation, main[0], main[1], kArrays, main[2]}
                                            : Order{main[0], kArrays, main[1], main[2], kComputation});
  while (std::ranges::next_permutation(main).found);
  return orders;
}

// One order beginning with each of the three.
std::vector<Order> few_orders() {
  return {{kRuntime, kModelFile, kSession, kComputation, kArrays},
          {kModelFile, kSession, kArrays, kComputation, kRuntime},
          {kSession, kComputation, kRuntime, kArrays, kModelFile}};
}

struct Setting {
  const char* devices;
  std::uint32_t timeout_ms = 0;               // 0: the default
  std::function<void()> before_step = [] {};  // once everything is open
};

// The C interface.
class ThroughC {
 public:
  explicit ThroughC(const Setting& setting) {
    shunt_runtime_options options{};
    options.threads = 1;
    options.devices = setting.devices;
    options.uncalibrated = 1;
    options.timeout_ms = setting.timeout_ms;
    runtime_ = shunt_runtime_open(&options, &error_);
    model_ = shunt_model_open(kModel, &error_);
    shunt_session_options session = shunt_session_defaults();
    session.context = 32;
    session.strategy = "gpu";
    session_ = shunt_session_open(model_, runtime_, &session, &error_);
    EXPECT_NE(session_, nullptr) << error_.message;
    shunt_graph* graph = shunt_graph_new();
    const shunt_tensor x = shunt_input(graph, "x", SHUNT_DTYPE_F32, {1, {4}}, SHUNT_FIXED);
    const shunt_tensor b = shunt_constant(graph, "b", SHUNT_DTYPE_F32, {1, {4}}, constant_.values->data(), 16);
    shunt_output(graph, shunt_add(graph, x, b, {nullptr, 0}));
    const shunt_computation_options how{.strategy = "gpu", .profile = 0};
    computation_ = shunt_computation_new(runtime_, graph, &how, &error_);
    EXPECT_NE(computation_, nullptr) << error_.message;
    arrays_ = shunt_arrays_new(runtime_, &error_);
  }

  void step() {
    const std::int32_t token = 300;
    EXPECT_EQ(shunt_session_prefill(session_, 0, &token, 1, &error_), SHUNT_OK) << error_.message;
    EXPECT_NE(shunt_session_logits(session_, 0), nullptr);
  }
  void run() {
    EXPECT_EQ(shunt_write(computation_, "x", kX.data(), sizeof kX, &error_), SHUNT_OK) << error_.message;
    EXPECT_EQ(shunt_run(computation_, &error_), SHUNT_OK) << error_.message;
    std::array<float, 4> sum{};
    EXPECT_EQ(shunt_read(computation_, 0, sum.data(), sizeof sum, &error_), SHUNT_OK) << error_.message;
    EXPECT_EQ(sum, kSum);
  }
  void add() {
    std::array<float, 4> sum{};
    EXPECT_EQ(shunt_arrays_add(arrays_, kX.data(), constant_.values->data(), sum.data(), 4, nullptr, nullptr, &error_),
              SHUNT_OK)
        << error_.message;
    EXPECT_EQ(sum, kSum);
  }
  void close(std::size_t part) {
    if (part == kRuntime) shunt_runtime_close(std::exchange(runtime_, nullptr));
    if (part == kModelFile) shunt_model_close(std::exchange(model_, nullptr));
    if (part == kSession) shunt_session_close(std::exchange(session_, nullptr));
    if (part == kArrays) shunt_arrays_free(std::exchange(arrays_, nullptr));
    if (part != kComputation) return;
    shunt_computation_free(std::exchange(computation_, nullptr));
  }

 private:
  shunt_error error_{};
  Constant constant_;
  shunt_runtime* runtime_ = nullptr;
  shunt_model* model_ = nullptr;
  shunt_session* session_ = nullptr;
  shunt_computation* computation_ = nullptr;
  shunt_arrays* arrays_ = nullptr;
};

// The C++ interface.
class ThroughCxx {
 public:
  explicit ThroughCxx(const Setting& setting) {
    shunt::RuntimeOptions options{.threads = 1, .devices = setting.devices, .calibrated = false};
    if (setting.timeout_ms != 0) options.timeout = std::chrono::milliseconds(setting.timeout_ms);
    runtime_ = *shunt::Runtime::create(options);
    model_ = *shunt::LanguageModel::load(kModel);
    session_ = *shunt::LanguageSession::create(*model_, *runtime_, {.context = 32, .strategy = shunt::Strategy::gpu});
    EXPECT_TRUE(constants_.add("b", shunt::DType::F32, {4}, std::as_bytes(std::span(*constant_.values))));
    shunt::GraphBuilder builder;
    const shunt::Tensor x = builder.input("x", shunt::DType::F32, {4});
    builder.output(builder.add(x, builder.weight("b", shunt::DType::F32, {4})));
    computation_ = *shunt::Computation::create(*std::move(builder).finish(), *runtime_, &constants_,
                                               {.strategy = shunt::Strategy::gpu});
    arrays_ = *shunt::Arrays::create(*runtime_);
  }

  void step() {
    const shunt::Token token = 300;
    const auto stepped = session_->prefill(0, {&token, 1});
    EXPECT_TRUE(stepped.has_value()) << stepped.error().message;
    EXPECT_FALSE(session_->logits(0).empty());
  }
  void run() {
    EXPECT_TRUE(computation_->write("x", std::as_bytes(std::span(kX))).has_value());
    const auto ran = computation_->run();
    EXPECT_TRUE(ran.has_value()) << ran.error().message;
    std::array<float, 4> sum{};
    EXPECT_TRUE(computation_->read(0, 0, std::as_writable_bytes(std::span(sum))).has_value());
    EXPECT_EQ(sum, kSum);
  }
  void add() {
    std::array<float, 4> sum{};
    EXPECT_TRUE(arrays_->add(kX, *constant_.values, sum).has_value());
    EXPECT_EQ(sum, kSum);
  }
  void close(std::size_t part) {
    if (part == kRuntime) runtime_.reset();
    if (part == kModelFile) model_.reset();
    if (part == kSession) session_.reset();
    if (part == kComputation) computation_.reset();
    if (part == kArrays) arrays_.reset();
  }

 private:
  Constant constant_;
  shunt::MemoryWeights constants_;
  std::unique_ptr<shunt::Runtime> runtime_;
  std::unique_ptr<shunt::LanguageModel> model_;
  std::unique_ptr<shunt::LanguageSession> session_;
  std::unique_ptr<shunt::Computation> computation_;
  std::unique_ptr<shunt::Arrays> arrays_;
};

template <class Objects>
class Lifetimes : public testing::Test {
 protected:
  // After each close, whatever is still open must work as before.
  static void close_while_used(const Setting& setting, const Order& order) {
    Objects objects(setting);
    std::array<bool, kParts> is_open{};
    is_open.fill(true);
    for (const std::size_t part : order) {
      if (is_open[kSession]) objects.step();
      if (is_open[kComputation]) objects.run();
      if (is_open[kArrays]) objects.add();
      objects.close(part);
      is_open[part] = false;
    }
  }
  // Closes after a step that has left a submission in flight.
  static void close_after_step(const Setting& setting, const Order& order) {
    Objects objects(setting);
    objects.step();
    objects.run();
    setting.before_step();
    objects.step();
    for (const std::size_t part : order) objects.close(part);
  }
};
using Interfaces = testing::Types<ThroughC, ThroughCxx>;
TYPED_TEST_SUITE(Lifetimes, Interfaces);

TYPED_TEST(Lifetimes, OnTheProcessorAnyOrderWillDo) {
  for (const Order& order : all_orders()) this->close_while_used({.devices = "cpu:simd"}, order);
}

TYPED_TEST(Lifetimes, OnASimulatedDeviceTheOrdersWillDo) {
  for (const Order& order : main_orders()) this->close_while_used({.devices = "sim:0"}, order);
}

// A Vulkan library that holds submissions back, with a device that uses the host's memory in place. vulkan:0 is
// Mesa's driver, which compiles kernels in the least time.
class FaultyVulkan {
 public:
  FaultyVulkan() {
    setenv("VK_LOADER_DISABLE_SELECT", "1", 1);
    setenv("SHUNT_VULKAN_LIBRARY", SHUNT_FAULTY_VULKAN, 1);
    setenv("SHUNT_VULKAN_PRETENDS", "integrated", 1);
    library_ = dlopen(SHUNT_FAULTY_VULKAN, RTLD_NOW);
    set_faults_ = reinterpret_cast<decltype(&set_vulkan_faults)>(dlsym(library_, "set_vulkan_faults"));
    release_ = reinterpret_cast<decltype(&release_vulkan_submissions)>(dlsym(library_, "release_vulkan_submissions"));
    submissions_ = reinterpret_cast<decltype(&vulkan_submissions)>(dlsym(library_, "vulkan_submissions"));
  }
  ~FaultyVulkan() {
    release_();
    unsetenv("VK_LOADER_DISABLE_SELECT");
    unsetenv("SHUNT_VULKAN_LIBRARY");
    unsetenv("SHUNT_VULKAN_PRETENDS");
  }
  FaultyVulkan(const FaultyVulkan&) = delete;
  FaultyVulkan& operator=(const FaultyVulkan&) = delete;

  void set(const char* faults) {
    EXPECT_TRUE(set_faults_(faults));
    submissions_before_ = submissions_();
  }
  // Starts what is held. The fault must have met a submission.
  void release() {
    EXPECT_GT(submissions_(), submissions_before_);
    release_();
  }
  // If false, the test is skipped, or fails if Vulkan is expected.
  [[nodiscard]] static bool is_there() {
    return shunt::Runtime::create({.threads = 1, .devices = "vulkan:0"}).has_value();
  }

 private:
  void* library_ = nullptr;
  decltype(&set_vulkan_faults) set_faults_ = nullptr;
  decltype(&release_vulkan_submissions) release_ = nullptr;
  decltype(&vulkan_submissions) submissions_ = nullptr;
  int submissions_before_ = 0;
};

// Longer than a submission takes that also compiles its kernels, on a busy machine.
constexpr std::uint32_t kTimeoutMs = 5000;

// Through C alone, which calls the C++ interface: opening Vulkan takes a second.
class LifetimesOnVulkan : public Lifetimes<ThroughC> {};

#define SHUNT_SKIP_WITHOUT_VULKAN()                                       \
  if (!FaultyVulkan::is_there()) {                                        \
    if (shunt::test::is_expected("vulkan")) FAIL() << "vulkan is absent"; \
    GTEST_SKIP() << "vulkan is absent";                                   \
  }

TEST_F(LifetimesOnVulkan, TheOrdersWillDo) {
  FaultyVulkan vulkan;
  SHUNT_SKIP_WITHOUT_VULKAN();
  for (const Order& order : main_orders()) close_while_used({.devices = "vulkan:0"}, order);
}

// The submission outlives its deadline, the step ends on another device, and the submission starts during the closes.
TEST_F(LifetimesOnVulkan, ADelayedSubmissionMayBeInFlight) {
  FaultyVulkan vulkan;
  SHUNT_SKIP_WITHOUT_VULKAN();
  for (const Order& order : main_orders()) {
    const Setting setting{.devices = "vulkan:0,cpu:simd", .timeout_ms = kTimeoutMs, .before_step = [&] {
                            vulkan.set("delay 5500ms from submission 0");
                          }};
    close_after_step(setting, order);
    vulkan.release();
  }
}

// The submission starts after everything has been closed.
TEST_F(LifetimesOnVulkan, ASubmissionMayOutliveAll) {
  FaultyVulkan vulkan;
  SHUNT_SKIP_WITHOUT_VULKAN();
  for (const Order& order : few_orders()) {
    const Setting setting{.devices = "vulkan:0,cpu:simd", .timeout_ms = kTimeoutMs, .before_step = [&] {
                            vulkan.set("hang at submission 0");
                          }};
    close_after_step(setting, order);
    vulkan.release();
  }
}

}  // namespace
