// The cases of a conformance run on one device, counted by op and dtype. `shunt verify` prints them; docs/support.json
// has a record for each kind of device. Plain values; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "base/json.h"
#include "run/verify/conformance.h"

namespace shunt {

struct CaseCounts {
  std::uint64_t passed = 0;
  std::uint64_t declined = 0;
  std::uint64_t failed = 0;  // including known failures
  double largest_error = 0;  // of the passed cases

  void add(const ConformanceTally& tally);
  [[nodiscard]] bool operator==(const CaseCounts&) const = default;
};

struct OpRecord {
  CaseCounts all;
  // A case of awkward sizes counts for each dtype of its operands and its result, except for I32 where that is an
  // index.
  std::map<DType, CaseCounts> of_dtype;
};

struct SupportRecord {
  std::string device;  // its id
  // Tells kinds of devices apart: the id for this machine's CPU, else the API and the name, "vulkan llvmpipe (LLVM
  // 15.0.6, 256 bits)".
  std::string label;
  bool emulated = false;
  std::map<Op, OpRecord> ops;
};

// Summarizes what the report says about a device; of a processor what it computes in F32, and whatever failed.
[[nodiscard]] SupportRecord support_record(const ConformanceReport& report, const Device& device);

// {"device", "label", "emulated", "ops": {OP: {"cases": [passed, declined, failed], DTYPE: the same of each}}}
[[nodiscard]] Json to_json(const SupportRecord& record);

}  // namespace shunt
