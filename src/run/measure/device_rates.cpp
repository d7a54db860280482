#include "run/measure/device_rates.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <limits>
#include <thread>

#include "ops/op.h"

namespace shunt {
namespace {

constexpr std::uint64_t kLeastBytes = std::uint64_t{4} << 10U;
constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30U;
// The bytes that a tiny op moves.
constexpr std::uint64_t kTinyBytes = 2 * sizeof(float);
// Tiny ops in a program.
constexpr std::uint32_t kSome = 64;
constexpr std::uint32_t kMostCopies = 1024;
// The least time of a program.
constexpr double kProgramNs = 2e6;
constexpr std::uint32_t kColumns = 1024;
// About as long as the part of a step that another device computes.
constexpr std::chrono::milliseconds kPause{1};

Shape shape_of(std::uint64_t elements) {
  const auto count = static_cast<std::uint32_t>(elements);
  return count % kColumns == 0 ? Shape{count / kColumns, kColumns} : Shape{1, count};
}

}  // namespace

Result<std::unique_ptr<CopyChain>> CopyChain::create(Device& device, std::uint64_t bytes, std::uint32_t copies) {
  const Operand half = Operand::contiguous(DType::F32, shape_of(bytes / kTinyBytes));
  const std::array inputs{&half};
  const Attributes attributes{{Attr::to, DType::F32}};
  const OpCall call{.op = Op::copy, .attributes = &attributes, .inputs = inputs, .output = &half};
  if (Support support = device.supports(std::span(&call, 1)); !support)
    return fail(Code::unsupported, std::move(support.reason));

  std::unique_ptr<CopyChain> chain(new CopyChain(device, copies));
  const std::uint64_t alignment = device.info().alignment_bytes;
  const std::uint64_t second = (bytes / 2 + alignment - 1) / alignment * alignment;
  SHUNT_TRY_ASSIGN(chain->buffer_, device.allocate(second + bytes / 2, BufferUse::values));
  const std::vector<std::byte> zeros(bytes / 2);
  Binding from{chain->buffer_.get(), 0, bytes / 2};
  Binding to{chain->buffer_.get(), second, bytes / 2};
  SHUNT_TRY(device.write(from, zeros).wait());
  std::vector<ProgramOp> ops;
  for (std::uint32_t copy = 0; copy < copies; ++copy) {
    ops.push_back({.call = call, .inputs = {from}, .output = to, .name = fmt::format("copy {}", copy)});
    std::swap(from, to);
  }
  SHUNT_TRY_ASSIGN(chain->program_, device.prepare({.name = fmt::format("copies of {} bytes", bytes), .ops = ops}));
  return chain;
}

Result<double> CopyChain::run_ns() {
  const std::uint64_t begin = device_.now_ns();
  SHUNT_TRY(device_.submit(*program_, {}).wait());
  return static_cast<double>(device_.now_ns() - begin);
}

Result<std::unique_ptr<LaunchBench>> LaunchBench::create(Device& device) {
  std::unique_ptr<LaunchBench> bench(new LaunchBench);
  SHUNT_TRY_ASSIGN(bench->one_, CopyChain::create(device, kTinyBytes, 1));
  SHUNT_TRY_ASSIGN(bench->some_, CopyChain::create(device, kTinyBytes, kSome));
  SHUNT_TRY_ASSIGN(bench->twice_, CopyChain::create(device, kTinyBytes, 2 * kSome));
  // First runs also compile and touch memory.
  SHUNT_TRY(bench->measure());
  return bench;
}

Result<LaunchCost> LaunchBench::measure() {
  SHUNT_TRY_ASSIGN(const double one, one_->run_ns());
  SHUNT_TRY_ASSIGN(const double some, some_->run_ns());
  SHUNT_TRY_ASSIGN(const double twice, twice_->run_ns());
  return LaunchCost{.program_us = one / 1e3, .op_us = (twice - some) / kSome / 1e3};
}

Result<double> LaunchBench::measure_after_pause() {
  std::this_thread::sleep_for(kPause);
  SHUNT_TRY_ASSIGN(const double ns, one_->run_ns());
  return ns / 1e3;
}

CopyBench::CopyBench(const LaunchCost& launch)
    : start_ns_(std::max(launch.program_us - std::max(launch.op_us, 0.0), 0.0) * 1e3) {}

Result<std::unique_ptr<CopyBench>> CopyBench::create(Device& device, std::uint64_t bytes, const LaunchCost& launch) {
  std::unique_ptr<CopyBench> bench(new CopyBench(launch));
  const double enough = kProgramNs + bench->start_ns_;
  for (std::uint32_t copies = 1;;) {
    SHUNT_TRY_ASSIGN(bench->chain_, CopyChain::create(device, bytes, copies));
    // One disturbed run, or the first to touch memory, does not show that a program is long enough.
    double quickest = std::numeric_limits<double>::infinity();
    for (int run = 0; run < 3 && quickest >= enough; ++run) {
      SHUNT_TRY_ASSIGN(const double ns, bench->chain_->run_ns());
      quickest = std::min(quickest, ns);
    }
    if (quickest >= enough || copies == kMostCopies) return bench;
    // A short program says little about how many copies are enough.
    const double wanted = copies * std::min(1.2 * kProgramNs / std::max(quickest - bench->start_ns_, 1.0), 16.0);
    copies = std::clamp(static_cast<std::uint32_t>(wanted), copies + 1, kMostCopies);
  }
}

Result<double> CopyBench::measure_us() {
  SHUNT_TRY_ASSIGN(const double ns, chain_->run_ns());
  // Short copies may seem to take no time if the launch was measured under worse conditions.
  return std::max(ns - start_ns_, 1.0) / chain_->copies() / 1e3;
}

std::vector<std::uint64_t> curve_sizes(const Device& device) {
  const std::uint64_t binding = device.info().largest_binding_bytes;
  const std::uint64_t most = std::min({kMostBytes, device.memory_available().value_or(4 * kMostBytes) / 4,
                                       binding > kMostBytes ? kMostBytes : 2 * binding});
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t bytes = kLeastBytes; bytes <= most; bytes *= 4) sizes.push_back(bytes);
  return sizes;
}

}  // namespace shunt
