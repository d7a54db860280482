// Holds devices against the scalar reference: every row of ops.def on awkward operands (ops/sample.h).
//
// A case is one sample on one device, through the device contract. It passes if the result is the reference's
// within tolerance_of(), if nothing was written beside the valid part of the result, and if the inputs are as they
// were. The reference sees neither views nor buckets: it gets plain copies of what is valid. A device may decline
// a case with a reason, cpu:scalar may not. After the awkward operands come those of each other row of
// sample_sizes.def, as far as the reference computes them soon: for the first op of each family, or for all.
// One thread; nothing is kept.
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
  std::vector<Op> ops;             // empty: all that run somewhere
  std::vector<DType> dtypes;       // only cases of just these, I32 aside, in the enum's order; empty: of all
  bool full = false;               // all combinations instead of all pairs, and all sizes of all ops
  bool awkward = true;             // awkward sizes
  bool sizes = true;               // the other sizes
  std::uint64_t seed = 1;          // of the elements
  std::optional<SampleCase> only;  // just this case of each op
  std::span<const KnownFailure> known = known_failures();
  // Called before each case with the op, the number of the case and how many there are; false ends the run.
  std::function<bool(Op op, std::uint64_t number, std::uint64_t count)> progress;
};

// What one device made of one op on operands of these dtypes.
struct ConformanceTally {
  std::string device;
  Op op{};
  Sizes sizes{};
  std::string dtypes;                   // "F32 Q4_0 -> F32"
  std::vector<DType> different_dtypes;  // those of `dtypes`, each once
  std::uint64_t passed = 0;
  std::uint64_t declined = 0;
  std::uint64_t failed = 0;  // known failures among them
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
  std::vector<ConformanceFailure> failures;  // all that are not known
  std::vector<KnownFailure> known;           // rows that still fail
  std::vector<KnownFailure> unexpected_passes;
  [[nodiscard]] bool ok() const { return failures.empty() && unexpected_passes.empty(); }
};

// Errors: internal where the reference cannot run a sample; otherwise what devices do is in the report.
[[nodiscard]] Result<ConformanceReport> check_conformance(std::span<Device* const> devices,
                                                          const ConformanceOptions& options);

}  // namespace shunt
