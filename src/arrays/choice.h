// Chooses the device for the next call, from what calls of its size took on each device.
//
// A time is the median of the last few measurements, so that one outlier changes nothing. Until there is one, the
// prediction is used. Devices are indices. A plain value without its own clock; one thread at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>

#include "shunt/arrays.h"

namespace shunt::arrays {

// Calls that share measurements: those of one function whose units have the same power of two.
struct SizeClass {
  std::uint32_t function = 0;
  std::uint32_t log2 = 0;
  friend auto operator<=>(const SizeClass&, const SizeClass&) = default;
};

struct Contender {
  std::size_t device = 0;
  double predicted_us = 0;
};

struct Chosen {
  std::size_t device = 0;
  ArrayReason reason{};
};

class Timing {
 public:
  // The number of measurements that make a time trusted.
  static constexpr std::size_t kEnough = 3;

  Timing();
  void add(double us, std::uint64_t call);
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool is_known() const { return count_ != 0; }
  // REQUIRES: is_known().
  [[nodiscard]] double median_us() const;
  // The number of the last measured call.
  [[nodiscard]] std::uint64_t last_call() const { return last_call_; }

 private:
  std::array<double, 5> last_us_;  // infinity: not measured yet
  std::size_t count_ = 0;
  std::size_t next_ = 0;
  std::uint64_t last_call_ = 0;
};

class Choices {
 public:
  // A measurement older than this many calls of its size is repeated, if the share allows.
  static constexpr std::uint64_t kOldCalls = 256;
  // A device is not tried if its prediction, and its measurement if any, is this many times that of the fastest.
  static constexpr double kHopeless = 4;
  // The margin by which an unmeasured device must be faster.
  static constexpr double kUnmeasuredMargin = 2;

  Choices(double margin, double exploring_share) : margin_(margin), share_(exploring_share) {}

  // Chooses among `candidates`, given in order of preference. Those predicted to take more than `limit_us` are skipped,
  // unless that leaves none. REQUIRES: !candidates.empty().
  [[nodiscard]] Chosen choose(SizeClass size, std::span<const Contender> candidates, double limit_us);
  // Records what the last chosen call took, wherever it was computed in the end.
  void record(SizeClass size, std::size_t device, double us);

  [[nodiscard]] const Timing* find(SizeClass size, std::size_t device) const;

 private:
  struct Calls {
    std::uint64_t count = 0;
    std::optional<std::size_t> device;  // that computes them
    std::map<std::size_t, Timing> timings;
  };

  static double expected_us(const Calls& calls, const Contender& candidate);
  // The candidate that computes calls of this size from now on.
  static const Contender& fastest(const Calls& calls, std::span<const Contender> candidates);
  [[nodiscard]] double margin_between(const Calls& calls, const Contender& a, const Contender& b) const;
  // Returns a candidate worth trying instead of `best`, or null.
  [[nodiscard]] const Contender* to_explore(const Calls& calls, std::span<const Contender> candidates,
                                            const Contender& best, double limit_us) const;

  double margin_;
  double share_;
  std::map<SizeClass, Calls> calls_;
  bool exploring_ = false;  // whether the last chosen call explores
  double explored_us_ = 0;
  double total_us_ = 0;
};

}  // namespace shunt::arrays
