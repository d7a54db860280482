// The translators that ops.def names. Each is a pure function of its call but for the nodes that it adds.
#pragma once

#include "onnx/builder.h"

namespace shunt::onnx {

#define SHUNT_ONNX_OP(name, function) [[nodiscard]] Outputs function(const Call& call);
#include "onnx/ops.def"

// One output.
[[nodiscard]] inline Outputs one(Value value) {
  std::vector<Value> values;
  values.push_back(std::move(value));
  return values;
}

// x op b, where b [rows' end] is broadcast over the leading axes of x.
[[nodiscard]] Result<Value> binary(const Call& call, Op op, const Value& a, const Value& b);

}  // namespace shunt::onnx
