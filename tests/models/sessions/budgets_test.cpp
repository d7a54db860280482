// Sessions beside another program that takes memory of their GPU, and gives it back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "devices/sim/device.h"
#include "models/gguf/gguf_bytes.h"
#include "models/random/random_model.h"
#include "models/short_run.h"
#include "run/opened_devices.h"

namespace shunt::models {
namespace {

constexpr std::uint32_t kTextTokens = 64;
constexpr std::size_t kPromptTokens = 20;
constexpr int kPatience = 10;  // texts in which memory that was given back should be used

// A GPU that is worth its copies, beside a slow processor. Both compute equal bits.
class Budgets : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_model("nano", "F16", folder_.file("m")).has_value());
    for (Token token = 0; token < static_cast<Token>(kPromptTokens); ++token) prompt_.push_back(5 + token * 7);
    std::ofstream(folder_.file("machine.json")) << R"({"name": "one GPU", "devices": [
      {"id": "gpu:0", "type": "discrete", "launch_us": 1, "op_us": 0.1, "flops_per_s": 1e12, "bytes_per_s": 1e11,
       "memory_bytes": "2 MiB", "link": {"latency_us": 1, "bytes_per_s": 2e7}},
      {"id": "cpu:0", "type": "cpu", "launch_us": 1, "op_us": 1000, "flops_per_s": 1e9, "bytes_per_s": 1e9,
       "memory_bytes": "1 GiB", "memory_pool": "host"}]})";
    text_ = text_of(*Loaded(folder_.file("m"), "cpu:scalar", kOptions).session);
  }

  Loaded load(const std::map<std::string, std::uint64_t>& budgets = {}) {
    return {folder_.file("m"),
            Loaded::take(Runtime::create({.machine = folder_.file("machine.json"),
                                          .budgets = budgets,
                                          .on_notice = [&](const std::string& text) { notices_.push_back(text); }})),
            kOptions};
  }

  // Generates as many tokens as the context has room for, and calls `before` with the number of each.
  std::vector<Token> text_of(Session& session, const std::function<void(std::size_t)>& before = {}) const {
    session.truncate(0, 0);
    std::vector<Token> tokens;
    Status status = session.prefill(0, prompt_);
    while (status && session.tokens(0).size() < kTextTokens) {
      tokens.push_back(best_of(session.logits(0)));
      if (before) before(tokens.size());
      status = session.prefill(0, std::span(tokens).last(1));
    }
    EXPECT_TRUE(status.has_value()) << status.error().message;
    return tokens;
  }

  static Device& gpu(const Loaded& loaded) { return *opened(*loaded.runtime).handles()[0]; }
  static std::uint64_t free_of(const Loaded& loaded) { return *gpu(loaded).memory_available(); }
  static std::uint64_t total_of(const Loaded& loaded) { return gpu(loaded).info().memory_bytes; }
  // Returns how much of the weights and the state a token's plan has on the GPU.
  static std::uint64_t kept(const Loaded& loaded) {
    const Plan* plan = Loaded::take(loaded.session->plan_for(1, 1));
    const auto use = std::ranges::find(plan->memory, "gpu:0", &MemoryUse::pool);
    return use == plan->memory.end() ? 0 : use->weight_bytes + use->state_bytes;
  }
  [[nodiscard]] std::string notices() const { return fmt::format("{}", fmt::join(notices_, "\n")); }
  // An allocation that fails is always told.
  void expect_no_failed_allocation() const { EXPECT_EQ(notices().find("wanted"), std::string::npos) << notices(); }

  static constexpr SessionOptions kOptions{
      .context = kTextTokens, .max_batch_tokens = 32, .strategy = Strategy::gpu, .margin = 0.05};
  TestFolder folder_;
  std::vector<Token> prompt_, text_;
  std::vector<std::string> notices_;
};

TEST_F(Budgets, ShrinkBeforeAnAllocationFails) {
  const Loaded loaded = load();
  std::uint64_t before = 0;
  const auto take_what_is_free = [&](std::size_t token) {
    if (token != 5) return;
    before = kept(loaded);
    sim::take_memory(gpu(loaded), free_of(loaded));
  };
  EXPECT_EQ(text_of(*loaded.session, take_what_is_free), text_);
  EXPECT_GT(kept(loaded), 0U);
  EXPECT_LT(kept(loaded), before);
  ASSERT_EQ(notices_.size(), 1U) << notices();
  EXPECT_EQ(notices_[0].find("others took "), 0U) << notices();
  EXPECT_NE(notices_[0].find("gpu:0 now holds "), std::string::npos) << notices();
  expect_no_failed_allocation();
}

TEST_F(Budgets, GrowWhenMemoryIsGivenBack) {
  const Loaded loaded = load();
  EXPECT_EQ(text_of(*loaded.session), text_);
  const std::uint64_t before = kept(loaded);
  sim::take_memory(gpu(loaded), free_of(loaded));
  EXPECT_EQ(text_of(*loaded.session), text_);
  EXPECT_LT(kept(loaded), before);
  sim::take_memory(gpu(loaded), 0);
  for (int turn = 0; turn < kPatience && kept(loaded) != before; ++turn) EXPECT_EQ(text_of(*loaded.session), text_);
  EXPECT_EQ(kept(loaded), before) << notices();
  ASSERT_EQ(notices_.size(), 2U) << notices();
  EXPECT_EQ(notices_[1].find("others gave back "), 0U) << notices();
  expect_no_failed_allocation();
}

// The other program takes whatever becomes free, until it has all.
TEST_F(Budgets, OfADeviceThatIsTakenWhollyLeaveTheWorkToOthers) {
  const Loaded loaded = load();
  const auto take_all = [&](std::size_t token) {
    if (token == 5) sim::take_memory(gpu(loaded), total_of(loaded));
  };
  EXPECT_EQ(text_of(*loaded.session, take_all), text_);
  EXPECT_EQ(kept(loaded), 0U) << notices();
  EXPECT_LE(notices_.size(), 6U) << notices();
  expect_no_failed_allocation();
  sim::take_memory(gpu(loaded), 0);
  for (int turn = 0; turn < kPatience && kept(loaded) == 0; ++turn) EXPECT_EQ(text_of(*loaded.session), text_);
  EXPECT_GT(kept(loaded), 0U) << notices();
}

TEST_F(Budgets, ThatSwingChangePlansOnlyWhereThatPays) {
  const auto us_of = [&](bool swings) {
    const Loaded loaded = load();
    const std::uint64_t begin_ns = gpu(loaded).now_ns();
    for (std::size_t turn = 0; turn < 5; ++turn) {
      bool is_taken = false;
      const auto swing = [&](std::size_t token) {
        if (token % 4 != 0) return;
        is_taken = !swings || !is_taken;
        sim::take_memory(gpu(loaded), is_taken ? total_of(loaded) * 3 / 4 : 0);
      };
      EXPECT_EQ(text_of(*loaded.session, swing), text_);
    }
    return (gpu(loaded).now_ns() - begin_ns) / 1000;
  };
  const std::uint64_t taken_us = us_of(false);
  notices_.clear();
  // 55 swings.
  EXPECT_LE(us_of(true), taken_us * 5 / 4);
  EXPECT_LE(notices_.size(), 16U) << notices();
  expect_no_failed_allocation();
}

TEST_F(Budgets, OfTheUserStay) {
  const Loaded free = load();
  EXPECT_EQ(text_of(*free.session), text_);
  const std::uint64_t needed = total_of(free) - free_of(free);
  const Loaded loaded = load({{"gpu:0", needed}});
  EXPECT_EQ(text_of(*loaded.session), text_);
  const std::uint64_t before = kept(loaded);
  EXPECT_GT(before, 0U);
  sim::take_memory(gpu(loaded), free_of(loaded));
  EXPECT_EQ(text_of(*loaded.session), text_);
  EXPECT_EQ(kept(loaded), before);
  EXPECT_TRUE(notices_.empty()) << notices();
}

// A prompt needs an arena that is not there yet.
TEST_F(Budgets, ShrinkForAPromptThatHasNoRoomAnyMore) {
  const Loaded loaded = load();
  ASSERT_TRUE(loaded.session->prefill(0, std::span(prompt_).first(1)).has_value());
  ASSERT_GT(kept(loaded), 0U);
  sim::take_memory(gpu(loaded), free_of(loaded));
  EXPECT_EQ(text_of(*loaded.session), text_);
  EXPECT_FALSE(notices_.empty());
  expect_no_failed_allocation();
}

TEST_F(Budgets, CountWhatOtherSessionsHold) {
  Loaded first = load();
  EXPECT_EQ(text_of(*first.session), text_);
  const std::uint64_t needed = total_of(first) - free_of(first);
  // Another model, for which there is not enough.
  sim::take_memory(gpu(first), total_of(first) - needed * 3 / 2);
  ASSERT_TRUE(make_model("nano", "F16", folder_.file("other")).has_value());
  const auto model = Loaded::take(Model::load(folder_.file("other")));
  const auto second = Loaded::take(Session::create(*model, *first.runtime, kOptions));
  EXPECT_EQ(text_of(*second), text_);
  EXPECT_EQ(text_of(*first.session), text_);
  EXPECT_EQ(text_of(*second), text_);
  EXPECT_TRUE(notices_.empty()) << notices();
}

TEST_F(Budgets, OfStrictRuntimesStay) {
  const Loaded loaded(folder_.file("m"),
                      Loaded::take(Runtime::create({.machine = folder_.file("machine.json"), .strict = true})),
                      kOptions);
  EXPECT_EQ(text_of(*loaded.session), text_);
  const std::uint64_t before = kept(loaded);
  sim::take_memory(gpu(loaded), total_of(loaded));
  EXPECT_EQ(text_of(*loaded.session), text_);
  EXPECT_EQ(kept(loaded), before);
}

// Arenas that were too small do not stay beside larger ones.
TEST_F(Budgets, HoldOneArenaForStepsOfAllSizes) {
  const Loaded growing = load();
  ASSERT_TRUE(growing.session->prefill(0, std::span(prompt_).first(1)).has_value());
  const std::uint64_t small = free_of(growing);
  EXPECT_EQ(text_of(*growing.session), text_);
  EXPECT_LT(free_of(growing), small) << "a prompt needs a larger arena";
  const Loaded whole = load();
  EXPECT_EQ(text_of(*whole.session), text_);
  EXPECT_EQ(free_of(growing), free_of(whole));
  EXPECT_EQ(text_of(*growing.session), text_);
}

}  // namespace
}  // namespace shunt::models
