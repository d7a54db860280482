// A graph and its plan, bound to memory and prepared on the plan's devices, ready to run repeatedly.
//
// Weights, state and arenas come from stores that must outlive it. Executables that share an ArenaStore must not run at
// the same time. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/device.h"
#include "devices/program_trace.h"
#include "plan/plan.h"
#include "run/memory.h"
#include "run/on_device.h"
#include "run/verify/audit.h"
#include "run/weight_store.h"
#include "shunt/watch.h"
#include "trace/recorder.h"

namespace shunt {

// The parts of each state that runs use, as ranges of its first dimension. Nothing else of it need travel.
struct StateInUse {
  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = ~std::uint64_t{0};
  };
  Range read;
  Range written;
};

// Errors of an executable name the device that failed, if one did.
struct ExecutableContext {
  std::span<Device* const> devices;  // the plan's devices, in its order
  WeightStore* weights = nullptr;
  StateStore* state = nullptr;
  ArenaStore* arenas = nullptr;
  trace::Recorder* recorder = nullptr;  // may be null
  Audits* audits = nullptr;             // null: none
  const Watch* watch = nullptr;         // null: no progress is reported, and nothing interrupts it
  bool may_stop = true;                 // between steps; false: stopping would leave state half changed
};

class Executable {
 public:
  // Errors: invalid, out_of_memory, io, interrupted and those of Device::prepare.
  [[nodiscard]] static Result<std::unique_ptr<Executable>> create(Graph graph, Plan plan,
                                                                  const ExecutableContext& context);

  // Writes the first bytes of an input on every device that reads it, unless they are there. Errors: invalid for
  // another kind of tensor or too many bytes.
  [[nodiscard]] Status write_input(TensorId input, std::span<const std::byte> bytes);
  // Sets which part of travelling state the following runs copy. The default is all of it.
  void set_state_in_use(const StateInUse& state) { state_in_use_ = state; }
  // Runs the plan once and waits. The submission's timeout holds for each of its programs. After an error no output may
  // be read.
  //
  // If op timing is asked for and recorded, ops are timed in the first two runs and in every 32nd. Programs without
  // their own trace are then submitted op by op, and each op is waited for while nothing else runs. An audited run
  // compares one op with the reference before anything that depends on it begins, each time the next op of the plan. A
  // device that computed it wrongly has failed.
  [[nodiscard]] Status run(const Submission& submission);
  // Explains results that are not finite. Names the first op that makes such numbers from finite ones, its device, and
  // those of its weights that have such numbers. Runs the plan again for each of a logarithm of its ops. Errors: of
  // running.
  [[nodiscard]] Result<std::string> find_not_finite(const Submission& submission);
  // The time of each step in the last run, from when its device was free for it, by that device's clock. 0 for copies,
  // and for steps that ended unseen while this thread computed. Empty if the run was audited, or a program was
  // submitted op by op.
  [[nodiscard]] std::span<const double> actual_us() const { return actual_us_; }
  // Copies bytes of output `index` from `offset`. Errors: invalid outside the output.
  [[nodiscard]] Status read_output(std::size_t index, std::uint64_t offset, std::span<std::byte> to) const;

  [[nodiscard]] const Graph& graph() const { return graph_; }
  [[nodiscard]] const Plan& plan() const { return plan_; }
  // Lets go of the arenas and of the programs that use them, so that larger arenas may take their memory. REQUIRES: it
  // is not run before bind() has returned ok.
  void unbind();
  [[nodiscard]] bool is_bound() const { return is_bound_; }
  // Takes arenas again, and prepares its programs for them. Errors: as create().
  [[nodiscard]] Status bind();
  // Memory that the prepared programs hold besides weights, state and arenas.
  [[nodiscard]] std::uint64_t scratch_bytes() const;

 private:
  friend class Execution;
  Executable(Graph graph, Plan plan, const ExecutableContext& context);

  [[nodiscard]] Status bind_storage();
  [[nodiscard]] Status bind_residences();
  // Returns the arena of a device, which is as large as the plan needs.
  [[nodiscard]] Result<Buffer*> arena_on(std::uint32_t device);
  // Finds what programs read of each weight, and its layout: the one in which all uses of it there read it fastest, or
  // rows.
  void choose_layouts();
  // Returns the layouts in which a unit reads its inputs fastest, each with the number of its residence. Inputs that
  // are not weights are left out.
  struct WantedLayout {
    std::size_t residence;
    Layout layout;
  };
  [[nodiscard]] std::vector<WantedLayout> wanted_layouts(std::uint32_t position) const;
  // Returns a weight, copied to its device if needed. `progress` counts the bytes of the plan's weights.
  [[nodiscard]] Result<Binding> bind_weight(std::size_t residence, Progress& progress);
  [[nodiscard]] Status prepare_programs();
  // Forgets what it wrote if others have used the arenas since.
  void claim_arenas();
  // A compute step, or a part of one, prepared on its device.
  struct Prepared {
    std::unique_ptr<Program> program;
    std::optional<ProgramTrace> trace;  // if the program has no trace of its own
    [[nodiscard]] bool is_timed_in_ops(const Submission& submission) const {
      return trace && trace->wants_ops(submission);
    }
  };
  [[nodiscard]] Result<Prepared> prepare(const Step& step, std::string_view name) const;
  // Returns the position of the unit to audit in the run that begins.
  [[nodiscard]] std::optional<std::uint32_t> next_audit() const;
  [[nodiscard]] bool uses_travelling_state(std::uint32_t position) const;
  // Runs the step in three parts, of which the unit is one. REQUIRES: nothing else runs.
  [[nodiscard]] Status run_audited(const Step& step, std::uint32_t position, const Submission& submission);
  // The same, but only checks whether the unit's result is finite.
  [[nodiscard]] Status run_inspected(const Step& step, std::uint32_t position, const Submission& submission);
  // Returns whether the result of a unit is finite, in a separate run.
  [[nodiscard]] Result<bool> is_finite_at(std::uint32_t position, const Submission& submission);
  [[nodiscard]] Result<bool> is_finite_weight(TensorId weight, std::uint32_t device) const;
  // Runs a step's program op by op. REQUIRES: it is timed in ops, and nothing else runs.
  [[nodiscard]] Status run_in_ops(std::uint32_t step, const Submission& submission);
  [[nodiscard]] Status run_part(const Step& step, std::uint32_t begin, std::uint32_t end, const Submission& submission);
  [[nodiscard]] Result<std::vector<std::byte>> read_tensor(TensorId tensor, std::uint32_t device) const;
  void name_events();
  // Finds the steps in which a device that runs in order reads a brief value for the host.
  void find_reads_in_order();
  void record_audit(std::string_view label, std::uint32_t device, std::uint64_t start_ns, const Submission& submission,
                    const Status& right) const;
  // `predicted_us`: 0 if the run was not one as predicted.
  void record_run(std::uint32_t step, std::uint64_t start_ns, double predicted_us, const Status& status) const;
  // Has the device of a transfer access the host's memory of the weight or state by itself from now on, if it can.
  void pin_host_of(std::uint32_t step);
  // Returns the graph's outputs that a step makes.
  [[nodiscard]] std::vector<Binding> results_of(const Step& step) const;
  // Returns the source and the target of a transfer: all of a tensor, or of a state what is in use.
  [[nodiscard]] std::pair<Binding, Binding> ends_of(const Transfer& transfer) const;
  // Returns the bytes of a tensor (also a view) that `device` can address.
  [[nodiscard]] Binding binding_of(TensorId tensor, std::uint32_t device) const;

  Graph graph_;
  Plan plan_;
  ExecutableContext context_;
  std::vector<Device*> devices_;
  std::vector<std::shared_ptr<Buffer>> arenas_;        // one per device, null if empty
  std::vector<Layout> layouts_;                        // one per residence
  std::vector<WeightStore::Reads> reads_;              // one per residence
  std::vector<Binding> storage_;                       // one per residence
  std::vector<std::shared_ptr<Buffer>> weights_;       // those in storage_
  std::vector<Prepared> programs_;                     // one per step, empty for transfers
  std::vector<std::unique_ptr<std::byte[]>> staging_;  // one per step; for copies by way of the host, once needed
  struct PinnedMemory {
    std::shared_ptr<const void> held;  // null: it cannot be pinned
    std::uint64_t tried_bytes = 0;
  };
  std::vector<PinnedMemory> pinned_;           // one per step: of the weight or state that it copies
  std::vector<bool> reads_in_order_;           // one per step
  std::vector<double> actual_us_;              // one per step
  std::vector<trace::Label> transfer_labels_;  // one per step, 0 for compute
  std::uint32_t runs_ = 0;                     // runs begun
  std::optional<bool> inspected_;              // in a run that inspects a unit: whether its result was finite
  trace::Label run_label_ = 0;
  std::uint32_t plan_number_ = 0;  // among the plans attached to the recorder
  StateInUse state_in_use_;
  bool has_lent_weights_ = false;  // the arenas have the copies that stay
  bool is_bound_ = false;          // to arenas, with programs
  // The first bytes of small inputs, as the arenas have them.
  std::map<TensorId, std::vector<std::byte>> written_;
};

}  // namespace shunt
