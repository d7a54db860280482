// Runs the graphs of one client on whatever devices of a runtime are left: what sessions and computations have in
// common.
//
// A runner owns the devices in use, state, arenas, and the executables of each bucket; it shares the copies of weights
// with all that run on its runtime. When a device fails, it is quarantined, the client rebuilds what it held, and the
// work is done again. When devices turn out slower or faster than predicted, or one may be used again, the next work
// begins on another plan. The runtime and the client must outlive it. One thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/executable.h"
#include "run/plan_graph.h"
#include "run/plan_review.h"
#include "run/pool/device_pool.h"
#include "shunt/runtime.h"

namespace shunt {

// The sizes of a step. Executables are made for powers of two of them.
struct Bucket {
  std::uint32_t tokens = 1;
  std::uint32_t outputs = 1;  // rows of results that are wanted
  auto operator<=>(const Bucket&) const = default;
};
// The bucket that most runs are of: a token of a session, the only one of a computation.
inline constexpr Bucket kRepeated{};

// Plans the buckets of a client for one set of devices, so that they share weights and state.
class BucketPlanner {
 public:
  BucketPlanner() = default;
  BucketPlanner(const BucketPlanner&) = delete;
  BucketPlanner& operator=(const BucketPlanner&) = delete;
  virtual ~BucketPlanner() = default;
  // Errors: those of make_plan().
  [[nodiscard]] virtual Result<PlannedGraph> plan(Bucket bucket) = 0;
  // Explains a plan that it made, as shunt::explain().
  virtual void explain(PlannedGraph& planned) = 0;
  // What plan(kRepeated) would be, or nearly, found in less time from what `other`, a planner of the same client, did.
  [[nodiscard]] virtual Result<Plan> estimate(const BucketPlanner& other) = 0;
};

// What a runner asks of whom it runs for.
class RunClient {
 public:
  RunClient() = default;
  RunClient(const RunClient&) = delete;
  RunClient& operator=(const RunClient&) = delete;
  virtual ~RunClient() = default;

  // The graphs of its buckets, planned for these devices, which must outlive the planner.
  [[nodiscard]] virtual std::unique_ptr<BucketPlanner> planner_for(const DeviceSet& set,
                                                                   std::optional<double> margin) const = 0;

  // The runs that are to come, as far as they are known; empty where devices need not be measured for them.
  struct Expected {
    Bucket bucket;
    double times = 0;
  };
  [[nodiscard]] virtual std::vector<Expected> expected() const = 0;
  // The graphs whose ops are to be measured for them, and how often each runs.
  struct Sample {
    Graph graph;
    double times = 0;
  };
  [[nodiscard]] virtual Result<std::vector<Sample>> samples() const = 0;

  // All that devices held of state and inputs is gone.
  virtual void forget() = 0;
  // Rebuilds what is missing of it, by running. Called before all work.
  [[nodiscard]] virtual Status rebuild() = 0;
  // What it takes to rebuild all of it with such plans; nothing where that is not known.
  [[nodiscard]] virtual std::optional<double> rebuild_us(BucketPlanner& planner) const = 0;
};

struct RunnerOptions {
  WeightSource* weights = nullptr;  // null: the graphs have none
  std::optional<double> margin;     // as that of ComputationOptions
  bool profile = false;             // record the time of each op, in a sample of the runs
  bool may_stop = true;             // between the steps of a plan, where the watch says so
  const Watch* watch = nullptr;     // must outlive the runner
  std::string_view run = "a run";   // what notices call a run of kRepeated
};

class Runner {
 public:
  Runner(const Runtime& runtime, RunClient& client, const RunnerOptions& options);

  // Does `work` with whatever devices are left, after what they lack was rebuilt. Called by the client's rebuild(), it
  // only does the work. Errors: those of the work that are no device's, and of a device where no other is left.
  [[nodiscard]] Status attempt(const std::function<Status()>& work);
  [[nodiscard]] bool is_rebuilding() const { return is_rebuilding_; }

  // Planned and prepared if need be; valid until the runner begins anew.
  [[nodiscard]] Result<Executable*> executable_for(Bucket bucket);
  // One run of it, within attempt(). `is_full`: it computes what was predicted, so that devices are judged by it.
  [[nodiscard]] Status run(Executable& executable, const Submission& submission, bool is_full);
  // The number of the next run, with the time that its programs may take.
  [[nodiscard]] Submission next_submission(const Executable& executable, const Parameters& parameters);

  // After work that went well: whether devices should be measured, or another plan would be better. Then the next work
  // begins anew. `may_replan`: the client can rebuild its state, and the run was one of kRepeated.
  void finish(bool may_replan);
  // Measures devices that nobody has where knowing them can pay for what is expected. True: they are known better, and
  // the next plans will be other ones. The user hears of it before. `interrupted` may be null.
  [[nodiscard]] bool measure(const std::atomic<bool>* interrupted);
  // After an error of a device that came to light later: ok where its work may be done again, by attempt(); else the
  // error.
  [[nodiscard]] Status recover(Error error);
  // Gives up all that devices hold and all that was planned.
  void begin_anew() { begin_anew_with(nullptr); }

  // What runs for kRepeated, with its plan explained. REQUIRES: find(kRepeated), which plans by itself.
  [[nodiscard]] PlannedGraph explained();
  // What is prepared for a bucket; null where nothing is.
  [[nodiscard]] Executable* find(Bucket bucket) const;
  [[nodiscard]] DevicePool& device_pool() { return device_pool_; }
  // Runs so far.
  [[nodiscard]] std::uint32_t runs() const { return runs_; }
  // The devices that have run something, in the order in which they first did.
  [[nodiscard]] const std::vector<std::string>& used_devices() const { return used_devices_; }

  // Bytes: weights copied from their source, by whoever shares them, state, and programs with their arenas.
  struct Memory {
    std::uint64_t copied_weights = 0;
    std::uint64_t state = 0;
    std::uint64_t programs = 0;
  };
  [[nodiscard]] Memory memory() const;

 private:
  void change_plans();
  [[nodiscard]] Status rebuild();
  [[nodiscard]] BucketPlanner& planner();
  [[nodiscard]] bool has_measured();
  [[nodiscard]] bool knows_better_plan();
  void begin_anew_with(std::unique_ptr<BucketPlanner> planner);
  void note_devices(const Executable& executable);

  const Runtime& runtime_;
  RunClient& client_;
  const RunnerOptions options_;
  DevicePool device_pool_;
  PlanReview review_;  // of the plan of kRepeated
  const std::shared_ptr<WeightStore> weights_;
  StateStore state_;
  ArenaStore arenas_;
  std::unique_ptr<BucketPlanner> planner_;       // null: not yet made for these devices
  std::unique_ptr<BucketPlanner> next_planner_;  // for what begins anew
  std::map<Bucket, std::unique_ptr<Executable>> executables_;
  const Executable* last_run_ = nullptr;  // whose devices are among the used ones
  std::vector<std::string> used_devices_;
  std::uint32_t runs_ = 0;
  double measure_us_ = 0;     // runs take so much before it is asked again whether to measure
  bool is_outdated_ = false;  // another plan is better, or the devices are others
  bool is_rebuilding_ = false;
};

}  // namespace shunt
