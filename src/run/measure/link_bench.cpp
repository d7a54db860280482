#include "run/measure/link_bench.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "devices/cpu/memory.h"

namespace shunt {

Result<std::unique_ptr<LinkBench>> LinkBench::create(Device& device, std::uint64_t most_bytes) {
  std::unique_ptr<LinkBench> bench(new LinkBench(device));
  SHUNT_TRY_ASSIGN(bench->down_, device.allocate(most_bytes, BufferUse::values));
  SHUNT_TRY_ASSIGN(bench->up_, device.allocate(most_bytes, BufferUse::values));
  bench->host_down_.resize(most_bytes);
  bench->host_up_.resize(most_bytes);
  bench->host_weights_.resize(most_bytes);
  bench->weights_ = cpu::wrap_host(bench->host_weights_, nullptr);
  if (auto pinned = device.pin_host(bench->host_weights_, nullptr)) bench->pinned_ = std::move(*pinned);
  SHUNT_TRY(bench->measure_us(Direction::both, most_bytes));  // touches all memory
  return bench;
}

Result<double> LinkBench::measure_us(Direction direction, std::uint64_t bytes) {
  const std::uint64_t begin = device_.now_ns();
  const auto elapsed_us = [&] { return static_cast<double>(device_.now_ns() - begin) / 1e3; };
  if (direction == Direction::weights) {
    const MatrixRows row{.dtype = DType::F32, .columns = static_cast<std::uint32_t>(bytes / sizeof(float))};
    SHUNT_TRY(device_.copy_weight(device_, {weights_.get(), 0, bytes}, {up_.get(), 0, bytes}, row).wait());
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
