// Whatever one number of a profile says, plans return to the sound ones within a bounded time.
//
// There are few chances to recover: a profile is read, and a graph runs for some seconds of the simulated clock. The
// profile on disk must then be right again; one that is only moderately wrong is a week later.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "base/json.h"
#include "plan/costs/profile.h"
#include "run/measure/calibration.h"
#include "run/wrong_beliefs.h"
#include "shunt/computation.h"

namespace shunt {
namespace {

constexpr std::uint32_t kRows = 128;
constexpr double kWeek = 7 * 86400;
constexpr int kRuns = 60;
constexpr int kManyRuns = 2000;
constexpr double kNever = 1e15;
constexpr const char* kSound = "gpu:0 gpu:0 gpu:0 gpu:0 ";

class MisleadingRecords : public test::WrongBeliefs {
 protected:
  void SetUp() override {
    for (const char* name : {"w0", "w1"})
      ASSERT_TRUE(weights_.add(name, DType::F32, {kRows, kRows}, zeros_).has_value());
    // The workload, and more shapes of its kinds.
    const Graph graphs[] = {graph(kRows, 1), graph(64, 1), graph(64, 4), graph(32, 16)};
    std::vector<Workload> work;
    for (const Graph& each : graphs) work.push_back({.graph = &each, .times = 1});
    Profile profile;
    for (const std::unique_ptr<Device>& device :
         sim::make_sim_devices(specs(), std::make_shared<sim::VirtualClock>())) {
      auto measured = calibrate_briefly(*device, work, 1e4, {});
      ASSERT_TRUE(measured.has_value()) << measured.error().message;
      profile.set(std::move(*measured));
    }
    path_ = *profile_path();
    std::filesystem::create_directories(path_.parent_path());
    sound_ = Json::parse(to_json(profile));
  }

  // A GPU, and a processor ten times as slow. The priors of both are highly uncertain.
  static std::vector<sim::Spec> specs() {
    return {{.id = "gpu:0",
             .rate = {.flops_per_s = 1e9, .bytes_per_s = 3e6},
             .uncertainty = 0.9,
             .link = {.latency_us = 20, .bytes_per_s = 1e9},
             .watchdog_us = kNever},
            {.id = "cpu:0",
             .type = DeviceType::cpu,
             .launch_us = 2,
             .op_us = 5,
             .rate = {.flops_per_s = 1e8, .bytes_per_s = 3e5},
             .uncertainty = 0.9,
             .memory_pool = "host",
             .watchdog_us = kNever}};
  }

  static Graph graph(std::uint32_t width, std::uint32_t rows) {
    GraphBuilder builder;
    const Tensor x = builder.input("x", DType::F32, {rows, width});
    const auto weight = [&](const char* name) { return builder.weight(name, DType::F32, {width, width}); };
    const Tensor y = builder.silu(builder.linear(x, weight("w0")));
    builder.output(builder.linear(builder.add(x, y), weight("w1")));
    return *std::move(builder).finish();
  }

  void write(const Json& profile) const { std::ofstream(path_) << profile.dump(); }

  // Returns the devices of all ops after `runs` runs.
  std::string placement_after(int runs) { return placement_after(runs, specs()); }
  std::string placement_after(int runs, const std::vector<sim::Spec>& specs) {
    const auto runtime = machine(specs, true);
    auto computation = Computation::create(graph(kRows, 1), *runtime, &weights_, {.margin = 0.05});
    EXPECT_TRUE(computation.has_value()) << computation.error().message;
    const std::vector<std::byte> zeros(kRows * sizeof(float));
    for (int run = 0; run < runs; ++run) {
      EXPECT_TRUE((*computation)->write("x", zeros).has_value());
      EXPECT_TRUE((*computation)->run().has_value());
    }
    std::string devices;
    const Json plan = Json::parse((*computation)->explain_json());
    for (const Json& unit : plan["units"]) devices += unit["device"].get<std::string>() + " ";
    return devices;
  }

  [[nodiscard]] bool has_notice(std::string_view text) const {
    return std::ranges::any_of(notices_, [&](const std::string& notice) { return notice.find(text) != notice.npos; });
  }

  static void multiply(Json& number, double factor) {
    if (number.is_number_unsigned())
      number = static_cast<std::uint64_t>(number.get<double>() * factor);
    else
      number = number.get<double>() * factor;
  }

  // Makes the profile a week old.
  void age() const {
    std::ifstream file(path_);
    Json profile = Json::parse(file);
    for (Json& device : profile["devices"]) {
      const double checked_s = device["checked_s"].get<double>();
      device["checked_s"] = std::max(checked_s - kWeek - 1, 0.0);
    }
    write(profile);
  }

  const std::vector<std::byte> zeros_ = std::vector<std::byte>(std::size_t{kRows} * kRows * sizeof(float));
  MemoryWeights weights_;  // reads zeros_
  std::filesystem::path path_;
  Json sound_;
};

// Returns JSON pointers to all numbers of a profile.
std::vector<Json::json_pointer> numbers_of(const Json& profile) {
  std::vector<Json::json_pointer> numbers;
  const Json flat = profile.flatten();
  for (const auto& item : flat.items())
    if (item.value().is_number()) numbers.emplace_back(item.key());
  return numbers;
}

TEST_F(MisleadingRecords, EachNumberAThousandTimesTooLargeOrTooSmallIsPutRight) {
  write(sound_);
  ASSERT_EQ(placement_after(kRuns), kSound);
  ASSERT_EQ(notices_, std::vector<std::string>());
  std::size_t misled = 0;
  std::vector<std::string> lost;
  for (const Json::json_pointer& number : numbers_of(sound_))
    for (const double factor : {1000.0, 0.001}) {
      Json profile = sound_;
      multiply(profile[number], factor);
      write(profile);
      notices_.clear();
      const bool is_misled = placement_after(0) != kSound;
      misled += is_misled ? 1U : 0U;
      // If little is lost, it takes more work before measuring again pays.
      const bool comes_back =
          (placement_after(kRuns) == kSound || placement_after(kManyRuns) == kSound) && placement_after(0) == kSound;
      const std::string name = number.to_string() + (factor > 1 ? " * 1000" : " / 1000");
      if (!comes_back) lost.push_back(name);
      if (is_misled && name.starts_with("/devices/0/ops/")) {
        EXPECT_TRUE(has_notice("wrong records of gpu:0 are replaced: ")) << name;
      }
    }
  RecordProperty("misled", std::to_string(misled));
  EXPECT_GT(misled, 0U) << "else it shows nothing";
  EXPECT_EQ(lost, std::vector<std::string>());
}

// What does not stand out is found by its age.
TEST_F(MisleadingRecords, OpsThatAreModeratelyTooSlowArePutRightAfterAWeek) {
  Json profile = sound_;
  for (auto& kind : profile["devices"][0]["ops"])
    for (Json& point : kind) multiply(point["us"], 12);
  write(profile);
  ASSERT_NE(placement_after(0), kSound);
  EXPECT_NE(placement_after(kRuns), kSound);
  EXPECT_EQ(notices_, std::vector<std::string>());
  age();
  EXPECT_EQ(placement_after(kRuns), kSound);
  EXPECT_TRUE(has_notice("12 times too slow"));
}

// As where a device really is so slow.
TEST_F(MisleadingRecords, OutliersThatAreTrueAreMeasuredOnceMoreAndNoticedOnce) {
  std::vector<sim::Spec> slow = specs();
  slow[0].believed =
      sim::Rate{.flops_per_s = 50 * slow[0].rate.flops_per_s, .bytes_per_s = 50 * slow[0].rate.bytes_per_s};
  write(sound_);
  EXPECT_EQ(placement_after(kManyRuns, slow), kSound);
  ASSERT_EQ(notices_.size(), 1U);
  EXPECT_TRUE(has_notice("measuring gpu:0 before a long run"));
  EXPECT_EQ(placement_after(kManyRuns, slow), kSound);
  EXPECT_EQ(notices_.size(), 1U) << notices_.back();
}

}  // namespace
}  // namespace shunt
