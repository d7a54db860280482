// Shape and cost rules that rows of ops.def name. Each shape rule checks its operands and answers what
// comes out; products are checked for overflow by infer() before any rule's answer is used.
#pragma once

#include "ops/op.h"

namespace shunt::shape_rule {
#define SHUNT_RULE(name) Result<ResultShape> name(InputOperands inputs, const Attributes& attributes);
SHUNT_RULE(same)
SHUNT_RULE(elementwise)
SHUNT_RULE(reshape)
SHUNT_RULE(permute)
SHUNT_RULE(slice)
SHUNT_RULE(gather)
SHUNT_RULE(matmul)
SHUNT_RULE(rotary)
SHUNT_RULE(cache_write)
SHUNT_RULE(attention)
SHUNT_RULE(argmax)
SHUNT_RULE(copy)
SHUNT_RULE(quantize)
SHUNT_RULE(dequantize)
#undef SHUNT_RULE
}  // namespace shunt::shape_rule

namespace shunt::cost_rule {
#define SHUNT_RULE(name) Cost name(const OpCall& call);
SHUNT_RULE(rowwise)
SHUNT_RULE(gather)
SHUNT_RULE(matmul)
SHUNT_RULE(cache_write)
SHUNT_RULE(attention)
#undef SHUNT_RULE
}  // namespace shunt::cost_rule
