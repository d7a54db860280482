#include "devices/kernel_run.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/system/thread_pool.h"
#include "devices/hazards.h"

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
static_assert(KernelRun::kMostJoined * kPiecesPerThread * kMostThreads <= ThreadPool::kMostShares);

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

bool is_weight(const OpCall& call, std::size_t input) {
  return call.has_input(input) && call.input(input).kind == TensorKind::weight;
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

KernelRun::KernelRun(std::span<const ProgramOp> ops, Choose choose, Address address, std::uint32_t threads)
    : threads_(threads) {
  for (const ProgramOp& op : ops) {
    BoundOp bound{.kernel = choose(op.call), .output = address(op.output)};
    bound.kernel->write_arguments(op.call, bound.arguments.bytes);
    for (const Binding& input : op.inputs) bound.inputs.push_back(address(input));
    bound.shares = shares_of(*bound.kernel, op.call, threads);
    bound.work = bound.kernel->work(op.call, bound.shares);
    if (bound.kernel->context != nullptr) bound.context = bound.kernel->context(op.call);
    ops_.push_back(std::move(bound));
  }
  for (std::size_t first = 0; first < ops.size();) {
    const std::size_t count = count_of_joined(ops.subspan(first), std::span(ops_).subspan(first));
    // Each thread then has as many shares of an op as every other.
    for (std::size_t op = first; count > 1 && op < first + count; ++op) {
      ops_[op].shares = rounded_to_threads(ops_[op].shares);
      ops_[op].work = ops_[op].kernel->work(ops[op].call, ops_[op].shares);
    }
    add_steps(static_cast<std::uint32_t>(first), static_cast<std::uint32_t>(count));
    first += count;
  }
  for (const BoundOp& op : ops_) scratch_.add(op.work);
}

// Returns how many ops, counted from the first, share their steps.
std::size_t KernelRun::count_of_joined(std::span<const ProgramOp> ops, std::span<const BoundOp> bound) const {
  Hazards hazards;
  std::size_t count = 0;
  for (; count < std::min<std::size_t>(ops.size(), kMostJoined); ++count) {
    const ProgramOp& op = ops[count];
    Hazards accesses;
    accesses.note(Access::write(op.output));
    for (const Binding& input : op.inputs) accesses.note(Access::read(input));
    if (count != 0 && (hazards.has(accesses) || !may_join(ops[0].call, bound[0], op.call, bound[count]))) break;
    hazards.note(accesses);
  }
  return count;
}

// Returns whether two ops that do not depend on each other can share steps, to advantage.
bool KernelRun::may_join(const OpCall& one_call, const BoundOp& one, const OpCall& other_call,
                         const BoundOp& other) const {
  // A user's function may not expect others beside it.
  if (one_call.op == Op::custom || other_call.op == Op::custom) return false;
  // One of several threads runs small ops one after the other, without the others.
  if (threads_ > 1 && one.shares == 1 && other.shares == 1) return false;
  const auto is_one_step = [this](const OpCall& call, const BoundOp& op) {
    const CpuWork work = op.kernel->work(call, rounded_to_threads(op.shares));
    return work.phases == 1 && work.shared_scratch_bytes == 0;
  };
  if (is_one_step(one_call, one) && is_one_step(other_call, other)) return threads_ > 1;
  if (one.kernel != other.kernel || one.kernel->prepares_alike == nullptr) return false;
  if (one.work.phases != other.work.phases || one.inputs.size() != other.inputs.size()) return false;
  for (std::size_t input = 0; input < one.inputs.size(); ++input)
    if (one.inputs[input] != other.inputs[input] && !is_weight(one_call, input) && !is_weight(other_call, input))
      return false;
  return one.kernel->prepares_alike(one_call, other_call);
}

void KernelRun::add_steps(std::uint32_t first, std::uint32_t count) {
  const BoundOp& op = ops_[first];
  for (std::uint32_t phase = 0; phase < op.work.phases; ++phase) {
    const bool prepares = (phase + 1) % op.work.batch_phases != 0;
    Step step{.op = first, .ops = prepares ? 1 : count, .phase = phase, .shares = 0};
    for (std::uint32_t joined = 0; joined < step.ops; ++joined) step.shares += ops_[first + joined].shares;
    if (prepares && op.work.first_phase_is_small && phase == 0) step.shares = 1;
    steps_.push_back(step);
  }
}

KernelRun::Share KernelRun::share_of(const Step& step, std::uint32_t share) const {
  if (step.ops == 1) return {.op = step.op, .share = share, .shares = step.shares};
  // A thread's shares are neighbours (thread_pool.h): first those of the first op, and so on.
  const std::uint32_t each = step.shares / threads_;
  const std::uint32_t thread = share / each;
  std::uint32_t number = share % each;
  for (std::uint32_t op = step.op;; ++op) {
    const std::uint32_t shares = ops_[op].shares;
    const std::uint32_t own = shares / threads_;
    if (number < own) return {.op = op, .share = thread * own + number, .shares = shares};
    number -= own;
  }
}

int KernelRun::run(const Share& share, CpuCall& call) const {
  const BoundOp& op = ops_[share.op];
  call.share = share.share;
  call.shares = share.shares;
  call.arguments = op.arguments.bytes.data();
  call.inputs = op.inputs;
  call.output = op.output;
  call.context = op.context.get();
  return op.kernel->run(call);
}

}  // namespace shunt
