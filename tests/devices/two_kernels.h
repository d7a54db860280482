// A device with two kernels for some ops, "plain" by rule and "quick", each of which takes a time of its own beside
// what the simulated device takes.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/sim/device.h"
#include "devices/wrapped_device.h"

namespace shunt::test {

struct TimesOfKernels {
  double plain_us = 0;
  double quick_us = 0;
  double quick_beside_others_us = 0;  // more, in programs with other ops
  bool quick_is_right = true;         // otherwise it gives zeros
};

class TwoKernels final : public WrappedDevice {
 public:
  // `op` has two kernels for `rows` rows or more.
  TwoKernels(std::unique_ptr<Device> simulated, Op op, std::uint32_t rows, TimesOfKernels times)
      : WrappedDevice(std::move(simulated)), op_(op), rows_(rows), times_(times) {}

  [[nodiscard]] Support supports(std::span<const OpCall> run) const override {
    Support support = inner().supports(run);
    if (support && has_two(run.back())) support.kernel = kernel_of(run.back());
    return support;
  }
  [[nodiscard]] std::vector<KernelCandidate> kernels_for(const OpCall& call, Layout) const override {
    return has_two(call) ? std::vector<KernelCandidate>{{.name = "plain"}, {.name = "quick"}}
                         : std::vector<KernelCandidate>();
  }
  void choose_kernels(KernelChoices choices) override { choices_ = std::move(choices); }

  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    SHUNT_TRY_ASSIGN(auto program, inner().prepare(request));
    Prepared& prepared = prepared_[program.get()] = {};
    const bool has_others = std::ranges::any_of(request.ops, [&](const ProgramOp& op) { return op.call.op != op_; });
    for (const ProgramOp& op : request.ops) {
      if (!has_two(op.call)) continue;
      const std::string_view kernel = op.kernel.empty() ? kernel_of(op.call).name : op.kernel;
      const bool is_quick = kernel == "quick";
      prepared.us += is_quick ? times_.quick_us + (has_others ? times_.quick_beside_others_us : 0) : times_.plain_us;
      if (is_quick && !times_.quick_is_right) prepared.wrong.push_back(op.output);
    }
    return program;
  }
  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    Status done = inner().submit(program, submission).wait();
    const Prepared& prepared = prepared_[&program];
    extra_us_ += prepared.us;
    for (const Binding& output : prepared.wrong)
      if (done) done = inner().write(output, std::vector<std::byte>(output.bytes)).wait();
    return Event(std::move(done));
  }
  [[nodiscard]] std::uint64_t now_ns() const override {
    return inner().now_ns() + static_cast<std::uint64_t>(extra_us_ * 1e3);
  }

  [[nodiscard]] const KernelChoices& choices() const { return choices_; }

 private:
  struct Prepared {
    double us = 0;
    std::vector<Binding> wrong;
  };
  [[nodiscard]] bool has_two(const OpCall& call) const { return call.op == op_ && call.output->shape[0] >= rows_; }
  [[nodiscard]] ChosenKernel kernel_of(const OpCall& call) const {
    const std::vector<KernelCandidate> kernels = kernels_for(call, Layout::rows);
    const auto chosen = measured_choice(choices_, call, kernels);
    return {.name = kernels[chosen.value_or(0)].name, .is_measured = chosen.has_value()};
  }

  Op op_;
  std::uint32_t rows_;
  TimesOfKernels times_;
  KernelChoices choices_;
  std::map<Program*, Prepared> prepared_;
  double extra_us_ = 0;
};

}  // namespace shunt::test
