// The devices of a runtime that a session or a computation runs on: all except those that failed.
//
// A GPU that several APIs offer (OpenedDevices::spares()) is used through one of them: the chosen one, or another one
// if that failed. A device that failed is quarantined for a number of steps, which doubles with each failure, and
// reopened if it was lost. A device that ran out of memory first gets a smaller budget a few times. Budgets that the
// user did not set follow free memory (memory_budget.h), except in strict runtimes. The runtime must outlive it. One
// thread at a time.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "plan/costs/cost.h"
#include "plan/plan.h"
#include "run/opened_devices.h"
#include "run/pool/backoff.h"
#include "run/pool/memory_budget.h"
#include "run/pool/running_median.h"
#include "run/verify/audit.h"
#include "shunt/runtime.h"

namespace shunt {

// The devices that plans are made for. The spans are in the same order.
struct DeviceSet {
  // All devices of a runtime except the spare ones.
  DeviceSet(const Runtime& runtime)  // NOLINT(google-explicit-constructor): it is what a runtime has
      : devices(opened(runtime).handles().first(opened(runtime).handles().size() - opened(runtime).spares())),
        costs(opened(runtime).costs().first(devices.size())),
        budgets(runtime.budgets().first(devices.size())),
        strict(runtime.options().strict) {}
  DeviceSet() = default;

  std::span<Device* const> devices;
  std::span<const DeviceCost> costs;
  std::span<const std::uint64_t> budgets;
  std::span<const Quarantined> quarantined;  // excluded for now; the other spans have only devices in use
  bool strict = false;                       // an op that a preferred device cannot run is an error
};

// A copy of a set, for use after the pool has changed. A plain value.
class DeviceSnapshot {
 public:
  explicit DeviceSnapshot(const DeviceSet& set)
      : devices_(set.devices.begin(), set.devices.end()),
        costs_(set.costs.begin(), set.costs.end()),
        budgets_(set.budgets.begin(), set.budgets.end()),
        quarantined_(set.quarantined.begin(), set.quarantined.end()),
        strict_(set.strict) {}

  // Valid as long as the snapshot exists and is not moved.
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

// GPUs that the same APIs offer.
struct SharedGpus {
  std::vector<std::string> gpus;  // their compute resources
  std::vector<std::string> apis;  // those that work; the one in use is the first
};

class DevicePool {
 public:
  explicit DevicePool(const Runtime& runtime);

  // Valid until a non-const call below.
  [[nodiscard]] DeviceSet devices() const;

  // Returns the GPUs of which an API may be chosen.
  [[nodiscard]] std::vector<SharedGpus> shared_gpus() const;
  // Uses the GPUs through the API from now on, as long as it works.
  void use_api(const SharedGpus& gpus, std::string_view api);
  struct Offered {
    std::string ids;
    bool are_measured = true;
  };
  // Describes the devices through which an API offers the GPUs.
  [[nodiscard]] Offered offered(const SharedGpus& gpus, std::string_view api) const;
  // The APIs that were not chosen, for plans to report.
  [[nodiscard]] const std::vector<OtherApi>& other_apis() const { return other_apis_; }
  void set_other_apis(std::vector<OtherApi> others) { other_apis_ = std::move(others); }

  // The bytes of a device's memory that the owner of the pool holds and could give up for another plan; and scratch
  // memory that programs share, also those of others.
  struct Held {
    std::uint64_t bytes = 0;
    std::uint64_t shared_scratch_bytes = 0;
  };
  using HeldOn = std::function<Held(const Device& device)>;
  // Has budgets count what is held. By default nothing is.
  void count_held(HeldOn held_on) { held_on_ = std::move(held_on); }
  // Adapts budgets to the memory that is free now. Looks as often as that takes next to no time by the clock of the
  // first device, so those of simulated clocks at each call. Returns whether memory of a device is so short that
  // another plan should hold less of it; the budget is what that plan may have.
  [[nodiscard]] bool follow_free_memory();
  // Returns whether a device has notably more memory than plans were made with.
  [[nodiscard]] bool has_more_memory() const;
  // Notes that plans are made with the budgets now.
  void note_budgets();
  // Describes what others did since with the memory of devices in use: "others took 1.5 GiB of cuda:0", or gave back.
  [[nodiscard]] std::string memory_news() const;

  // Notes a plan that is about to be prepared. Errors: out_of_memory if others have taken the memory that it needs, for
  // recover().
  [[nodiscard]] Status note(const Plan& plan);
  // Handles an error. Returns ok to try again with a changed set of devices. Returns the error if it is not a device's,
  // if no other device is left, or if nothing may run elsewhere.
  [[nodiscard]] Status recover(Error error);
  // The audits that executables for these devices note. A device that an audit shows to be wrong is not used again.
  [[nodiscard]] Audits& audits() { return audits_; }
  // Judges a result. If it is not finite, either a device computes wrongly or the graph makes such numbers itself. As
  // nobody knows which device it was, each of the plan's is left out in turn until `what` is finite. If it never is,
  // the graph counts as the cause from then on. Returns the error of a device, for recover().
  [[nodiscard]] Status judge(std::string_view what, bool is_finite, const Plan& plan);
  // The same for results that must be finite: returns the error of the next device to leave out, or nothing once each
  // had its turn.
  [[nodiscard]] std::optional<Error> suspect(std::string_view what, const Plan& plan);
  // None of the devices was to blame: takes back those left out.
  void acquit();
  // Counts a step that succeeded. True: the set has changed, because a device may be tried again.
  [[nodiscard]] bool count_step();

  // Notes the times of a plan's steps after a run; empty if they are not known.
  void observe(const Plan& plan, std::span<const double> actual_us);
  // Returns whether a device is so much slower or faster than predicted that other plans may be better.
  [[nodiscard]] bool is_off() const;
  // Corrects the costs of devices by what they take. Plans already made keep theirs.
  void correct();
  // Returns measured devices whose parts of runs take so much more or less time than predicted that their records must
  // be wrong. They are listed by id, each once. Their costs are doubted from now on.
  [[nodiscard]] std::vector<std::string> doubt_contradicted();
  // Sets the costs of devices(), in order, as measured meanwhile.
  void set_costs(std::span<const DeviceCost> costs);

  // Notifies the user.
  void tell(const std::string& text) const;
  // The time that a program may take.
  [[nodiscard]] std::chrono::nanoseconds timeout(double predicted_us) const;

 private:
  struct Member {
    std::size_t index;  // among the runtime's devices
    Device* device;
    DeviceCost cost;
    MemoryBudget budget;
    std::string gpu;            // the compute resource that it shares with devices of other APIs; empty: none
    std::uint64_t planned = 0;  // most bytes of its memory that a plan used
    int shortages = 0;          // out-of-memory failures since it was last opened, while memory was said to be free
    bool has_less = false;      // it ran out of memory since then
    bool is_quarantined = false;
    bool rules_out_gpu = false;  // while quarantined: nor may another API use its GPU
    Backoff backoff = {};
    RunningMedian ratio = {};  // actual over predicted time of its part of a run, before correction
    double factor = 1;         // the correction of its costs
  };

  // Takes a device back at once, because it was not to blame.
  void pardon(std::string_view device);
  // Returns why it gets less to do, or nothing if it had less often enough, or its memory is unknown.
  [[nodiscard]] std::optional<std::string> shrink(Member& member, const Error& why);
  [[nodiscard]] Held held_on(const Device& device) const { return held_on_ ? held_on_(device) : Held(); }
  // Returns whether the budget has adapted to what is free now.
  bool look(Member& member) const;
  void quarantine(Member& member, const Error& why);
  [[nodiscard]] bool take_back(Member& member);
  [[nodiscard]] bool is_in_use(const Member& member) const;
  [[nodiscard]] std::string_view api_for(std::string_view gpu) const;
  [[nodiscard]] std::uint64_t budget_of(const Member& member) const;
  void update();
  void update_budgets();

  const Runtime& runtime_;
  std::vector<Member> members_;  // one per device of the runtime, with spares next to the devices that they may replace
  std::map<std::string, std::string, std::less<>> chosen_apis_;  // by GPU
  std::vector<OtherApi> other_apis_;
  HeldOn held_on_;                  // empty: nothing is
  std::uint64_t next_look_ns_ = 0;  // at free memory
  std::uint64_t steps_ = 0;
  Audits audits_;
  std::vector<std::string> suspects_;  // devices left out because of numbers that are not finite
  bool finite_is_due_ = true;
  // The devices in use.
  std::vector<Device*> devices_;
  std::vector<DeviceCost> costs_;
  std::vector<std::uint64_t> budgets_;
  std::vector<Quarantined> quarantined_;
};

}  // namespace shunt
