// Compares devices with the scalar reference: every row of ops.def on awkward operands (ops/sample.h).
//
// A case is one sample on one device, through the device contract. It passes if the result matches the reference within
// tolerance_of(), nothing was written outside the valid part of the result, and the inputs are unchanged. The reference
// sees neither views nor buckets: it gets plain copies of the valid parts. A device may decline a case with a reason;
// cpu:scalar may not. After the awkward operands come those of each other row of sample_sizes.def, if the reference
// computes them fast. These run for the first op of each family, or for all. Weights lie in rows, and then in the
// layout that the device reads fastest. Numerics are exact, and then fast if the device has another arithmetic for
// that. If it has several kernels for a call, each of them must be right. One thread; nothing is kept.
#pragma once

#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "devices/device.h"
#include "ops/sample.h"
#include "run/verify/pairwise.h"

namespace shunt {

struct KnownFailure {
  std::string_view device;
  Op op{};
  std::string_view dtype;
  std::string_view reason;
};
// The rows of known_failures.def.
[[nodiscard]] std::span<const KnownFailure> known_failures();

struct ConformanceOptions {
  std::vector<Op> ops;        // empty: all that run somewhere
  std::vector<DType> dtypes;  // only cases of exactly these, apart from I32, in the enum's order; empty: all
  bool full = false;          // all combinations instead of all pairs, and all sizes of all ops
  bool families = false;      // only the first op of each kernel family
  std::vector<Sizes> sizes = all_sizes();  // rows of sample_sizes.def
  bool every_op = false;                   // sizes that are not awkward for every op, not only the first of each family
  std::uint64_t seed = 1;                  // of the elements
  std::optional<SampleCase> only;          // only this case of each op
  // Only what this kernel of several could run; empty: each case by the kernel that the device takes. Otherwise by all.
  std::optional<std::string> kernel;
  std::span<const KnownFailure> known = known_failures();
  // Called before each case with the op, the number of the case and how many there are; false ends the run.
  std::function<bool(Op op, std::uint64_t number, std::uint64_t count)> progress;
};

// The results of one device for one op on operands of these dtypes.
struct ConformanceTally {
  std::string device;
  Op op{};
  Sizes sizes{};
  std::string dtypes;                   // "F32 Q4_0 -> F32", or with " in halves" behind it
  std::vector<DType> different_dtypes;  // those of `dtypes`, each once
  std::uint64_t passed = 0;
  std::uint64_t declined = 0;
  std::uint64_t failed = 0;  // including known failures
  double largest_error = 0;  // of the passed cases; see Comparison
  std::string reason;        // of the first case that was declined
};

struct ConformanceFailure {
  std::string device;
  Op op{};
  SampleCase which;
  std::string call;
  std::string words;
};

struct ConformanceReport {
  std::vector<ConformanceTally> tallies;     // ordered by op, sizes, device and dtypes
  std::vector<ConformanceFailure> failures;  // all unknown ones
  std::vector<KnownFailure> known;           // rows that still fail
  std::vector<KnownFailure> unexpected_passes;
  [[nodiscard]] bool ok() const { return failures.empty() && unexpected_passes.empty(); }
};

// Errors: internal if the reference cannot run a sample; otherwise what devices do is in the report.
[[nodiscard]] Result<ConformanceReport> check_conformance(std::span<Device* const> devices,
                                                          const ConformanceOptions& options);

}  // namespace shunt
