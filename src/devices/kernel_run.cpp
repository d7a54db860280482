#include "devices/kernel_run.h"

#include <fmt/format.h>

#include <algorithm>

namespace shunt {
namespace {

constexpr std::uint64_t kLine = 64;
std::uint64_t whole_lines(std::uint64_t bytes) { return (bytes + kLine - 1) / kLine * kLine; }

}  // namespace

void ScratchSize::add(const CpuWork& work) {
  shared_bytes_ = std::max(shared_bytes_, whole_lines(work.shared_scratch_bytes));
  thread_bytes_ = std::max(thread_bytes_, whole_lines(work.thread_scratch_bytes));
}

Support KernelRun::supports(std::span<const OpCall> run, Choose choose, std::uint32_t threads,
                            std::string_view device) {
  ScratchSize scratch;
  Arithmetic arithmetic = Arithmetic::f32;
  for (const OpCall& call : run) {
    const CpuKernel* kernel = choose(call);
    if (kernel == nullptr)
      return {.reason = fmt::format("{}: {} has no kernel of the family", name_of(call.op), device)};
    if (std::string reason = kernel->supports(call); !reason.empty()) return {.reason = std::move(reason)};
    scratch.add(kernel->work(call, threads));
    if (kernel->arithmetic != nullptr) arithmetic = least_exact(arithmetic, kernel->arithmetic(call));
  }
  return {.scratch_bytes = scratch.total(threads), .arithmetic = arithmetic};
}

KernelRun::KernelRun(std::span<const ProgramOp> ops, Choose choose, Address address, std::uint32_t threads) {
  for (const ProgramOp& op : ops) {
    BoundOp step{.kernel = choose(op.call), .output = address(op.output)};
    step.kernel->write_arguments(op.call, step.arguments.bytes);
    for (const Binding& input : op.inputs) step.inputs.push_back(address(input));
    const CpuWork work = step.kernel->work(op.call, threads);
    step.phases = work.phases;
    if (step.kernel->context != nullptr) step.context = step.kernel->context(op.call);
    scratch_.add(work);
    steps_.push_back(std::move(step));
  }
}

int KernelRun::run(std::size_t op, CpuCall& call) const {
  const BoundOp& step = steps_[op];
  call.arguments = step.arguments.bytes.data();
  call.inputs = step.inputs;
  call.output = step.output;
  call.context = step.context.get();
  return step.kernel->run(call);
}

}  // namespace shunt
