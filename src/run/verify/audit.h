// Compares one op's result on a device, on the numbers of a run, with the scalar reference.
//
// An op's tolerance is proved on ordinary numbers (ops/sample.h), but those of a run may be any. So a result is also
// right if inputs that differ by no more than that tolerance give it. A difference that is negligible compared with the
// inputs does not count. Only a result many times further off is wrong, so that a correct device never is. Ops are
// audited one by one, each on the inputs it really read, so that no tolerance has to cover several. Pure functions and
// plain values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ops/arithmetic.h"

namespace shunt {

// Which runs are audited, and the devices found wrong.
struct Audits {
  std::uint32_t each = 0;          // audit each run of a plan whose number is a multiple of this; 0: none
  std::vector<std::string> wrong;  // ids of devices
};

// One op of a run. Its bytes are those of its operands, from the first element on.
struct AuditedOp {
  OpCall call;
  Arithmetic arithmetic = Arithmetic::f32;  // of the device
  Parameters parameters;
  std::vector<std::vector<std::byte>> inputs;  // one per call.inputs, as they were before it ran
  std::vector<std::byte> output;
};

// Returns whether there is a reference for it: not for custom ops.
[[nodiscard]] bool can_audit(Op op);

// Audits an op; if the reference would take too long, only some rows, which differ with `turn`. Errors: internal if the
// result is wrong, with the element, the value and the expected one; those of run_reference().
[[nodiscard]] Status audit(const AuditedOp& op, std::uint32_t turn);

}  // namespace shunt
