// Shape, cost and sample rules that rows of ops.def name. Each shape rule checks its operands and answers
// what comes out; products are checked for overflow by infer() before any rule's answer is used. The sample
// rule of the same name makes operands that the shape rule takes, for conformance (ops/sample.h).
#pragma once

#include "ops/op.h"

namespace shunt {

// Rules of ops that run somewhere.
#define SHUNT_RUNNING_RULES(X) \
  X(same)                      \
  X(elementwise)               \
  X(gather)                    \
  X(matmul)                    \
  X(norm_matmul)               \
  X(rotary)                    \
  X(cache_write)               \
  X(attention)                 \
  X(matmul_experts)            \
  X(argmax)                    \
  X(top_k)                     \
  X(take)                      \
  X(reduce)                    \
  X(dot)                       \
  X(weighted_sum)              \
  X(concat)                    \
  X(copy)                      \
  X(quantize)                  \
  X(dequantize)                \
  X(conv2d)                    \
  X(pool2d)                    \
  X(resize)

namespace shape_rule {
#define SHUNT_RULE(name) Result<ResultShape> name(InputOperands inputs, const Attributes& attributes);
SHUNT_RUNNING_RULES(SHUNT_RULE)
SHUNT_RULE(custom)
SHUNT_RULE(reshape)
SHUNT_RULE(permute)
SHUNT_RULE(slice)
#undef SHUNT_RULE
}  // namespace shape_rule

namespace sample_rule {
#define SHUNT_RULE(name) void name(Sampler& sampler);
SHUNT_RUNNING_RULES(SHUNT_RULE)
#undef SHUNT_RULE
}  // namespace sample_rule
#undef SHUNT_RUNNING_RULES

namespace cost_rule {
#define SHUNT_RULE(name) Cost name(const OpCall& call);
SHUNT_RULE(rowwise)
SHUNT_RULE(gather)
SHUNT_RULE(matmul)
SHUNT_RULE(norm_matmul)
SHUNT_RULE(cache_write)
SHUNT_RULE(attention)
SHUNT_RULE(matmul_experts)
SHUNT_RULE(top_k)
SHUNT_RULE(take)
SHUNT_RULE(conv2d)
SHUNT_RULE(pool2d)
SHUNT_RULE(resize)
SHUNT_RULE(custom)
#undef SHUNT_RULE
}  // namespace cost_rule

}  // namespace shunt
