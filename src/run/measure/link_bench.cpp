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
                                                     std::uint64_t weight_bytes) {
  std::unique_ptr<LinkBench> bench(new LinkBench(device));
  SHUNT_TRY_ASSIGN(bench->down_, device.allocate(most_bytes, BufferUse::values));
  SHUNT_TRY_ASSIGN(bench->up_, device.allocate(most_bytes, BufferUse::values));
  bench->host_down_.resize(most_bytes);
  bench->host_up_.resize(most_bytes);
  bench->host_weights_.resize(std::max(weight_bytes, most_bytes));
  bench->weights_ = cpu::wrap_host(bench->host_weights_, nullptr);
  if (auto pinned = device.pin_host(bench->host_weights_, nullptr)) bench->pinned_ = std::move(*pinned);
  SHUNT_TRY(bench->measure_us(Direction::both, most_bytes));  // touches all memory
  return bench;
}

Status LinkBench::copy_weights(std::uint64_t bytes) {
  const MatrixRows row{.dtype = DType::F32, .columns = static_cast<std::uint32_t>(bytes / sizeof(float))};
  if (next_weight_ + bytes > host_weights_.size()) next_weight_ = 0;
  const Binding from{weights_.get(), std::exchange(next_weight_, next_weight_ + bytes), bytes};
  return device_.copy_weight(device_, from, {up_.get(), 0, bytes}, row).wait();
}

Result<LinkBench::Shares> LinkBench::measure_side_by_side(const LinkRates& weights) {
  SHUNT_TRY_ASSIGN(const auto limits, cpu::Limits::create(0));
  const double alone_us = weights.copy_us(up_->bytes());
  TaskQueue thread(1);
  Samples of_reads, of_weights;
  for (int i = 0; i < kReads; ++i) {
    const double alone = limits->read_bytes_per_s();
    double beside = 0;
    TaskQueue::Batch reads(1, [&](std::size_t) { beside = limits->read_bytes_per_s(); });
    thread.start(reads);
    Result<double> us = 0;
    while (us && !thread.has_ended(reads)) {
      us = measure_us(Direction::weights, up_->bytes());
      if (us && !thread.has_ended(reads)) of_weights.add(alone_us / *us);
    }
    thread.wait(reads);
    SHUNT_TRY(us);
    of_reads.add(beside / alone);
  }
  return Shares{.reads = of_reads.median(), .weights = of_weights.empty() ? 1 : of_weights.median()};
}

Result<double> LinkBench::measure_us(Direction direction, std::uint64_t bytes) {
  const std::uint64_t begin = device_.now_ns();
  const auto elapsed_us = [&] { return static_cast<double>(device_.now_ns() - begin) / 1e3; };
  if (direction == Direction::weights) {
    SHUNT_TRY(copy_weights(bytes));
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
