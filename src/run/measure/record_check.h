// Compares the records of a device with what is measured now, confirms those that stand out and replaces wrong ones.
//
// A record is wrong if it is off by more than a factor of two. Callers measure twice before they say so. Plain values;
// one thread at a time.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ops/bench_case.h"
#include "plan/costs/outliers.h"
#include "plan/costs/profile.h"

namespace shunt {

class RecordCheck {
 public:
  // `before` has the records to check.
  RecordCheck(DeviceProfile before, const DeviceInfo& device);

  // Returns whether some record of the kind stands out and was measured only once.
  [[nodiscard]] bool has_outliers(std::string_view kind) const;
  // Returns whether the profile predicts what was measured. REQUIRES: it has records of the kind.
  [[nodiscard]] static bool agrees(const DeviceProfile& profile, std::string_view kind, const MeasuredOp& now);
  // The profile agrees. Confirms the record of that shape; if there is none and another record of the kind is an
  // outlier, adds what was measured.
  void confirm_op(DeviceProfile& profile, const std::string& kind, const MeasuredOp& now);
  // The profile does not agree. Drops the outliers of the kind, or all of its records if the others do not agree
  // either, and adds what was measured.
  void replace_op(DeviceProfile& profile, const std::string& kind, const MeasuredOp& now);
  // Restores the start-up times from before unless some measured now differ greatly, since these were measured in a
  // hurry. `are_measured`: they were.
  void compare_starts(DeviceProfile& profile, bool are_measured) const;
  // The same for each link.
  void compare_links(DeviceProfile& profile) const;

 private:
  void confirm_all(DeviceProfile& profile, std::string_view what) const;

  DeviceProfile before_;
  std::vector<Outlier> outliers_;
  std::set<std::string, std::less<>> replaced_;  // kinds of which wrong records were dropped
};

// Says by how much the records `before` were wrong where `now` has others, such as "copying to the device was recorded
// 1000 times too slow"; empty: none were.
[[nodiscard]] std::string wrong_records(const DeviceProfile& before, const DeviceProfile& now);

}  // namespace shunt
