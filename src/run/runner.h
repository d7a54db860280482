// Runs the graphs of one client on the available devices of a runtime: what sessions and computations have in common.
//
// A runner owns its device pool, state, arenas, and the executables of each bucket. It shares copies of weights with
// everything that runs on its runtime. When a device fails, it is quarantined, the client rebuilds what it held, and
// the work is done again. When devices turn out slower or faster than predicted, or have less or more memory, or one
// may be used again, the next work begins on another plan. The runtime and the client must outlive it. One thread at a
// time.
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

#include "run/bucket_planner.h"
#include "run/executable.h"
#include "run/plan_graph.h"
#include "run/plan_review.h"
#include "run/pool/device_pool.h"
#include "shunt/runtime.h"

namespace shunt {

// The interface between a runner and its client.
class RunClient {
 public:
  RunClient() = default;
  RunClient(const RunClient&) = delete;
  RunClient& operator=(const RunClient&) = delete;
  virtual ~RunClient() = default;

  // Returns a planner of its graphs for these devices, which must outlive the planner.
  [[nodiscard]] virtual std::unique_ptr<BucketPlanner> planner_for(const DeviceSet& set,
                                                                   std::optional<double> margin) const = 0;

  // The runs to come, as far as they are known; empty if devices need not be measured for them.
  struct Expected {
    Bucket bucket;
    double times = 0;
  };
  [[nodiscard]] virtual std::vector<Expected> expected() const = 0;
  // Returns the graphs whose ops are to be measured for them, and how often each runs.
  struct Sample {
    Graph graph;
    double times = 0;
  };
  [[nodiscard]] virtual Result<std::vector<Sample>> samples() const = 0;

  // Called when all state and inputs on devices are gone.
  virtual void forget() = 0;
  // Rebuilds what is missing of them, by running. Called before all work.
  [[nodiscard]] virtual Status rebuild() = 0;
  // Predicts the time to rebuild all of it with such plans; nothing if that is unknown or impossible.
  [[nodiscard]] virtual std::optional<double> rebuild_us(BucketPlanner& planner) const = 0;
};

struct RunnerOptions {
  WeightSource* weights = nullptr;  // null: the graphs have none
  std::optional<double> margin;     // as that of ComputationOptions
  bool profile = false;             // record the time of each op, in a sample of the runs
  bool may_stop = true;             // stop between the steps of a plan when the watch says so
  const Watch* watch = nullptr;     // must outlive the runner
  std::string_view run = "a run";   // how notices call a run of kRepeated
};

class Runner {
 public:
  Runner(const Runtime& runtime, RunClient& client, const RunnerOptions& options);

  // Does `work` with the available devices, after rebuilding what they lack. Called from the client's rebuild(), it
  // only does the work. Errors: those of the work that are not a device's, and a device's if no other is left.
  [[nodiscard]] Status attempt(const std::function<Status()>& work);
  [[nodiscard]] bool is_rebuilding() const { return is_rebuilding_; }

  // Returns the executable for a step of these sizes, planned and prepared if needed. It may be run until the next
  // call; its plan is valid until the runner starts over. Errors: out_of_memory for attempt(), before anything is
  // allocated, if others have taken the memory that it needs.
  [[nodiscard]] Result<Executable*> executable_for(Bucket sizes);
  // Runs it once, within attempt(). `is_full`: it computes what was predicted, so that devices are judged by it.
  [[nodiscard]] Status run(Executable& executable, const Submission& submission, bool is_full);
  // Returns the submission of the next run: its number, and the time that its programs may take.
  [[nodiscard]] Submission next_submission(const Executable& executable, const Parameters& parameters);

  // Called after work that succeeded. If devices should be measured, or another plan would be better, the next work
  // starts over. `may_replan`: the client can rebuild its state, and the run was one of kRepeated.
  void finish(bool may_replan);
  // Measures unmeasured devices if knowing them can pay for the expected runs, and notifies the user before. True:
  // costs have changed, and so will the next plans. `interrupted` may be null.
  [[nodiscard]] bool measure(const std::atomic<bool>* interrupted);
  // Handles a device's error that came to light later. Returns ok if its work may be done again by attempt(); else the
  // error.
  [[nodiscard]] Status recover(Error error);
  // Drops everything that devices hold and everything that was planned.
  void start_over() { start_over_with(nullptr); }

  // Returns what runs for kRepeated, with its plan explained. REQUIRES: find(kRepeated) is not null. That bucket is
  // planned by itself.
  [[nodiscard]] PlannedGraph explained();
  // Starts over if other plans are better or devices should be measured, unless it is rebuilding. To be called before
  // asking the planner about work.
  void change_plans();
  // Returns the client's planner for the current devices, valid until the runner starts over. Making it chooses the
  // APIs of GPUs (choose_apis()).
  [[nodiscard]] BucketPlanner& planner();
  // Returns the executable prepared for a bucket, or null.
  [[nodiscard]] Executable* find(Bucket bucket) const;
  [[nodiscard]] DevicePool& device_pool() { return device_pool_; }
  // Runs so far.
  [[nodiscard]] std::uint32_t runs() const { return runs_; }
  // The devices that have run something, in the order of their first use.
  [[nodiscard]] const std::vector<std::string>& used_devices() const { return used_devices_; }

  // Bytes: copies of weights (shared ones too), state, and programs with their arenas.
  struct Memory {
    std::uint64_t copied_weights = 0;
    std::uint64_t state = 0;
    std::uint64_t programs = 0;
  };
  [[nodiscard]] Memory memory() const;
  // The weights that were copied to devices so far, by all that share them, and the time that took.
  [[nodiscard]] const WeightLoader::Loaded& loaded_weights() const { return weights_->loaded(); }

 private:
  [[nodiscard]] Status rebuild();
  [[nodiscard]] bool has_measured();
  [[nodiscard]] bool knows_better_plan();
  [[nodiscard]] bool makes_room();
  [[nodiscard]] bool uses_more_memory();
  // Returns what plans of the runner use of a device's memory, with copies of weights that others share.
  [[nodiscard]] DevicePool::Held held_on(const Device& device) const;
  // Lets go of arenas that are too small for a plan, so that larger ones do not lie beside them.
  void release_small_arenas(const Plan& plan);
  void start_over_with(std::unique_ptr<BucketPlanner> planner);
  void note_devices(const Executable& executable);

  const Runtime& runtime_;
  RunClient& client_;
  const RunnerOptions options_;
  DevicePool device_pool_;
  PlanReview review_;         // of the plan of kRepeated
  PlanReview memory_review_;  // the same, since the runner started over
  const std::shared_ptr<WeightStore> weights_;
  StateStore state_;
  ArenaStore arenas_;
  std::unique_ptr<BucketPlanner> planner_;       // null: not made yet for these devices
  std::unique_ptr<BucketPlanner> next_planner_;  // for the next start
  std::map<Bucket, std::unique_ptr<Executable>> executables_;
  const Executable* last_run_ = nullptr;  // its devices are in used_devices_
  std::vector<std::string> used_devices_;
  std::uint32_t runs_ = 0;
  std::uint32_t next_room_ = 0;  // runs before memory may be made room in again
  double measure_us_ = 0;        // runs must take so long before measuring is considered again
  bool is_outdated_ = false;     // another plan is better, or the devices have changed
  bool is_rebuilding_ = false;
  std::uint32_t room_wait_ = 1;  // runs until another plan is looked for again that leaves more room
  double patience_ = 1;          // how many times a move to more memory must pay
  double pays_after_ = 0;        // runs of the plan after which the last such move has paid
};

}  // namespace shunt
