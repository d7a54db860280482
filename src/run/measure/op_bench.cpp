#include "run/measure/op_bench.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "base/stopwatch.h"
#include "base/system/event_counter.h"

namespace shunt {
namespace {

// The most uses in one program.
constexpr std::uint32_t kMostUses = 1024;
// The least time of a program, so that starting it does not count.
constexpr double kProgramSeconds = 2e-3;

std::uint64_t aligned(std::uint64_t bytes, std::uint64_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}

// Fills with random bits in which no number, and no scale of any dtype, is tiny or infinite: neither pairs of bytes as
// 16-bit numbers nor single bytes as exponents. Some processors take a hundred times as long for products that are.
void fill_random(std::span<std::byte> out) {
  std::uint64_t state = 1;
  for (std::size_t at = 0; at < out.size(); at += sizeof state) {
    // A linear congruential generator, whose high bits count (Knuth, The Art of Computer Programming 2, 3.3.4).
    state = state * 6364136223846793005U + 1442695040888963407U;
    const std::uint64_t word = ((state ^ state >> 32U) & 0x3B7F3B7F3B7F3B7FU) | 0x3040304030403040U;
    std::memcpy(out.data() + at, &word, std::min(sizeof word, out.size() - at));
  }
}

}  // namespace

Result<std::unique_ptr<BenchMemory>> BenchMemory::create(Device& device, std::uint64_t read_bytes,
                                                         std::uint64_t written_bytes) {
  constexpr std::uint64_t kPieceBytes = std::uint64_t{16} << 20U;
  auto memory = std::make_unique<BenchMemory>();
  memory->read_bytes_ = aligned(read_bytes, device.info().alignment_bytes);
  memory->written_bytes_ = written_bytes;
  SHUNT_TRY_ASSIGN(memory->buffer_, device.allocate(memory->read_bytes_ + written_bytes, BufferUse::weights));
  std::vector<std::byte> piece(std::min(read_bytes, kPieceBytes));
  fill_random(piece);
  for (std::uint64_t offset = 0; offset < read_bytes; offset += piece.size()) {
    const std::uint64_t bytes = std::min<std::uint64_t>(piece.size(), read_bytes - offset);
    SHUNT_TRY(device.write({memory->buffer_.get(), offset, bytes}, std::span(piece).first(bytes)).wait());
  }
  return memory;
}

Result<std::unique_ptr<OpBench>> OpBench::create(BenchCase use, Device& device, std::uint64_t memory_bytes,
                                                 BenchMemory* shared, std::string_view kernel) {
  std::unique_ptr<OpBench> bench(new OpBench(std::move(use), device, kernel));
  const OpCall calls[] = {bench->operands_.call()};
  if (Support support = device.supports(calls); !support) return fail(Code::unsupported, std::move(support.reason));
  bench->cost_ = info_of(bench->use_.op).rule->cost(calls[0]);
  bench->choose_copies(memory_bytes);
  SHUNT_TRY(bench->bind(shared));
  SHUNT_TRY(bench->prepare(bench->copies_ * bench->parts_));
  const Stopwatch first_watch;
  SHUNT_TRY_ASSIGN(const double first, bench->measure());
  if (bench->reads_memory_ || std::max(first, first_watch.seconds()) >= kProgramSeconds) return bench;
  // The first run also got pages from the system. A simulated device may take longer than its own clock says.
  const Stopwatch watch;
  SHUNT_TRY_ASSIGN(const double by_device, bench->measure());
  const double seconds = std::max(by_device, watch.seconds());
  const double wanted = std::min(kProgramSeconds / std::max(seconds, 1e-9), double{kMostUses});
  SHUNT_TRY(bench->prepare(std::max(static_cast<std::uint32_t>(wanted), 1U)));
  SHUNT_TRY(bench->measure());
  return bench;
}

bool OpBench::rotates(const BenchInput& input) const {
  return !input.is_absent && (input.operand.kind == TensorKind::weight || input.operand.kind == TensorKind::state);
}

// Copies only operands of which an op reads at least half, and those of experts, of which each use reads others: an op
// that reads less of its operands would read as little next time.
void OpBench::choose_copies(std::uint64_t memory_bytes) {
  std::uint64_t bytes = 0;
  bool has_experts = false;
  for (const BenchInput& input : use_.inputs) {
    if (!rotates(input)) continue;
    bytes += input.operand.span_bytes();
    has_experts = has_experts || (input.operand.kind == TensorKind::weight && input.operand.shape.rank() == 3);
  }
  if (use_.rows != 1 || bytes == 0 || memory_bytes == 0) return;
  if (!has_experts && 2 * cost_.bytes_read < static_cast<double>(bytes)) return;
  const std::uint64_t copies = (memory_bytes + bytes - 1) / bytes;
  if (copies > kMostUses) return;
  reads_memory_ = true;
  copies_ = static_cast<std::uint32_t>(copies);
  const double parts = has_experts ? static_cast<double>(bytes) / cost_.bytes_read : 1;
  parts_ = static_cast<std::uint32_t>(std::clamp(parts, 1.0, static_cast<double>(kMostUses / copies_)));
}

// Returns how many versions of an input there are.
std::uint32_t OpBench::versions(const BenchInput& input) const {
  if (input.operand.dtype == DType::I32) return parts_;
  return rotates(input) ? copies_ : 1;
}

// Returns whether an input is written: indices, of which each bench has its own, and state that the op changes.
bool OpBench::is_written(std::size_t input) const {
  return use_.inputs[input].operand.dtype == DType::I32 || (input == 0 && use_.output.kind == TensorKind::state);
}

Status OpBench::bind(BenchMemory* shared) {
  const std::uint64_t alignment = device_.info().alignment_bytes;
  std::uint64_t read = 0;
  std::uint64_t written = 0;
  const auto place = [&](std::uint64_t& offset, const Operand& operand, std::uint32_t copies) {
    const Binding binding{.offset = offset, .bytes = operand.span_bytes()};
    offset += aligned(binding.bytes, alignment) * copies;
    return binding;
  };
  for (std::size_t index = 0; index < use_.inputs.size(); ++index) {
    const BenchInput& input = use_.inputs[index];
    std::uint64_t& offset = is_written(index) ? written : read;
    inputs_.push_back(input.is_absent ? Binding{} : place(offset, input.operand, versions(input)));
  }
  // New state is the old state, changed.
  const bool changes_state = use_.output.kind == TensorKind::state;
  if (!changes_state) output_ = place(written, use_.output, 1);
  const bool shares = shared != nullptr && read <= shared->read_bytes_ && written <= shared->written_bytes_;
  std::uint64_t first_read = 0;
  if (shares) {
    // Elsewhere than the previous bench, if there is room.
    first_read = shared->next_ + read <= shared->read_bytes_ ? shared->next_ : 0;
    shared->next_ = first_read + read;
  } else {
    SHUNT_TRY_ASSIGN(buffer_, device_.allocate(read + written, BufferUse::weights));
  }
  Buffer* const buffer = shares ? shared->buffer_.get() : buffer_.get();
  const std::uint64_t first_written = shares ? shared->read_bytes_ : read;
  for (std::size_t index = 0; index < inputs_.size(); ++index) {
    if (use_.inputs[index].is_absent) continue;
    inputs_[index].layout = device_.layout_for(operands_.call(), index);
    inputs_[index].buffer = buffer;
    inputs_[index].offset += is_written(index) ? first_written : first_read;
    if (!shares || is_written(index)) SHUNT_TRY(fill(index));
  }
  output_.buffer = buffer;
  output_.offset += first_written;
  if (changes_state) output_ = inputs_[0];
  return {};
}

Status OpBench::fill(std::size_t index) {
  const BenchInput& input = use_.inputs[index];
  Binding binding = inputs_[index];
  std::vector<std::byte> bytes(binding.bytes);
  fill_random(bytes);
  const std::uint64_t elements = input.operand.shape.elements();
  for (std::uint32_t version = 0; version < versions(input); ++version) {
    for (std::uint64_t i = 0; input.operand.dtype == DType::I32 && i < elements; ++i) {
      const std::uint64_t place = version * elements + i;
      const auto number =
          static_cast<std::int32_t>((input.indices.first + place * input.indices.step) % input.indices.modulus);
      std::memcpy(bytes.data() + i * sizeof number, &number, sizeof number);
    }
    SHUNT_TRY(device_.write(binding, bytes).wait());
    binding.offset += aligned(binding.bytes, device_.info().alignment_bytes);
  }
  return {};
}

Status OpBench::prepare(std::uint32_t uses) {
  const std::uint64_t alignment = device_.info().alignment_bytes;
  std::vector<ProgramOp> ops;
  for (std::uint32_t i = 0; i < uses; ++i) {
    ProgramOp op{.call = operands_.call(),
                 .inputs = inputs_,
                 .output = output_,
                 .name = fmt::format("use {}", i),
                 .kernel = kernel_};
    for (std::size_t input = 0; input < op.inputs.size(); ++input) {
      const std::uint32_t turn = use_.inputs[input].operand.dtype == DType::I32 ? i / copies_ : i;
      op.inputs[input].offset += turn % versions(use_.inputs[input]) * aligned(op.inputs[input].bytes, alignment);
    }
    if (use_.output.kind == TensorKind::state) op.output = op.inputs[0];
    ops.push_back(std::move(op));
  }
  uses_ = uses;
  SHUNT_TRY_ASSIGN(program_, device_.prepare({.name = fmt::format("bench {}", name_of(use_.op)), .ops = ops}));
  return {};
}

Status OpBench::use_as_often_as(const OpBench& other) {
  if (uses_ == other.uses_) return {};
  SHUNT_TRY(prepare(other.uses_));
  SHUNT_TRY(measure());  // the first run
  return {};
}

Result<double> OpBench::measure() {
  const std::uint64_t begin = device_.now_ns();
  SHUNT_TRY(device_.submit(*program_, {.parameters = {.tokens = use_.rows, .outputs = use_.rows}}).wait());
  return static_cast<double>(device_.now_ns() - begin) / 1e9 / uses_;
}

Status measure_beside(cpu::Limits& limits, OpBench& bench, OpTimes& times, LimitTimes& limit_times) {
  const double read_bytes_per_s = limits.read_bytes_per_s();
  const double flops_per_s = limits.flops_per_s(limits.threads());
  limit_times.read_bytes_per_s.add(read_bytes_per_s);
  limit_times.flops_per_s.add(flops_per_s);
  limit_times.flops_per_s_one_thread.add(limits.flops_per_s(1));
  limit_times.fork_join_us.add(limits.fork_join_us());
  if (!bench.reads_memory())
    SHUNT_TRY(bench.measure());  // the limits' numbers have taken the place of its own in caches
  const bool runs_on_processor = bench.device().info().type == DeviceType::cpu;
  const auto counter = runs_on_processor ? count_instructions() : std::nullopt;
  SHUNT_TRY_ASSIGN(const double seconds, bench.measure());
  if (const auto rate = instructions_per_cycle(counter)) times.instructions_per_cycle.add(*rate);
  times.seconds.add(seconds);
  times.bytes_per_s.add(bench.bytes() / seconds);
  times.flops_per_s.add(bench.cost().flops / seconds);
  const PeakRates peak = runs_on_processor ? PeakRates{read_bytes_per_s, flops_per_s} : bench.device().peak();
  if (peak.bytes_per_s > 0) times.share_of_bandwidth.add(bench.bytes() / seconds / peak.bytes_per_s);
  if (peak.flops_per_s > 0) times.share_of_peak.add(bench.cost().flops / seconds / peak.flops_per_s);
  return {};
}

}  // namespace shunt
