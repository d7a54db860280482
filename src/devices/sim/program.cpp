#include "devices/sim/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace shunt::sim {
namespace {

// Op overhead plus the roofline.
double op_us(const OpCall& call, const Spec& spec) {
  const auto own = spec.rate_of_family.find(info_of(call.op).family);
  const Rate& rate = own == spec.rate_of_family.end() ? spec.rate : own->second;
  const Cost cost = info_of(call.op).rule->cost(call);
  return spec.op_us + std::max(cost.flops / rate.flops_per_s, cost.bytes() / rate.bytes_per_s) * 1e6;
}

}  // namespace

// Caps at eleven days, so that sums of many do not overflow.
Time from_us(double us) { return Time(std::llround(std::min(us, 1e12) * 1e3)); }

const CpuKernel* scalar_kernel(const OpCall& call) { return cpu_family(info_of(call.op).family).scalar; }

SimProgram::SimProgram(const ProgramRequest& request, const Spec& spec, trace::Recorder* recorder)
    : name_(request.name), trace_(request, spec.id, recorder) {
  begins_.push_back(from_us(spec.launch_us));
  for (const ProgramOp& op : request.ops) {
    ops_.push_back({.name = op.name,
                    .output = op.output,
                    .dtype = op.call.output->dtype,
                    .is_state = op.call.output->kind == TensorKind::state});
    begins_.push_back(begins_.back() + from_us(op_us(op.call, spec)));
  }
  if (!spec.computes) return;
  kernels_.emplace(request.ops, scalar_kernel, address_of, 1);
  scratch_.resize(kernels_->scratch().total(1) + kScratchMargin);
}

Status SimProgram::compute(std::size_t count, const Parameters& parameters, const FaultCount::Ops& faults) {
  if (!kernels_) return {};
  void* begin = scratch_.data();
  std::size_t room = scratch_.size();
  auto* const scratch = static_cast<std::byte*>(std::align(kScratchMargin, 1, begin, room));
  Status failure;
  CpuCall call{.parameters = &parameters,
               .shared_scratch = scratch,
               .thread_scratch = scratch + kernels_->scratch().shared_bytes(),
               .failure = &failure};
  // With one thread and kernels that prepare nothing, each step has one op and one share.
  auto step = kernels_->steps().begin();
  for (std::uint32_t op = 0; op < count; ++op) {
    for (; step != kernels_->steps().end() && step->op == op; ++step) {
      call.phase = step->phase;
      if (const int error = kernels_->run(kernels_->share_of(*step, 0), call); error != 0) {
        if (!failure)
          return fail_at(fmt::format("program \"{}\": kernel of \"{}\"", name_, ops_[op].name), failure.error());
        return fail(Code::internal,
                    fmt::format("program \"{}\": kernel of \"{}\" failed with {}", name_, ops_[op].name, error));
      }
    }
    // All bits set is NaN in every floating dtype.
    const Op& done = ops_[op];
    if (faults.nonfinite == op) std::memset(address_of(done.output), 0xFF, done.output.bytes);
    if (faults.wrong && *faults.wrong <= op && !done.is_state && info_of(done.dtype).kind == DTypeKind::floating)
      make_wrong(done.dtype, std::span(address_of(done.output), done.output.bytes));
  }
  return {};
}

void SimProgram::record(Time start, Time end, std::size_t count, const Submission& submission,
                        const Status& status) const {
  const auto ns = [](Time time) { return static_cast<std::uint64_t>(time.count()); };
  if (trace_.wants_ops(submission))
    for (std::size_t op = 0; op < count; ++op)
      trace_.record_op(op, ns(start + begins_[op]), ns(start + begins_[op + 1]), submission.step);
  trace_.record_program(ns(start), ns(end), submission.step, status);
}

}  // namespace shunt::sim
