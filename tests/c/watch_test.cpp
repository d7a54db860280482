// Progress and interruption of long calls through the C interface: from callbacks, other threads and signal handlers,
// between steps, leaving everything as it was.
#include "shunt/shunt.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "c/bundled_model.h"

namespace {

using Interrupt = std::unique_ptr<shunt_interrupt, decltype(&shunt_interrupt_free)>;
using Runtime = std::unique_ptr<shunt_runtime, decltype(&shunt_runtime_close)>;
using Model = std::unique_ptr<shunt_model, decltype(&shunt_model_close)>;
using Session = std::unique_ptr<shunt_session, decltype(&shunt_session_close)>;
using Computation = std::unique_ptr<shunt_computation, decltype(&shunt_computation_free)>;

shunt_interrupt* to_interrupt = nullptr;  // for a signal handler, which can reach only globals

class CWatch : public testing::Test {
 public:
  void interrupt() { shunt_interrupt_set(interrupt_.get()); }

 protected:
  CWatch() {
    EXPECT_NE(model_, nullptr);
    open("cpu");
  }

  void open(const char* devices, const char* machine = nullptr) {
    shunt_runtime_options options{};
    options.threads = 1;
    options.devices = devices;
    options.machine = machine;
    options.uncalibrated = 1;
    options.on_progress = &CWatch::on_progress;
    options.user = this;
    options.interrupt = interrupt_.get();
    runtime_.reset(shunt_runtime_open(&options, &error_));
    ASSERT_NE(runtime_, nullptr) << error_.message;
    shunt_session_options session = shunt_session_defaults();
    session.context = 128;
    session.max_batch_tokens = 4;
    session_.reset(shunt_session_open(model_.get(), runtime_.get(), &session, &error_));
    ASSERT_NE(session_, nullptr) << error_.message;
  }

  static void on_progress(void* user, const shunt_progress* progress) {
    auto& test = *static_cast<CWatch*>(user);
    EXPECT_GE(progress->total, progress->done);
    EXPECT_DOUBLE_EQ(progress->fraction, static_cast<double>(progress->done) / static_cast<double>(progress->total));
    test.seen_[progress->kind].push_back(progress->done);
    test.totals_[progress->kind] = progress->total;
    test.words_[progress->kind] = std::string(progress->name) + " in " + progress->unit;
    if (progress->kind == test.ends_at_ && progress->done >= test.ends_after_)
      shunt_interrupt_set(test.interrupt_.get());
  }

  // Greedy; `on_text` receives this test as its user pointer.
  shunt_generation generate(std::uint32_t max_tokens, shunt_on_text on_text = nullptr) {
    shunt_generate_options options = shunt_generate_defaults();
    options.greedy = 1;
    options.max_tokens = max_tokens;
    shunt_generation generation{};
    EXPECT_EQ(shunt_generate(session_.get(), kPrompt, &options, on_text, this, &generation, &error_), SHUNT_OK)
        << error_.message;
    return generation;
  }
  std::vector<std::int32_t> tokens() {
    std::size_t count = 0;
    const std::int32_t* first = shunt_session_tokens(session_.get(), 0, &count);
    return {first, first + count};
  }
  void forget() { ASSERT_EQ(shunt_session_truncate(session_.get(), 0, 0, &error_), SHUNT_OK); }

  shunt_error error_{};
  std::map<shunt_progress_kind, std::vector<std::uint64_t>> seen_;
  std::map<shunt_progress_kind, std::uint64_t> totals_;
  std::map<shunt_progress_kind, std::string> words_;
  shunt_progress_kind ends_at_ = SHUNT_PROGRESS_KIND_COUNT;
  std::uint64_t ends_after_ = 0;
  Interrupt interrupt_{shunt_interrupt_new(), &shunt_interrupt_free};
  Model model_{shunt_model_open(kModel, nullptr), &shunt_model_close};
  Runtime runtime_{nullptr, &shunt_runtime_close};
  Session session_{nullptr, &shunt_session_close};
};

TEST_F(CWatch, LoadingAModelIsCountedInBytesAndInterrupted) {
  shunt_load_options options{};
  options.read_ahead = 1;
  options.on_progress = &CWatch::on_progress;
  options.user = this;
  options.interrupt = interrupt_.get();
  const Model model(shunt_model_open_with(kModel, &options, &error_), &shunt_model_close);
  ASSERT_NE(model, nullptr) << error_.message;
  shunt_model_info info;
  ASSERT_EQ(shunt_model_describe(model.get(), &info, &error_), SHUNT_OK);
  ASSERT_FALSE(seen_[SHUNT_PROGRESS_reading_model].empty());
  EXPECT_EQ(seen_[SHUNT_PROGRESS_reading_model].back(), info.weight_bytes);
  EXPECT_EQ(totals_[SHUNT_PROGRESS_reading_model], info.weight_bytes);
  EXPECT_EQ(words_[SHUNT_PROGRESS_reading_model], "reading the model in bytes");

  shunt_interrupt_set(interrupt_.get());
  EXPECT_EQ(shunt_model_open_with(kModel, &options, &error_), nullptr);
  EXPECT_EQ(error_.code, SHUNT_INTERRUPTED);
  EXPECT_STREQ(shunt_code_name(error_.code), "interrupted");
  EXPECT_NE(std::strstr(error_.message, kModel), nullptr) << error_.message;
}

TEST_F(CWatch, WeightsThatAreCopiedAreCountedInBytes) {
  open("sim:0");
  static_cast<void>(generate(1));
  ASSERT_FALSE(seen_[SHUNT_PROGRESS_copying_weights].empty());
  EXPECT_EQ(seen_[SHUNT_PROGRESS_copying_weights].back(), totals_[SHUNT_PROGRESS_copying_weights]);

  ends_at_ = SHUNT_PROGRESS_copying_weights;
  open("sim:0");
  const std::int32_t token = 300;
  EXPECT_EQ(shunt_session_prefill(session_.get(), 0, &token, 1, &error_), SHUNT_INTERRUPTED) << error_.message;
  EXPECT_LT(seen_[SHUNT_PROGRESS_copying_weights].back(), totals_[SHUNT_PROGRESS_copying_weights]);
  EXPECT_TRUE(tokens().empty());
  ends_at_ = SHUNT_PROGRESS_KIND_COUNT;
  shunt_interrupt_clear(interrupt_.get());
  EXPECT_EQ(shunt_session_prefill(session_.get(), 0, &token, 1, &error_), SHUNT_OK) << error_.message;
}

TEST_F(CWatch, APromptIsCountedInTokensAndInterruptedBetweenItsSteps) {
  const std::vector<std::int32_t> prompt(10, 300);
  ASSERT_EQ(shunt_session_prefill(session_.get(), 0, prompt.data(), prompt.size(), &error_), SHUNT_OK);
  EXPECT_EQ(seen_[SHUNT_PROGRESS_reading_prompt], (std::vector<std::uint64_t>{4, 8, 10}));
  EXPECT_EQ(totals_[SHUNT_PROGRESS_reading_prompt], 10U);

  forget();
  ends_at_ = SHUNT_PROGRESS_reading_prompt;
  ends_after_ = 4;
  EXPECT_EQ(shunt_session_prefill(session_.get(), 0, prompt.data(), prompt.size(), &error_), SHUNT_INTERRUPTED);
  EXPECT_EQ(error_.code, SHUNT_INTERRUPTED);
  EXPECT_EQ(tokens().size(), 4U) << "the steps before it stay";
  EXPECT_EQ(shunt_interrupt_is_set(interrupt_.get()), 1);
  EXPECT_EQ(shunt_session_prefill(session_.get(), 0, prompt.data(), 1, &error_), SHUNT_INTERRUPTED) << "it stays set";
  EXPECT_EQ(tokens().size(), 4U);
  shunt_interrupt_clear(interrupt_.get());
  ends_at_ = SHUNT_PROGRESS_KIND_COUNT;
  EXPECT_EQ(shunt_session_prefill(session_.get(), 0, prompt.data(), 6, &error_), SHUNT_OK) << error_.message;
}

// The text so far is the start of an uninterrupted generation, and the sequence holds all of it.
TEST_F(CWatch, AGenerationEndsWithTheTextSoFar) {
  const std::string whole = generate(24).text;
  const std::vector<std::int32_t> held = tokens();
  forget();
  const auto interrupt = [](void* user, const char*, std::size_t) {
    static_cast<CWatch*>(user)->interrupt();
    return 0;
  };
  const shunt_generation cut = generate(24, interrupt);
  EXPECT_EQ(cut.stop, SHUNT_STOP_INTERRUPTED);
  ASSERT_GT(cut.token_count, 0U);
  EXPECT_LT(cut.token_count, 24U);
  EXPECT_EQ(whole.compare(0, cut.text_bytes, cut.text), 0) << cut.text;
  const std::vector<std::int32_t> so_far = tokens();
  EXPECT_EQ(so_far.size(), cut.prompt_tokens + cut.token_count);
  EXPECT_EQ(so_far, std::vector(held.begin(), held.begin() + static_cast<std::ptrdiff_t>(so_far.size())));

  const shunt_generation none = generate(24);
  EXPECT_EQ(none.stop, SHUNT_STOP_INTERRUPTED) << "it stays set";
  EXPECT_EQ(none.token_count, 0U);
  shunt_interrupt_clear(interrupt_.get());
  forget();
  EXPECT_EQ(generate(24).text, whole);
}

TEST_F(CWatch, ASignalHandlerAndAnotherThreadMayInterrupt) {
  to_interrupt = interrupt_.get();
  ASSERT_NE(std::signal(SIGUSR1, [](int) { shunt_interrupt_set(to_interrupt); }), SIG_ERR);
  const auto raise = [](void*, const char*, std::size_t) { return std::raise(SIGUSR1); };
  EXPECT_EQ(generate(24, raise).stop, SHUNT_STOP_INTERRUPTED);
  ASSERT_NE(std::signal(SIGUSR1, SIG_DFL), SIG_ERR);
  shunt_interrupt_clear(interrupt_.get());
  forget();
  const auto from_a_thread = [](void* user, const char*, std::size_t) {
    std::thread([user] { static_cast<CWatch*>(user)->interrupt(); }).join();
    return 0;
  };
  EXPECT_EQ(generate(24, from_a_thread).stop, SHUNT_STOP_INTERRUPTED);
}

// The test's state for a kernel function on the processor.
struct Steps {
  shunt_interrupt* interrupt = nullptr;
  int done = 0;
};

const char* same_result(const shunt_kernel_use* use, shunt_operand* result, void*) {
  *result = use->inputs[0];
  return nullptr;
}
const char* interrupting(const shunt_kernel_work* work, void* user) {
  auto& steps = *static_cast<Steps*>(user);
  ++steps.done;
  shunt_interrupt_set(steps.interrupt);
  std::memcpy(work->result_data, work->input_data[0], 4 * sizeof(float));
  return nullptr;
}

// The first step runs on the preferred GPU, the second on the processor, since the GPU lacks the op.
TEST_F(CWatch, ARunIsInterruptedBetweenItsSteps) {
  const std::string machine = testing::TempDir() + "watch_test_machine.json";
  std::ofstream(machine) << R"({"devices": [{"id": "gpu", "type": "discrete", "lacks": ["scale"]},
                                            {"id": "cpu", "type": "cpu"}]})";
  open(nullptr, machine.c_str());
  Steps steps;
  steps.interrupt = interrupt_.get();
  shunt_kernel_description description{};
  description.name = "interrupting";
  description.inputs = 1;
  description.result = same_result;
  description.cpu = interrupting;
  description.user = &steps;
  shunt_kernel* kernel = shunt_kernel_create(&description, &error_);
  ASSERT_NE(kernel, nullptr) << error_.message;
  const shunt_attribute code = shunt_attr_code(kernel);
  const shunt_attribute twice = shunt_attr_factor(2);
  shunt_graph* graph = shunt_graph_new();
  const shunt_tensor x = shunt_input(graph, "x", SHUNT_DTYPE_F32, {1, {4}}, SHUNT_FIXED);
  const shunt_tensor same = shunt_add_node(graph, SHUNT_OP_custom, &x, 1, {&code, 1});
  shunt_output(graph, shunt_scale(graph, same, {&twice, 1}));
  const shunt_computation_options options{.strategy = "gpu", .profile = 0};
  const Computation computation(shunt_computation_new(runtime_.get(), graph, &options, &error_),
                                &shunt_computation_free);
  shunt_kernel_free(kernel);
  ASSERT_NE(computation, nullptr) << error_.message;
  const std::string plan = shunt_explain(computation.get());
  ASSERT_NE(plan.find("1 ops on gpu"), std::string::npos) << plan;
  ASSERT_NE(plan.find("1 ops on cpu"), std::string::npos) << plan;
  const std::vector<float> values{1, 2, 3, 4};
  ASSERT_EQ(shunt_write(computation.get(), "x", values.data(), 4 * sizeof(float), &error_), SHUNT_OK);
  EXPECT_EQ(shunt_run(computation.get(), &error_), SHUNT_INTERRUPTED) << error_.message;
  const int done = steps.done;
  EXPECT_GT(done, 0);
  EXPECT_EQ(shunt_run(computation.get(), &error_), SHUNT_INTERRUPTED);
  EXPECT_EQ(steps.done, done) << "a run that is interrupted before it begins does nothing";

  steps.interrupt = nullptr;
  shunt_interrupt_clear(interrupt_.get());
  ASSERT_EQ(shunt_run(computation.get(), &error_), SHUNT_OK) << error_.message;
  std::vector<float> result(4);
  ASSERT_EQ(shunt_read(computation.get(), 0, result.data(), 4 * sizeof(float), &error_), SHUNT_OK);
  EXPECT_EQ(result, (std::vector<float>{2, 4, 6, 8}));
}

TEST_F(CWatch, AnInterruptMayBeFreedBeforeWhatHasIt) {
  shunt_interrupt_set(interrupt_.get());
  interrupt_.reset();
  const std::int32_t token = 300;
  EXPECT_EQ(shunt_session_prefill(session_.get(), 0, &token, 1, &error_), SHUNT_INTERRUPTED);
  shunt_interrupt_set(nullptr);
  shunt_interrupt_clear(nullptr);
  shunt_interrupt_free(nullptr);
  EXPECT_EQ(shunt_interrupt_is_set(nullptr), 0);
}

}  // namespace
