// Long operations report their progress and stop when their watch says so.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/own_cache.h"
#include "devices/discovery/registry.h"
#include "devices/sim/device.h"
#include "models/session.h"
#include "run/opened_devices.h"
#include "trace/recorder.h"

namespace shunt::models {
namespace {

class MeasuringWatched : public test::OwnCache {
 protected:
  static constexpr std::size_t kEndsAfter = 4;
  // Enough that measuring the devices first pays.
  static constexpr ExpectedTokens kMuchWork{.prompt_tokens = 100'000, .generated_tokens = 10'000'000};

  void prepare() {
    auto recorder = std::make_unique<trace::Recorder>();
    const auto clock = std::make_shared<sim::VirtualClock>();
    BackendReport report{.api = "sim"};
    for (const char* id : {"gpu:0", "gpu:1"})
      report.devices.push_back(sim::make_sim_device({.id = id, .uncertainty = 0.9}, clock, recorder.get()));
    Registry registry;
    registry.backends.push_back(std::move(report));
    const auto runtime = runtime_over(
        std::move(registry), std::move(recorder),
        {.watch = {.on_progress = [this](const Progress& each) { note(each); }, .interrupted = &interrupted_}});
    const auto model = Model::load(SHUNT_TEST_DATA "/../../models/tiny-llama-q8_0.gguf");
    ASSERT_TRUE(model.has_value()) << model.error().message;
    const auto session = Session::create(**model, *runtime, {.context = 64});
    ASSERT_TRUE(session.has_value()) << session.error().message;
    (*session)->prepare_for(kMuchWork, nullptr);
  }
  void note(const Progress& progress) {
    EXPECT_EQ(progress.kind, ProgressKind::measuring);
    EXPECT_LE(progress.done, progress.total);
    fractions_.push_back(progress.fraction());
    if (fractions_.size() == kEndsAfter) interrupted_ = true;
  }
  [[nodiscard]] bool has_profile() const {
    return std::filesystem::exists(folder_) && !std::filesystem::is_empty(folder_);
  }

  std::atomic<bool> interrupted_{false};
  std::vector<double> fractions_;
};

TEST_F(MeasuringWatched, IsCountedAndKeepsNothingWhereItIsInterrupted) {
  prepare();
  EXPECT_EQ(fractions_.size(), kEndsAfter);
  EXPECT_TRUE(std::ranges::is_sorted(fractions_));
  EXPECT_FALSE(has_profile());
}

}  // namespace
}  // namespace shunt::models
