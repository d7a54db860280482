#include "run/measure/link_bench.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/system/task_queue.h"
#include "devices/cpu/limits.h"
#include "devices/cpu/memory.h"
#include "run/measure/samples.h"

namespace shunt {
namespace {

constexpr int kReads = 7;

}  // namespace

Result<std::unique_ptr<LinkBench>> LinkBench::create(Device& device, std::uint64_t most_bytes,
                                                     std::uint64_t weight_bytes, Device* peer) {
  std::unique_ptr<LinkBench> bench(new LinkBench(device, peer));
  SHUNT_TRY_ASSIGN(bench->down_, device.allocate(most_bytes, BufferUse::values));
  SHUNT_TRY_ASSIGN(bench->up_, device.allocate(most_bytes, BufferUse::values));
  bench->host_down_.resize(most_bytes);
  bench->host_up_.resize(most_bytes);
  bench->pin(most_bytes);
  if (bench->copies_weights() && weight_bytes > most_bytes) bench->pin(weight_bytes);
  SHUNT_TRY(bench->measure_us(Direction::both, most_bytes));  // touches all memory
  if (peer == nullptr) return bench;
  if (auto of_peer = peer->allocate(most_bytes, BufferUse::values)) bench->of_peer_ = *std::move(of_peer);
  if (bench->copies_from_peer() && !bench->measure_us(Direction::from_peer, most_bytes)) bench->of_peer_.reset();
  return bench;
}

void LinkBench::pin(std::uint64_t bytes) {
  pinned_.reset();
  host_weights_.resize(bytes);
  weights_ = cpu::wrap_host(host_weights_, nullptr);
  if (auto pinned = device_.pin_host(host_weights_, HostAccess::reads, nullptr)) pinned_ = std::move(*pinned);
}

Status LinkBench::copy_weights(std::uint64_t bytes) {
  const MatrixRows row{.dtype = DType::F32, .columns = static_cast<std::uint32_t>(bytes / sizeof(float))};
  if (next_weight_ + bytes > host_weights_.size()) next_weight_ = 0;
  const Binding from{weights_.get(), std::exchange(next_weight_, next_weight_ + bytes), bytes};
  return device_.copy_weight(device_, from, {up_.get(), 0, bytes}, row).wait();
}

Result<LinkBench::SideBySide> LinkBench::measure_side_by_side() {
  // One core is the device's, whose work is waited for.
  SHUNT_TRY_ASSIGN(const auto limits, cpu::Limits::create(std::max(usable_cores() - 1, 1U)));
  const std::uint64_t bytes = up_->bytes();
  TaskQueue thread(1);
  if (thread.threads() == 0)
    return fail(Code::out_of_memory, "the system gives no thread to read memory beside copies");
  Samples reads_alone, reads, weights_alone, weights;
  const auto rate_of_copy = [&]() -> Result<double> {
    SHUNT_TRY_ASSIGN(const double us, measure_us(Direction::weights, bytes));
    return static_cast<double>(bytes) / us * 1e6;
  };
  for (int i = 0; i < kReads; ++i) {
    reads_alone.add(limits->read_bytes_per_s());
    SHUNT_TRY_ASSIGN(const double alone, rate_of_copy());
    weights_alone.add(alone);
    double read = 0;
    TaskQueue::Batch beside(1, [&](std::size_t) { read = limits->read_bytes_per_s(); });
    thread.start(beside);
    Result<double> copied = alone;
    while (copied && !thread.has_ended(beside)) {
      copied = rate_of_copy();
      // The last one ends alone.
      if (copied && !thread.has_ended(beside)) weights.add(*copied);
    }
    thread.wait(beside);
    SHUNT_TRY(copied);
    reads.add(read);
  }
  return SideBySide{.reads_alone = reads_alone.median(),
                    .reads = reads.median(),
                    .weights_alone = weights_alone.median(),
                    .weights = weights.empty() ? weights_alone.median() : weights.median()};
}

Result<double> LinkBench::measure_us(Direction direction, std::uint64_t bytes) {
  const std::uint64_t begin = device_.now_ns();
  const auto elapsed_us = [&] { return static_cast<double>(device_.now_ns() - begin) / 1e3; };
  if (direction == Direction::weights) {
    SHUNT_TRY(copy_weights(bytes));
    return elapsed_us();
  }
  if (direction == Direction::from_peer) {
    SHUNT_TRY(device_.copy_from_peer(*peer_, {of_peer_.get(), 0, bytes}, {up_.get(), 0, bytes}).wait());
    return elapsed_us();
  }
  Event up = direction == Direction::from_device
                 ? Event(Status{})
                 : device_.write({up_.get(), 0, bytes}, std::span(host_up_).first(bytes));
  Event down = direction == Direction::to_device
                   ? Event(Status{})
                   : device_.read({down_.get(), 0, bytes}, std::span(host_down_).first(bytes));
  const Status up_status = up.wait();
  SHUNT_TRY(down.wait());
  SHUNT_TRY(up_status);
  return elapsed_us();
}

// Minimizes the sum of ((us + bytes * slope) / time - 1)^2, a linear problem in two unknowns.
LinkRates fit_link(const std::vector<CopyTime>& times) {
  double a = 0, b = 0, c = 0, d = 0, e = 0;  // a us + b slope = d, b us + c slope = e
  for (const CopyTime& time : times) {
    const double bytes = static_cast<double>(time.bytes);
    a += 1 / (time.us * time.us);
    b += bytes / (time.us * time.us);
    c += bytes * bytes / (time.us * time.us);
    d += 1 / time.us;
    e += bytes / time.us;
  }
  double us = (d * c - e * b) / (a * c - b * b);
  double slope = (a * e - b * d) / (a * c - b * b);
  if (us < 0) us = 0, slope = e / c;
  if (slope <= 0) slope = times.back().us / static_cast<double>(times.back().bytes);
  double worst = 0;
  for (const CopyTime& time : times)
    worst = std::max(worst, std::abs((us + slope * static_cast<double>(time.bytes)) / time.us - 1));
  return {.us = us, .bytes_per_s = 1e6 / slope, .spread = worst};
}

}  // namespace shunt
