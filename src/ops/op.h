// The op table at run time: one OpInfo per row of ops.def, and OpCall, one concrete use of an op.
//
// Everything here is a plain value; the table is constant and may be read from any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "shunt/numerics.h"
#include "shunt/op.h"

namespace shunt {

// One op with its concrete operands. An optional input that was not given is a null pointer in `inputs`.
struct OpCall {
  Op op{};
  const Attributes* attributes = nullptr;
  std::span<const Operand* const> inputs;
  const Operand* output = nullptr;
  Numerics numerics = Numerics::exact;

  [[nodiscard]] const Operand& input(std::size_t index) const { return *inputs[index]; }
  [[nodiscard]] bool has_input(std::size_t index) const { return index < inputs.size() && inputs[index] != nullptr; }
};

// The answer of a shape rule: the result and, for a layout op, where it begins in the input's storage.
struct ResultShape {
  Operand operand;
  std::uint64_t offset = 0;  // elements from the start of the input; layout ops only
};
using InputOperands = std::span<const Operand* const>;

struct Cost {
  double flops = 0;
  double bytes_read = 0;
  double bytes_written = 0;

  [[nodiscard]] double bytes() const { return bytes_read + bytes_written; }
};
// Counts 4 flops per element of input 0, one read of each input and the write of the result.
[[nodiscard]] Cost rowwise_cost(const OpCall& call);

class SampleBuilder;  // ops/sample.h
class BenchBuilder;   // ops/bench_case.h
struct BenchCase;
struct BenchIndices;

// Everything about an op except its kernels. `extern const OpRule NAME_rule` is defined in the .cpp of its family, or
// in ops/rules.cpp if several families share it; rows of ops.def name it.
struct OpRule {
  // Checks the operands and returns the result. infer() checks products of extents for overflow.
  Result<ResultShape> (*shape)(InputOperands inputs, const Attributes& attributes);
  Cost (*cost)(const OpCall& call) = rowwise_cost;
  // Adds operands that `shape` accepts, for the conformance test. Null for layout and custom ops.
  void (*sample)(SampleBuilder& sample) = nullptr;
  // Adds the operands and attributes of a typical use, for benchmarks. Null if `sample` is.
  void (*bench)(BenchBuilder& bench) = nullptr;
  DType bench_dtype = DType::F32;     // of the operand whose dtype matters most
  bool benches_every_weight = false;  // benchmarks run once with each weight dtype
  // Returns the elements of an I32 input of a benchmark; null: zeros.
  BenchIndices (*bench_indices)(const BenchCase& use, std::size_t input) = nullptr;
};

enum class OpClass : std::uint8_t { layout, elementwise, kernel };

struct OpInfo {
  std::string_view name;
  OpClass op_class;
  std::span<const std::string_view> inputs;
  std::uint32_t required_inputs;
  std::span<const Attr> attributes;
  const OpRule* rule;
  double tolerance;
  std::string_view family;      // "" for layout ops
  std::string_view expression;  // elementwise rows
  std::string_view expansion;   // fused rows, else ""

  [[nodiscard]] bool is_fused() const { return !expansion.empty(); }
  // Returns whether the table knows what the op computes: false for layout and custom ops.
  [[nodiscard]] bool can_be_sampled() const { return rule->sample != nullptr; }
};

// One row per Op, in the order of the enum.
[[nodiscard]] std::span<const OpInfo> ops();
[[nodiscard]] const OpInfo& info_of(Op op);

// Checks count, dtypes, extents and attributes of a use of `op` and returns its result.
// Errors: invalid; the message begins with the op's name.
[[nodiscard]] Result<ResultShape> infer(Op op, InputOperands inputs, const Attributes& attributes);

// Returns the name of the kernel in the attribute `code`.
[[nodiscard]] std::string_view custom_name(const Attributes& attributes);

// Returns "linear(F32[2, 64], Q4_K[128, 64])"; a custom op is shown with its kernel's name.
[[nodiscard]] std::string to_string(const OpCall& call);

}  // namespace shunt
