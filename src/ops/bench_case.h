// The uses of each op that benchmarks run, with the sizes of a model of the llama architecture.
//
// The rule of an op (ops/op.h) adds the operands, so a new row is measured without being listed anywhere. Plain
// values; any thread.
#pragma once

#include <cstdint>
#include <vector>

#include "ops/op.h"

namespace shunt {

// A model's sizes, and the number of tokens in a prompt and its context.
struct OpSizes {
  std::uint32_t embedding = 0;
  std::uint32_t feed_forward = 0;
  std::uint32_t heads = 0;
  std::uint32_t kv_heads = 0;
  std::uint32_t head_dim = 0;
  std::uint32_t vocabulary = 0;
  std::uint32_t page_tokens = 0;  // of the KV cache
  std::uint32_t prompt = 512;
  std::uint32_t context = 512;
};

// Element i of an I32 input is (first + i * step) % modulus.
struct BenchIndices {
  std::uint64_t first = 0;
  std::uint32_t step = 0;
  std::uint64_t modulus = 1;
};
// A prime step spreads rows over a whole table.
inline constexpr std::uint32_t kBenchStep = 7919;

struct BenchInput {
  Operand operand;
  BenchIndices indices;  // of I32 inputs; others get random numbers
  bool is_absent = false;
};

struct BenchCase {
  Op op{};
  DType dtype = DType::F32;  // of the operand whose dtype matters most: weight, state or converted x
  std::uint32_t rows = 0;    // tokens: 1 as in decode, or a prompt
  Attributes attributes;
  std::vector<BenchInput> inputs;
  Operand output;
  Numerics numerics = Numerics::exact;

  [[nodiscard]] const Shape& shape(std::size_t input) const { return inputs[input].operand.shape; }
};

// The operands of a case as an OpCall. The case must outlive this and must not move.
class BenchOperands {
 public:
  explicit BenchOperands(const BenchCase& use);
  [[nodiscard]] OpCall call() const {
    return {.op = use_.op,
            .attributes = &use_.attributes,
            .inputs = inputs_,
            .output = &use_.output,
            .numerics = use_.numerics};
  }

 private:
  const BenchCase& use_;
  std::vector<const Operand*> inputs_;
};

// The experts of a layer, and how many of them a token uses.
inline constexpr std::uint32_t kBenchExperts = 8;
inline constexpr std::uint32_t kBenchUsedExperts = 2;

// Collects the operands of a case; OpRule::bench adds them.
class BenchBuilder {
 public:
  BenchBuilder(Op op, const OpSizes& sizes, std::uint32_t rows, DType dtype)
      : sizes_(sizes), use_{.op = op, .dtype = dtype, .rows = rows} {}

  [[nodiscard]] const OpSizes& sizes() const { return sizes_; }
  [[nodiscard]] std::uint32_t rows() const { return use_.rows; }
  [[nodiscard]] DType dtype() const { return use_.dtype; }

  [[nodiscard]] static Operand values(const Shape& shape) { return Operand::contiguous(DType::F32, shape); }
  [[nodiscard]] static Operand weight(DType dtype, const Shape& shape) {
    return Operand::contiguous(dtype, shape, TensorKind::weight);
  }

  // Adds the next input.
  void add(const Operand& operand) { use_.inputs.push_back({.operand = operand}); }
  void add_values(const Shape& shape) { add(values(shape)); }
  void add_indices(const Shape& shape) { add(Operand::contiguous(DType::I32, shape, TensorKind::input)); }
  // Adds keys or values of the KV cache, of dtype(): [pages, page_tokens, kv_heads, head_dim].
  void add_state();
  // Adds the positions, sequences and pages of one sequence.
  void add_page_table();
  // Adds `operand` until every required input is given.
  void fill_up(const Operand& operand);
  void set(Attr attr, AttributeValue value) { use_.attributes.set(attr, std::move(value)); }

  [[nodiscard]] BenchCase finish() && { return std::move(use_); }

 private:
  [[nodiscard]] std::uint32_t pages() const { return (sizes_.context + sizes_.page_tokens - 1) / sizes_.page_tokens; }

  const OpSizes& sizes_;
  BenchCase use_;
};

// Returns a use of the op on operands like those of `call`, in its numerics, with all entries of buckets valid. Indices
// spread over all that they can address, and tokens see half of the context.
[[nodiscard]] BenchCase bench_case_of(const OpCall& call);

// Returns cases with every weight dtype for linear and a typical one for other ops. Each has a case with one row and
// one with the rows of a prompt. Empty for layout and custom ops. Errors: invalid if the sizes do not fit the op.
[[nodiscard]] Result<std::vector<BenchCase>> bench_cases(Op op, const OpSizes& sizes);

}  // namespace shunt
