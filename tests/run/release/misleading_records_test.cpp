// Whatever one number of a profile says, plans return to the sound ones within a bounded time.
//
// There are few chances to recover: a profile is read, a graph runs for some seconds of the simulated clock, and does
// so once more a week later. The profile on disk must then be right again.
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
  std::string placement_after(int runs) {
    const auto runtime = machine(specs(), true);
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
  const std::string sound = placement_after(0);
  ASSERT_EQ(sound, "gpu:0 gpu:0 gpu:0 gpu:0 ");
  std::size_t misled = 0;
  std::size_t misled_for_a_week = 0;
  std::vector<std::string> lost;
  for (const Json::json_pointer& number : numbers_of(sound_))
    for (const double factor : {1000.0, 0.001}) {
      Json profile = sound_;
      Json& value = profile[number];
      if (value.is_number_unsigned())
        value = static_cast<std::uint64_t>(value.get<double>() * factor);
      else
        value = value.get<double>() * factor;
      write(profile);
      misled += placement_after(0) == sound ? 0U : 1U;
      misled_for_a_week += placement_after(kRuns) == sound ? 0U : 1U;
      age();
      // If little is lost, it takes more work before measuring again pays.
      const bool comes_back =
          (placement_after(kRuns) == sound || placement_after(kManyRuns) == sound) && placement_after(0) == sound;
      if (!comes_back) lost.push_back(number.to_string() + (factor > 1 ? " * 1000" : " / 1000"));
    }
  RecordProperty("misled", std::to_string(misled));
  RecordProperty("misled_for_a_week", std::to_string(misled_for_a_week));
  EXPECT_GT(misled, 0U) << "else it shows nothing";
  EXPECT_EQ(lost, std::vector<std::string>());
}

}  // namespace
}  // namespace shunt
