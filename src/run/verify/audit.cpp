#include "run/verify/audit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "ops/elements.h"
#include "ops/reference.h"
#include "run/verify/comparison.h"

namespace shunt {
namespace {

// A factor on the tolerance: a hundred times the distance.
constexpr double kRoom = 1e4;

// Relative to the largest number that was read.
constexpr double kNegligible = 1e-6;

// The most that the reference may compute: a fraction of a second.
constexpr double kMostAuditFlops = 1U << 28U;

// Entries of axis 0.
struct Rows {
  std::uint32_t first = 0;
  std::uint32_t count = 1;
};

// Rows counted by a step's tokens or outputs do not depend on each other if the op reads a weight or state.
Rows rows_of(const AuditedOp& op, std::uint32_t turn) {
  const Operand& output = *op.call.output;
  if (output.shape.rank() == 0) return {};
  const Rows all{.count = valid_rows(output.shape[0], output.extent, op.parameters)};
  const bool has_own_rows =
      output.extent != Extent::fixed && std::ranges::any_of(op.call.inputs, [](const Operand* input) {
        return input != nullptr && (input->kind == TensorKind::weight || input->kind == TensorKind::state);
      });
  if (!has_own_rows || all.count == 0) return all;
  const double flops_of_row = info_of(op.call.op).rule->cost(op.call).flops / output.shape[0];
  const auto count =
      static_cast<std::uint32_t>(std::clamp(kMostAuditFlops / flops_of_row, 1.0, static_cast<double>(all.count)));
  const std::uint32_t windows = (all.count + count - 1) / count;
  return {.first = std::min(turn % windows * count, all.count - count), .count = count};
}

HostTensor part_of(const Operand& operand, std::span<const std::byte> bytes, const AuditedOp& op, const Rows& rows) {
  if (operand.shape.rank() == 0) return plain_copy(operand, bytes, 0, 1);
  const bool is_counted = operand.extent != Extent::fixed && operand.extent == op.call.output->extent;
  if (is_counted) return plain_copy(operand, bytes, rows.first * operand.strides[0], rows.count);
  return plain_copy(operand, bytes, 0, valid_rows(operand.shape[0], operand.extent, op.parameters));
}

bool is_floating_value(const HostTensor& tensor) {
  return info_of(tensor.operand.dtype).kind == DTypeKind::floating && tensor.operand.kind != TensorKind::weight &&
         tensor.operand.kind != TensorKind::state;
}

Result<HostTensor> compute(const AuditedOp& op, std::span<const std::optional<HostTensor>> inputs) {
  std::vector<const HostTensor*> pointers;
  for (const auto& input : inputs) pointers.push_back(input ? &*input : nullptr);
  return run_reference(op.call.op, *op.call.attributes, pointers);
}

double largest_of(std::span<const std::optional<HostTensor>> inputs) {
  double largest = 0;
  for (const auto& input : inputs) {
    if (!input || !is_floating_value(*input)) continue;
    for (std::uint64_t index = 0; index < input->operand.shape.elements(); ++index)
      if (const double size = std::abs(load_element(input->operand.dtype, input->bytes.data(), index));
          std::isfinite(size))
        largest = std::max(largest, size);
  }
  return largest;
}

// Moves each number by `part` of it, up or down.
std::vector<std::optional<HostTensor>> moved_by(double part, std::vector<std::optional<HostTensor>> inputs) {
  std::uint32_t state = 1;
  for (auto& input : inputs) {
    if (!input || !is_floating_value(*input)) continue;
    for (std::uint64_t index = 0; index < input->operand.shape.elements(); ++index) {
      // A linear congruential generator, whose high bits count.
      state = state * 1664525U + 1013904223U;
      const double value = load_element(input->operand.dtype, input->bytes.data(), index);
      store_element(input->operand.dtype, input->bytes.data(), index,
                    value * (state >> 31U != 0 ? 1 + part : 1 - part));
    }
  }
  return inputs;
}

}  // namespace

bool can_audit(Op op) { return info_of(op).can_be_sampled(); }

Status audit(const AuditedOp& op, std::uint32_t turn) {
  const Operand& output = *op.call.output;
  const Rows rows = rows_of(op, turn);
  if (rows.count == 0) return {};
  std::vector<std::optional<HostTensor>> inputs;
  for (std::size_t index = 0; index < op.inputs.size(); ++index) {
    inputs.emplace_back();
    if (op.call.has_input(index)) inputs.back() = part_of(op.call.input(index), op.inputs[index], op, rows);
  }
  const HostTensor actual = part_of(output, op.output, op, rows);
  SHUNT_TRY_ASSIGN(const HostTensor expected, compute(op, inputs));

  const double tolerance = kRoom * tolerance_of(op.call, op.arithmetic);
  const double negligible = tolerance == 0 ? kTiny : std::max(kTiny, kNegligible * largest_of(inputs));
  const auto difference = [&](const HostTensor& result) {
    return compare(output.dtype, output.shape.columns(), expected.bytes, result.bytes, negligible);
  };
  const Comparison found = difference(actual);
  if (found.error <= tolerance) return {};
  if (tolerance > 0)
    for (const double part : {std::sqrt(tolerance), -std::sqrt(tolerance)}) {
      SHUNT_TRY_ASSIGN(const HostTensor moved, compute(op, moved_by(part, inputs)));
      if (found.error <= difference(moved).error) return {};
    }
  return fail(Code::internal,
              fmt::format("element {} of rows {} to {} is {}, not {}; normalized mean square error {:.3g}", found.worst,
                          rows.first, rows.first + rows.count - 1, found.actual, found.expected, found.error));
}

}  // namespace shunt
