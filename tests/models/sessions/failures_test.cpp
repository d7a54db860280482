// A text stays unchanged when devices fail while it is generated, as long as one of them is left.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <random>

#include "models/gguf/gguf_bytes.h"
#include "models/phase_faults.h"
#include "models/random/random_model.h"
#include "models/short_run.h"
#include "run/opened_devices.h"
#include "sanitized.h"
#include "trace/recorder.h"

namespace shunt::models {
namespace {

// A small model, and the text it generates when nothing fails.
class Failures : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_model("nano", "F16", folder_.file("m")).has_value());
    for (Token token = 0; token < 20; ++token) prompt_.push_back(5 + token * 7);
    Run exact = start("cpu:scalar", "", {});
    text_ = generate(*exact.loaded);
    ASSERT_EQ(text_.size(), kGenerated);
  }

  std::size_t fail_everywhere(Strategy strategy, std::uint32_t first_seed, std::uint32_t end_seed);

  struct Run {
    std::vector<std::string> notices;
    std::unique_ptr<Loaded> loaded;
  };

  Run start(const std::string& devices, const std::string& faults, Strategy strategy, bool strict = false,
            std::uint32_t audit = 0) {
    Run run;
    auto runtime = Runtime::create({.threads = 1,
                                    .devices = devices,
                                    .calibrated = false,
                                    .trace = audit != 0,
                                    .strict = strict,
                                    .timeout = std::chrono::milliseconds(200),
                                    .audit = audit,
                                    .faults = faults,
                                    .on_notice = [&](const std::string& text) { notices_.push_back(text); }});
    run.loaded = std::make_unique<Loaded>(folder_.file("m"), Loaded::take(std::move(runtime)),
                                          SessionOptions{.context = 64, .max_batch_tokens = 8, .strategy = strategy});
    return run;
  }

  // Generates greedily; with `error`, up to the first error.
  std::vector<Token> generate(const Loaded& loaded, Error* error = nullptr) {
    std::vector<Token> tokens;
    Status status = loaded.session->prefill(0, prompt_);
    while (status) {
      tokens.push_back(best_of(loaded.session->logits(0)));
      if (tokens.size() == kGenerated) return tokens;
      status = loaded.session->prefill(0, std::span(tokens).last(1));
    }
    if (error != nullptr)
      *error = status.error();
    else
      ADD_FAILURE() << status.error().message;
    return tokens;
  }

  // Expects all memory to have been released.
  void expect_no_leaks(Loaded& loaded) {
    loaded.session = nullptr;
    for (std::size_t index = 0; index < opened(*loaded.runtime).handles().size(); ++index) {
      const Device& device = *opened(*loaded.runtime).current(index);
      if (device.info().is_host_cpu()) continue;
      EXPECT_EQ(device.memory_available(), device.info().memory_bytes) << device.info().id;
    }
  }

  TestFolder folder_;
  std::vector<Token> prompt_, text_;
  std::vector<std::string> notices_;
};

Work work_of(const Loaded& loaded, std::uint32_t device) {
  const auto ops = [&](std::uint32_t tokens) {
    const Plan* plan = Loaded::take(loaded.session->plan_for(tokens, 1));
    return static_cast<std::size_t>(std::ranges::count(plan->decisions, device, &Decision::device));
  };
  return {.prompt = 2 * ops(8) + ops(4), .token = ops(1)};
}

constexpr const char* kDevices[] = {"sim:0", "cpu:scalar", "sim:1"};
constexpr std::uint32_t kSeedStep = test::kSanitized ? 18 : 2;

// Every combination of fault, phase and device, on simulated devices and the scalar processor, which compute equal
// bits. Returns the number of cases.
std::size_t Failures::fail_everywhere(Strategy strategy, std::uint32_t first_seed, std::uint32_t end_seed) {
  const std::string all = fmt::format("{}", fmt::join(kDevices, ","));
  std::size_t cases = 0;
  std::size_t struck = 0;
  const Run whole = start(all, "", strategy);
  for (std::uint32_t seed = first_seed; seed < end_seed; seed += kSeedStep)
    for (std::uint32_t device = 0; device < std::size(kDevices); ++device)
      for (const Phase phase : kPhases) {
        std::mt19937 random(seed * 64 + device * 8 + static_cast<std::uint32_t>(phase));
        const Work work = work_of(*whole.loaded, device);
        if (work.token == 0) continue;  // the device has no work
        const std::string fault = fmt::format("{} {}", kDevices[device], fault_in(phase, work, random));
        SCOPED_TRACE(fmt::format("{}, {}", name_of(strategy), fault));
        notices_.clear();
        const Run run = start(all, fault, strategy);
        EXPECT_EQ(generate(*run.loaded), text_);
        ++cases;
        expect_no_leaks(*run.loaded);
        if (notices_.empty()) continue;
        ++struck;
        // A non-finite result does not show which device produced it.
        if (fault.find("nonfinite") == std::string::npos) {
          EXPECT_EQ(notices_.front().find(kDevices[device]), 0U) << notices_.front();
        }
      }
  EXPECT_GE(struck * 10, cases * 7) << struck << " of " << cases;
  return cases;
}

// 270 cases in all: nine draws of a fault in each phase of each device. Sanitizers run 30.
TEST_F(Failures, LeaveTheTextAsItIsWhateverFailsInLayers) {
  EXPECT_EQ(fail_everywhere(Strategy::layers, 0, 18), 180U / kSeedStep);
}
TEST_F(Failures, LeaveTheTextAsItIsWhateverElseFailsInLayers) {
  EXPECT_EQ(fail_everywhere(Strategy::layers, 18, 36), 180U / kSeedStep);
}
TEST_F(Failures, LeaveTheTextAsItIsWhateverFailsInSearchedPlans) {
  EXPECT_GE(fail_everywhere(Strategy::automatic, 0, 36), 140U / kSeedStep);
}

// Devices fail one after the other until only one is left.
TEST_F(Failures, OfSeveralDevicesLeaveTheTextAsItIs) {
  constexpr std::uint32_t kSeeds = test::kSanitized ? 3 : 20;
  for (std::uint32_t seed = 0; seed < kSeeds; ++seed) {
    std::mt19937 random(seed);
    const auto op = [&](std::uint32_t below) { return random() % below; };
    const std::string faults =
        fmt::format("sim:0 lost at op {}, sim:1 hang at op {}, sim:1 nonfinite at op {}", op(200), op(200), op(100));
    SCOPED_TRACE(faults);
    const Run run = start("sim:0,sim:1,cpu:scalar", faults, Strategy::layers);
    EXPECT_EQ(generate(*run.loaded), text_);
    expect_no_leaks(*run.loaded);
  }
}

TEST_F(Failures, OfTheLastDeviceAreTheErrorAndTheSequenceStays) {
  const Run run = start("sim:0,sim:1", "sim:0 lost at op 10, sim:1 lost at op 150", Strategy::automatic);
  Error error;
  const std::vector<Token> tokens = generate(*run.loaded, &error);
  EXPECT_LT(tokens.size(), kGenerated);
  EXPECT_TRUE(std::ranges::equal(tokens, std::span(text_).first(tokens.size())));
  EXPECT_EQ(error.code, Code::device_lost);
  EXPECT_EQ(error.device, "sim:1");
  EXPECT_NE(error.message.find("sim:0 failed before"), std::string::npos) << error.message;
  EXPECT_EQ(run.loaded->session->tokens(0).size(), tokens.empty() ? 0U : prompt_.size() + tokens.size() - 1);
}

TEST_F(Failures, AreTheErrorWhereNothingMayRunElsewhere) {
  const std::pair<const char*, Code> faults[] = {{"sim:0 oom after 2 allocations", Code::out_of_memory},
                                                 {"sim:0 lost at op 20", Code::device_lost},
                                                 {"sim:0 hang at op 20", Code::timed_out},
                                                 {"sim:0 error at op 20", Code::internal},
                                                 {"sim:0 nonfinite at op 5", Code::internal},
                                                 {"sim:0 wrong after 5 ops", Code::internal},
                                                 {"sim:0 lost at program 0", Code::device_lost},
                                                 {"sim:0 error at transfer 9", Code::internal}};
  for (const auto& [fault, code] : faults) {
    SCOPED_TRACE(fault);
    const Run run = start("sim:0,cpu:scalar", fault, Strategy::automatic, true, 1);
    Error error;
    EXPECT_LT(generate(*run.loaded, &error).size(), kGenerated);
    EXPECT_EQ(error.code, code) << error.message;
    EXPECT_EQ(error.device, "sim:0") << error.message;
    EXPECT_TRUE(notices_.empty());
  }
}

TEST_F(Failures, OfADeviceThatIsWellAgainEndAfterAWhileThatDoubles) {
  const Run run = start("sim:0,cpu:scalar", "sim:0 lost at op 30", Strategy::automatic);
  Session& session = *run.loaded->session;
  const auto uses_the_device = [&] {
    const Plan* plan = Loaded::take(session.plan_for(1, 1));
    return std::ranges::any_of(plan->decisions,
                               [&](const Decision& each) { return plan->devices[each.device].id == "sim:0"; });
  };
  ASSERT_TRUE(session.prefill(0, prompt_).has_value());
  EXPECT_FALSE(uses_the_device());
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_NE(notices_[0].find("going on with cpu:scalar"), std::string::npos) << notices_[0];
  const auto quarantined = [&] { return Loaded::take(session.plan_for(1, 1))->quarantined; };
  ASSERT_EQ(quarantined().size(), 1U);
  EXPECT_EQ(quarantined()[0].id, "sim:0");
  EXPECT_NE(notices_[0].find(quarantined()[0].why), std::string::npos) << quarantined()[0].why;
  for (std::uint64_t step = 0; step <= Backoff::kCalls; ++step) {
    session.truncate(0, 20);
    ASSERT_TRUE(session.prefill(0, text_).has_value());
  }
  ASSERT_EQ(notices_.size(), 2U);
  EXPECT_EQ(notices_[1], "sim:0 is used again");
  EXPECT_TRUE(uses_the_device());
  EXPECT_TRUE(quarantined().empty());
  session.truncate(0, 0);
  EXPECT_EQ(generate(*run.loaded), text_);
}

// Another process takes memory of a GPU that is worth its copies, after the plan and before the weights are placed.
TEST_F(Failures, OfMemoryGiveADeviceLessToDo) {
  std::ofstream(folder_.file("machine.json")) << R"({"name": "one GPU", "devices": [
    {"id": "gpu:0", "type": "discrete", "launch_us": 1, "op_us": 0.1, "flops_per_s": 1e12, "bytes_per_s": 1e11,
     "memory_bytes": "1 MiB", "link": {"latency_us": 1, "bytes_per_s": 1e10}},
    {"id": "cpu:0", "type": "cpu", "launch_us": 1, "op_us": 50, "flops_per_s": 1e9, "bytes_per_s": 1e9,
     "memory_bytes": "1 GiB", "memory_pool": "host"}]})";
  const auto open = [&] {
    return Loaded::take(Runtime::create({.machine = folder_.file("machine.json"),
                                         .on_notice = [&](const std::string& text) { notices_.push_back(text); }}));
  };
  const SessionOptions options{.context = 64, .max_batch_tokens = 8, .margin = 0.05};
  const Loaded whole(folder_.file("m"), open(), options);
  EXPECT_EQ(generate(whole), text_);
  const std::uint64_t needed = opened(*whole.runtime).handles()[0]->info().memory_bytes -
                               *opened(*whole.runtime).handles()[0]->memory_available();
  EXPECT_TRUE(notices_.empty());

  Loaded loaded(folder_.file("m"), open(), options);
  Device& device = *opened(*loaded.runtime).handles()[0];
  const std::uint64_t left = needed * 9 / 10;
  const auto others = Loaded::take(device.allocate(*device.memory_available() - left, BufferUse::values));
  EXPECT_EQ(generate(loaded), text_);
  ASSERT_FALSE(notices_.empty());
  EXPECT_NE(notices_[0].find("it gets less to do"), std::string::npos) << notices_[0];
  EXPECT_GT(loaded.session->memory().copied_weights, 0U) << fmt::format("{}", fmt::join(notices_, "; "));
  loaded.session = nullptr;
  EXPECT_EQ(device.memory_available(), left);
}

TEST_F(Failures, OfADeviceThatIsWrongAreFoundByAudits) {
  for (const Strategy strategy : {Strategy::automatic, Strategy::gpu}) {
    SCOPED_TRACE(name_of(strategy));
    notices_.clear();
    const Run run = start("sim:0,cpu:scalar", "sim:0 wrong after 0 ops", strategy, false, 1);
    EXPECT_EQ(generate(*run.loaded), text_);
    ASSERT_EQ(notices_.size(), 1U);
    EXPECT_EQ(notices_[0].find("sim:0 failed, internal: "), 0U) << notices_[0];
    EXPECT_NE(notices_[0].find("is wrong"), std::string::npos) << notices_[0];
    EXPECT_EQ(audits_of(*run.loaded, true), 1U);
    // No further notices appear later.
    for (std::uint64_t step = 0; step <= Backoff::kCalls; ++step) {
      run.loaded->session->truncate(0, 20);
      ASSERT_TRUE(run.loaded->session->prefill(0, text_).has_value());
    }
    EXPECT_EQ(notices_.size(), 1U);
  }
}

// One of three devices turns wrong in the middle of a text, and is detected once each op has been audited.
TEST_F(Failures, OfADeviceThatBecomesWrongAreFoundOnceEachOpHasHadItsTurn) {
  constexpr std::uint32_t kEach = 2;
  for (const char* device : kDevices)
    for (const std::uint32_t op : {0U, 300U, 1000U}) {
      if (test::kSanitized && op == 1000) continue;
      SCOPED_TRACE(fmt::format("{} {}", device, op));
      notices_.clear();
      const std::string all = fmt::format("{}", fmt::join(kDevices, ","));
      const Run run = start(all, fmt::format("{} wrong after {} ops", device, op), Strategy::layers, false, kEach);
      Session& session = *run.loaded->session;
      const Plan* plan = Loaded::take(session.plan_for(1, 1));
      const bool takes_part = std::ranges::any_of(
          plan->decisions, [&](const Decision& decision) { return plan->devices[decision.device].id == device; });
      const std::size_t bound = std::size_t{2} * kEach * plan->units.size() + op;
      ASSERT_TRUE(session.prefill(0, prompt_).has_value());
      for (std::size_t step = 0; step < bound && notices_.empty(); ++step) {
        session.truncate(0, prompt_.size());
        ASSERT_TRUE(session.prefill(0, std::span(text_).first(1)).has_value());
      }
      ASSERT_EQ(notices_.size(), takes_part ? 1U : 0U);
      if (!takes_part) continue;
      EXPECT_EQ(notices_[0].find(device), 0U) << notices_[0];
      session.truncate(0, 0);
      EXPECT_EQ(generate(*run.loaded), text_);
    }
}

TEST_F(Failures, OfNoDeviceAreFoundByAuditsOfAWholeText) {
  for (const char* devices : {"cpu:simd", "sim:0,cpu:simd,cpu:scalar"})
    for (const Strategy strategy : {Strategy::automatic, Strategy::layers}) {
      SCOPED_TRACE(devices);
      const Run run = start(devices, "", strategy, true, 1);
      EXPECT_EQ(generate(*run.loaded), text_);
      const std::size_t units = Loaded::take(run.loaded->session->plan_for(1, 1))->units.size();
      for (std::size_t step = 0; step < units; ++step) {
        run.loaded->session->truncate(0, prompt_.size());
        ASSERT_TRUE(run.loaded->session->prefill(0, std::span(text_).first(1)).has_value());
      }
      EXPECT_GE(audits_of(*run.loaded, false), units + kGenerated);
      EXPECT_EQ(audits_of(*run.loaded, true), 0U);
      EXPECT_TRUE(notices_.empty());
    }
}

TEST_F(Failures, OfAModelThatHasNoFiniteLogitsAreNoneOfADevice) {
  TestFolder folder;
  ASSERT_TRUE(make_model("nano", "F32", folder.file("m")).has_value());
  // NaN in the last weights of the file.
  std::fstream file(folder.file("m"), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-64, std::ios::end);
  const std::string nan(64, '\xFF');
  file.write(nan.data(), 64);
  file.close();
  std::vector<std::string> notices;
  Loaded loaded(folder.file("m"),
                Loaded::take(Runtime::create({.threads = 1,
                                              .devices = "sim:0,cpu:scalar",
                                              .on_notice = [&](const std::string& text) { notices.push_back(text); }})),
                {.context = 64});
  for (std::size_t step = 1; step <= 2; ++step) {
    const Status status = loaded.session->prefill(0, prompt_);
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, Code::internal);
    EXPECT_EQ(status.error().device, "") << "it is the model's doing";
    EXPECT_NE(status.error().message.find("makes tensor"), std::string::npos) << status.error().message;
    EXPECT_NE(status.error().message.find("has numbers that are not finite"), std::string::npos);
    EXPECT_EQ(notices.size(), 2 * step) << "each device was left out once";
    EXPECT_TRUE(loaded.session->tokens(0).empty()) << "the sequence is as it was";
  }
}

}  // namespace
}  // namespace shunt::models
