// Holds what a device made of one op, on the numbers of a run, against the scalar reference.
//
// The tolerance of an op's row is proved on ordinary numbers (ops/sample.h), and those of a run may be any: a result is
// also right if it is that of inputs which differ by no more than that tolerance, and a difference that is next to
// nothing beside the inputs counts as none. Only what is many times further off is wrong, so that a right device never
// is. Ops are taken one by one, each on what it really read, so that no tolerance has to speak of several.
// Pure functions and plain values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ops/op.h"

namespace shunt {

// Whose ops are audited, and what came of it.
struct Audits {
  std::uint32_t each = 0;          // of the runs of a plan, each of that number; 0: none
  std::vector<std::string> wrong;  // ids of devices
};

// One op of a run: its bytes are those of its operands, from their first element on.
struct AuditedOp {
  OpCall call;
  Parameters parameters;
  std::vector<std::vector<std::byte>> inputs;  // one per call.inputs, as they were before it ran
  std::vector<std::byte> output;
};

// Whether there is a reference for it: not for what the caller computes.
[[nodiscard]] bool can_audit(Op op);

// Of what takes too long for the reference, some rows, which differ with `turn`. Errors: internal where the result is
// wrong, with the element, the value and the one wanted; those of run_reference().
[[nodiscard]] Status audit(const AuditedOp& op, std::uint32_t turn);

}  // namespace shunt
