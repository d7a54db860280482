// The translators that ops.def names. Except for the nodes that it adds, each is a pure function of its call.
#pragma once

#include "onnx/builder.h"

namespace shunt::onnx {

#define SHUNT_ONNX_OP(name, function) [[nodiscard]] Outputs function(const Call& call);
#include "onnx/ops.def"

// Returns `value` as the only output.
[[nodiscard]] inline Outputs one(Value value) {
  std::vector<Value> values;
  values.push_back(std::move(value));
  return values;
}

// Computes a op b. The smaller operand is broadcast over the leading axes of the other.
[[nodiscard]] Result<Value> binary(const Call& call, Op op, const Value& a, const Value& b);

}  // namespace shunt::onnx
