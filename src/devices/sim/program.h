// A prepared run of ops on a simulated device: how long each takes, and the kernels if the device computes.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "devices/kernel_run.h"
#include "devices/program_trace.h"
#include "devices/sim/clock.h"
#include "devices/sim/memory.h"
#include "devices/sim/spec.h"

namespace shunt::sim {

using Time = VirtualClock::Time;
[[nodiscard]] Time from_us(double us);

// The reference kernel, which every op has.
[[nodiscard]] const CpuKernel* scalar_kernel(const OpCall& call);

// Bytes that aligning the scratch memory takes.
inline constexpr std::size_t kScratchMargin = 64;

class SimProgram final : public Program {
 public:
  SimProgram(const ProgramRequest& request, const Spec& spec, trace::Recorder* recorder);

  [[nodiscard]] std::uint64_t scratch_bytes() const override { return scratch_.size(); }
  [[nodiscard]] bool records() const override { return true; }
  // Keeps the device's scratch memory as long as it lives.
  void keep(std::shared_ptr<Scratch> scratch) { kept_ = std::move(scratch); }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] std::size_t size() const { return ops_.size(); }
  [[nodiscard]] const std::string& op_name(std::size_t op) const { return ops_[op].name; }
  // Returns the time from the start of a submission to the start of an op; for size(): to the end.
  [[nodiscard]] Time begin_of(std::size_t op) const { return begins_[op]; }

  // Computes the first `count` ops, with their injected faults applied to the results. Errors: internal.
  [[nodiscard]] Status compute(std::size_t count, const Parameters& parameters, const FaultCount::Ops& faults);
  // Records a submission that began at `start` and ended after `count` ops.
  void record(Time start, Time end, std::size_t count, const Submission& submission, const Status& status) const;

 private:
  struct Op {
    std::string name;
    Binding output;
    DType dtype = DType::F32;  // of the output
    bool is_state = false;
  };

  std::string name_;
  std::vector<Op> ops_;
  std::vector<Time> begins_;
  ProgramTrace trace_;
  std::optional<KernelRun> kernels_;
  std::vector<std::byte> scratch_;
  std::shared_ptr<Scratch> kept_;
};

}  // namespace shunt::sim
