// Concrete uses of the rows of ops.def, of the sizes that a model of the llama architecture has: what benchmarks run.
//
// Expanded from each row's shape rule, so that a new row with a known rule is measured without being listed anywhere.
// Plain values; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/op.h"

namespace shunt {

// A model's sizes, and how many tokens a prompt and its context have.
struct OpSizes {
  std::uint32_t embedding = 0;
  std::uint32_t feed_forward = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t page_tokens = 0;  // of the cache
  std::uint32_t prompt = 512;
  std::uint32_t context = 512;
};

// What an input is filled with.
struct CaseInput {
  Operand operand;
  // I32 inputs: element i is (first + i * step) % modulus; others get random numbers.
  std::uint32_t first = 0;
  std::uint32_t step = 0;
  std::uint32_t modulus = 1;
  bool is_absent = false;
};

struct OpCase {
  Op op{};
  DType dtype = DType::F32;  // of the operand whose dtype matters most: weight, state, or what x becomes
  std::uint32_t rows = 0;    // tokens: 1 as in generation, or a prompt
  Attributes attributes;
  std::vector<CaseInput> inputs;
  Operand output;
};

// A case as a call. It must outlive this, and may not be moved meanwhile.
class OpOperands {
 public:
  explicit OpOperands(const OpCase& use);
  [[nodiscard]] OpCall call() const {
    return {.op = use_.op, .attributes = &use_.attributes, .inputs = inputs_, .output = &use_.output};
  }

 private:
  const OpCase& use_;
  std::vector<const Operand*> inputs_;
};

// A use of the op on operands such as those of `call`, all entries of buckets valid; indices lead everywhere, and
// tokens see half of the context.
[[nodiscard]] OpCase case_of(const OpCall& call);

// Every dtype for matmul and a usual one for the rest, each with one row and with a prompt's. Empty for layout ops,
// which run nowhere. Errors: invalid where the sizes do not fit the op.
[[nodiscard]] Result<std::vector<OpCase>> op_cases(Op op, const OpSizes& sizes);

}  // namespace shunt
