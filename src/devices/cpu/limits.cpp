#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "devices/cpu/limits.cpp"
#include "hwy/foreach_target.h"
// These come after foreach_target.h:
#include "hwy/highway.h"
#include "ops/prefetch.h"

HWY_BEFORE_NAMESPACE();
namespace shunt::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Returns a number that depends on every vector. Prefetches, as the kernels do: processors do not fetch across pages.
float read_all(const float* values, std::size_t count) {
  const hn::ScalableTag<float> d;
  const std::size_t lanes = hn::Lanes(d);
  auto a = hn::Zero(d), b = a, c = a, e = a;
  for (std::size_t i = 0; i + 4 * lanes <= count; i += 4 * lanes) {
    for (std::size_t line = 0; line < 4 * lanes; line += 16) prefetch_plain(values + i + 512 + line);
    a = hn::Add(a, hn::LoadU(d, values + i));
    b = hn::Add(b, hn::LoadU(d, values + i + lanes));
    c = hn::Add(c, hn::LoadU(d, values + i + 2 * lanes));
    e = hn::Add(e, hn::LoadU(d, values + i + 3 * lanes));
  }
  return hn::GetLane(hn::SumOfLanes(d, hn::Add(hn::Add(a, b), hn::Add(c, e))));
}

// Twelve independent sums keep two units with a latency of up to six cycles busy, and with two factors they fit sixteen
// registers. They start from different values, or else the compiler would merge them.
inline constexpr std::size_t kSums = 12;

float multiply_add(std::uint64_t rounds) {
  const hn::ScalableTag<float> d;
  const auto shrink = hn::Set(d, 0.999F);
  const auto grow = hn::Set(d, 0.001F);
  hn::Vec<hn::ScalableTag<float>> sums[kSums];
  HWY_UNROLL(12) for (std::size_t i = 0; i < kSums; ++i) sums[i] = hn::Iota(d, static_cast<float>(i));
  for (std::uint64_t round = 0; round < rounds; ++round) {
    HWY_UNROLL(12) for (std::size_t i = 0; i < kSums; ++i) sums[i] = hn::MulAdd(sums[i], shrink, grow);
  }
  HWY_UNROLL(12) for (std::size_t i = 1; i < kSums; ++i) sums[0] = hn::Add(sums[0], sums[i]);
  return hn::GetLane(hn::SumOfLanes(d, sums[0]));
}

// Floating-point operations in one round.
std::uint64_t round_flops() { return 2 * kSums * hn::Lanes(hn::ScalableTag<float>()); }

}  // namespace HWY_NAMESPACE
}  // namespace shunt::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "devices/cpu/limits.h"
#include "devices/cpu/memory.h"
#include "ops/kernel.h"

namespace shunt::cpu {

HWY_EXPORT(read_all);
HWY_EXPORT(multiply_add);
HWY_EXPORT(round_flops);

namespace {

constexpr std::uint64_t kLeastBytes = std::uint64_t{256} << 20U;
// About ten milliseconds, as long as a large linear, so that both are delayed alike when other programs want the cores.
constexpr std::uint64_t kMultiplyRounds = 4'000'000;
constexpr std::size_t kRegions = 501;

template <class Work>
double seconds_of(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

std::uint64_t beyond_cache_bytes() {
  std::uint64_t bytes = kLeastBytes;
#if defined(_SC_LEVEL3_CACHE_SIZE)
  for (const int level : {_SC_LEVEL3_CACHE_SIZE, _SC_LEVEL4_CACHE_SIZE})
    if (const long cache = sysconf(level); cache > 0) bytes = std::max(bytes, 2 * static_cast<std::uint64_t>(cache));
#endif
  return bytes;
}

std::uint64_t own_cache_bytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  if (const long cache = sysconf(_SC_LEVEL2_CACHE_SIZE); cache > 0) return static_cast<std::uint64_t>(cache);
#endif
  return std::uint64_t{1} << 20U;
}

Result<std::unique_ptr<Limits>> Limits::create(std::uint32_t threads) {
  SHUNT_TRY_ASSIGN(std::unique_ptr<Buffer> buffer, allocate_host(beyond_cache_bytes()));
  // Untouched pages would all map to the same one.
  std::ranges::fill(buffer->host(), std::byte{1});
  return std::unique_ptr<Limits>(new Limits(threads != 0 ? threads : usable_cores(), std::move(buffer)));
}

double Limits::read_bytes_per_s() {
  const auto* values = reinterpret_cast<const float*>(buffer_->host().data());
  const std::uint64_t count = buffer_->bytes() / sizeof(float);
  const double seconds = seconds_of([&] {
    pool_.run([&](std::uint32_t share) {
      const Range range = share_of(count, share, threads(), 1024);
      results_[share * kLineFloats] = HWY_DYNAMIC_DISPATCH(read_all)(values + range.begin, range.end - range.begin);
    });
  });
  return static_cast<double>(count * sizeof(float)) / seconds;
}

double Limits::flops_per_s(std::uint32_t threads) {
  const double seconds = seconds_of([&] {
    pool_.run([&](std::uint32_t share) {
      if (share < threads) results_[share * kLineFloats] = HWY_DYNAMIC_DISPATCH(multiply_add)(kMultiplyRounds);
    });
  });
  return static_cast<double>(threads * kMultiplyRounds * HWY_DYNAMIC_DISPATCH(round_flops)()) / seconds;
}

double Limits::fork_join_us() {
  std::array<double, kRegions> us{};
  for (double& one : us) one = 1e6 * seconds_of([&] { pool_.run([](std::uint32_t) {}); });
  std::ranges::nth_element(us, us.begin() + kRegions / 2);
  return us[kRegions / 2];
}

}  // namespace shunt::cpu
#endif  // HWY_ONCE
