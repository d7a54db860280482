// The file of measurements when several processes measure at once.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "plan/costs/profile.h"
#include "shunt/devices.h"

namespace shunt {
namespace {

namespace fs = std::filesystem;

constexpr const char* kAdd = "add F32 F32 -> F32";

DeviceProfile device(const std::string& id) {
  DeviceInfo info;
  info.id = id;
  info.name = "A device";
  info.driver = "1";
  return unmeasured(info);  // for this build's kernels
}

DeviceProfile with_points(std::initializer_list<double> flops, double us = 1) {
  DeviceProfile profile = device("sim:0");
  for (const double count : flops) profile.ops[kAdd].push_back({.cost = {count, 8, 4}, .us = us});
  return profile;
}

class ProfileAtOnce : public testing::Test {
 public:
  ProfileAtOnce() {
    std::string folder = (fs::temp_directory_path() / "shunt_profile_XXXXXX").string();
    EXPECT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    path_ = folder_ / "calibration.json";
  }
  ~ProfileAtOnce() override { fs::remove_all(folder_); }

 protected:
  void add(const DeviceProfile& found, const DeviceProfile* before = nullptr) const {
    const Status added = add_to_profile(path_, found, before);
    ASSERT_TRUE(added.has_value()) << added.error().message;
  }
  [[nodiscard]] Profile kept() const {
    std::string warning;
    auto profile = load_profile(path_, warning);
    EXPECT_TRUE(profile.has_value());
    return profile.value_or(Profile{});
  }
  // Returns the flops of the stored points, with their times.
  [[nodiscard]] std::map<double, double> points() const {
    std::map<double, double> points;
    const Profile profile = kept();
    for (const MeasuredOp& point : profile.devices.at(0).ops.at(kAdd)) points[point.cost.flops] = point.us;
    return points;
  }

  fs::path folder_;
  fs::path path_;
};

TEST_F(ProfileAtOnce, KeepsDevicesThatOthersMeasuredMeanwhile) {
  add(device("sim:0"));
  add(device("sim:1"));
  EXPECT_EQ(kept().devices.size(), 2U);
}

TEST_F(ProfileAtOnce, LosesNothingThatManyAddAtOnce) {
  constexpr std::size_t kWriters = 4;
  constexpr std::size_t kDevices = 8;  // per process
  std::vector<std::jthread> writers;
  for (std::size_t writer = 0; writer < kWriters; ++writer)
    writers.emplace_back([this, writer] {
      for (std::size_t number = 0; number < kDevices; ++number)
        add(device("sim:" + std::to_string(writer * kDevices + number)));
    });
  writers.clear();
  EXPECT_EQ(kept().devices.size(), kWriters * kDevices);
}

TEST_F(ProfileAtOnce, KeepsShapesThatOthersMeasuredMeanwhile) {
  const DeviceProfile before = with_points({1});
  add(before);
  add(with_points({1, 2}), &before);  // two processes start from the same profile
  add(with_points({1, 3}, 5), &before);
  EXPECT_EQ(points(), (std::map<double, double>{{1, 5}, {2, 1}, {3, 5}}));
}

TEST_F(ProfileAtOnce, ForgetsWhatTheMeasuringHasDropped) {
  const DeviceProfile before = with_points({1, 2});
  add(before);
  add(with_points({2}), &before);
  EXPECT_EQ(points(), (std::map<double, double>{{2, 1}}));
}

TEST_F(ProfileAtOnce, BriefMeasurementsGiveWayToFullOnes) {
  DeviceProfile brief = with_points({1});
  brief.is_brief = true;
  add(brief);
  add(with_points({2}));
  EXPECT_EQ(points(), (std::map<double, double>{{2, 1}}));
  add(brief);
  EXPECT_EQ(points(), (std::map<double, double>{{2, 1}}));
}

TEST_F(ProfileAtOnce, OfAnotherDriverNothingStays) {
  add(with_points({1}));
  DeviceProfile found = with_points({2});
  found.driver = "2";
  add(found);
  EXPECT_EQ(points(), (std::map<double, double>{{2, 1}}));
}

}  // namespace
}  // namespace shunt
