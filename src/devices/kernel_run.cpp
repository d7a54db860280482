#include "devices/kernel_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/system/thread_pool.h"

namespace shunt {
namespace {

constexpr std::uint64_t kLine = 64;

// The least work of a share, in bytes that one thread reads in 1.6 us, and of one of several shares of a thread.
constexpr double kShareBytes = 16 << 10;
constexpr double kPieceBytes = 64 << 10;
// Flops of a product that one thread does while it reads a byte.
constexpr double kFlopsPerByte = 8;
// Shares per thread of work that can be cut further: threads that are late leave some to others.
constexpr std::uint32_t kPiecesPerThread = 4;
static_assert(kPiecesPerThread * kMostThreads <= ThreadPool::kMostShares);

// Returns into how many shares the work of a call is cut: one for what a single thread ends before others could begin.
std::uint32_t shares_of(const CpuKernel& kernel, const OpCall& call, std::uint32_t threads) {
  // A user's function may cost more than it says.
  if (threads == 1 || call.op == Op::custom) return threads;
  const Cost cost = info_of(call.op).rule->cost(call);
  const double bytes = std::max(cost.bytes(), cost.flops / kFlopsPerByte);
  const auto at_most = [](double cuts, double most) { return static_cast<std::uint32_t>(std::clamp(cuts, 1.0, most)); };
  const std::uint32_t shares = at_most(bytes / kShareBytes, threads);
  if (shares < threads || kernel.most_shares == nullptr) return shares;
  const double most = std::min<double>(kPiecesPerThread, static_cast<double>(kernel.most_shares(call) / threads));
  return threads * at_most(bytes / kPieceBytes / threads, std::max(most, 1.0));
}

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
    scratch.add(kernel->work(call, shares_of(*kernel, call, threads)));
    if (kernel->arithmetic != nullptr) arithmetic = least_exact(arithmetic, kernel->arithmetic(call));
  }
  return {.scratch_bytes = scratch.total(threads), .arithmetic = arithmetic};
}

KernelRun::KernelRun(std::span<const ProgramOp> ops, Choose choose, Address address, std::uint32_t threads) {
  for (const ProgramOp& op : ops) {
    BoundOp step{.kernel = choose(op.call), .output = address(op.output)};
    step.kernel->write_arguments(op.call, step.arguments.bytes);
    for (const Binding& input : op.inputs) step.inputs.push_back(address(input));
    step.shares = shares_of(*step.kernel, op.call, threads);
    const CpuWork work = step.kernel->work(op.call, step.shares);
    step.phases = work.phases;
    step.first_phase_is_small = work.first_phase_is_small;
    if (step.kernel->context != nullptr) step.context = step.kernel->context(op.call);
    scratch_.add(work);
    steps_.push_back(std::move(step));
  }
}

int KernelRun::run(std::size_t op, CpuCall& call) const {
  const BoundOp& step = steps_[op];
  call.shares = shares(op, call.phase);
  call.arguments = step.arguments.bytes.data();
  call.inputs = step.inputs;
  call.output = step.output;
  call.context = step.context.get();
  return step.kernel->run(call);
}

}  // namespace shunt
