// Which devices of a runtime a session or a computation runs on: all of them, but for those that failed.
//
// A device that failed is left alone for a number of steps, which doubles with each failure, and opened anew if it was
// lost. One that ran out of memory gets less to do a few times before that. The runtime must outlive it. One thread at
// a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "plan/costs/cost.h"
#include "plan/plan.h"
#include "run/pool/backoff.h"
#include "run/pool/running_median.h"
#include "run/verify/audit.h"
#include "shunt/runtime.h"

namespace shunt {

// What plans are made for; the three in one order.
struct DeviceSet {
  // All of a runtime.
  DeviceSet(const Runtime& runtime)  // NOLINT(google-explicit-constructor): it is what a runtime has
      : devices(runtime.handles()),
        costs(runtime.costs()),
        budgets(runtime.budgets()),
        strict(runtime.options().strict) {}
  DeviceSet() = default;

  std::span<Device* const> devices;
  std::span<const DeviceCost> costs;
  std::span<const std::uint64_t> budgets;
  std::span<const Quarantined> quarantined;  // for now; the others are all that is there
  bool strict = false;                       // what a preferred device cannot run is an error
};

// A copy of a set, for whoever needs it after the pool has changed. A plain value.
class DeviceSnapshot {
 public:
  explicit DeviceSnapshot(const DeviceSet& set)
      : devices_(set.devices.begin(), set.devices.end()),
        costs_(set.costs.begin(), set.costs.end()),
        budgets_(set.budgets.begin(), set.budgets.end()),
        quarantined_(set.quarantined.begin(), set.quarantined.end()),
        strict_(set.strict) {}

  // Valid as long as the snapshot stays where it is.
  [[nodiscard]] DeviceSet set() const {
    DeviceSet set;
    set.devices = devices_;
    set.costs = costs_;
    set.budgets = budgets_;
    set.quarantined = quarantined_;
    set.strict = strict_;
    return set;
  }

 private:
  std::vector<Device*> devices_;
  std::vector<DeviceCost> costs_;
  std::vector<std::uint64_t> budgets_;
  std::vector<Quarantined> quarantined_;
  bool strict_;
};

class DevicePool {
 public:
  explicit DevicePool(const Runtime& runtime);

  // Valid until a call below changes it.
  [[nodiscard]] DeviceSet devices() const;

  // A plan that is to run.
  void note(const Plan& plan);
  // After an error: ok to try again, for which the set has changed. Else the error, where it is none of a device, where
  // no other is left, and where nothing is to run elsewhere.
  [[nodiscard]] Status recover(Error error);
  // What executables for these devices note. A device that one shows to be wrong is not tried again.
  [[nodiscard]] Audits& audits() { return audits_; }
  // A device that computes wrongly may make numbers that are not finite, and so may a graph. As nobody knows which
  // device it was, each of the plan is left out in turn until `what` is finite; if it never is, the graph wants it so,
  // from then on. The error of a device, for recover().
  [[nodiscard]] Status judge(std::string_view what, bool is_finite, const Plan& plan);
  // The same where they must be finite: the error of the next device to leave out, or nothing once each had its turn.
  [[nodiscard]] std::optional<Error> suspect(std::string_view what, const Plan& plan);
  // None of them was to blame: nothing is left out for it any more.
  void acquit();
  // After a step that went well. True: the set has changed, as a device may be tried again.
  [[nodiscard]] bool count_step();

  // What the steps of a plan took that has run; empty where that is not known.
  void observe(const Plan& plan, std::span<const double> actual_us);
  // A device has become so much slower or faster than predicted that other plans may be better.
  [[nodiscard]] bool is_off() const;
  // From now on its costs are what it takes. Plans that were made keep theirs.
  void correct();
  // Measured devices whose parts of runs take so many times more, or less, than predicted that their records must be
  // wrong: by id, each once. From now on their costs are doubted.
  [[nodiscard]] std::vector<std::string> doubt_contradicted();
  // What the devices of devices() take, in their order, as somebody has measured it meanwhile.
  void set_costs(std::span<const DeviceCost> costs);

  // Tells the user.
  void tell(const std::string& text) const;
  // What a program may take.
  [[nodiscard]] std::chrono::nanoseconds timeout(double predicted_us) const;

 private:
  struct Member {
    Device* device;
    DeviceCost cost;
    std::uint64_t budget;
    std::uint64_t planned = 0;  // the most bytes that a plan took of its memory
    int shortages = 0;          // out of memory, one after the other
    bool is_quarantined = false;
    Backoff backoff = {};
    RunningMedian ratio = {};  // what its part of a run took, by what was predicted without a correction
    double factor = 1;         // the correction of its costs
  };

  // Takes a device back at once: it was none of its fault.
  void pardon(std::string_view device);
  [[nodiscard]] bool shrink(Member& member);
  [[nodiscard]] bool take_back(std::size_t index);
  void update();

  const Runtime& runtime_;
  std::vector<Member> members_;  // one per device of the runtime
  std::uint64_t steps_ = 0;
  Audits audits_;
  std::vector<std::string> suspects_;  // devices that were left out because of numbers that are not finite
  bool finite_is_due_ = true;
  // Of those that are not left out.
  std::vector<Device*> devices_;
  std::vector<DeviceCost> costs_;
  std::vector<std::uint64_t> budgets_;
  std::vector<Quarantined> quarantined_;
};

}  // namespace shunt
