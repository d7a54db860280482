// The cost rules of rules.h but for those of ops on images.
#include <algorithm>

#include "ops/custom/custom.h"
#include "ops/rules.h"

namespace shunt {
namespace cost_rule {
namespace {

double bytes(const Operand& operand) {
  const DTypeInfo& info = info_of(operand.dtype);
  return static_cast<double>(operand.shape.elements()) * info.block_bytes / info.block_elements;
}

Cost read_all_write_one(const OpCall& call) {
  Cost cost;
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (call.has_input(i)) cost.bytes_read += bytes(call.input(i));
  cost.bytes_written = bytes(*call.output);
  return cost;
}

}  // namespace

Cost rowwise(const OpCall& call) {
  Cost cost = read_all_write_one(call);
  cost.flops = 4.0 * static_cast<double>(call.input(0).shape.elements());
  return cost;
}

Cost custom(const OpCall& call) {
  Cost cost = read_all_write_one(call);
  cost.flops = kernel_of(call).flops(call);
  return cost;
}

Cost gather(const OpCall& call) {
  const Operand& x = call.input(0);
  const double written = bytes(*call.output);
  const double row_share = x.shape[0] == 0 ? 0 : static_cast<double>(call.output->shape[0]) / x.shape[0];
  return {.flops = static_cast<double>(call.output->shape.elements()),
          .bytes_read = bytes(x) * std::min(row_share, 1.0),
          .bytes_written = written};
}

Cost matmul(const OpCall& call) {
  Cost cost = read_all_write_one(call);
  cost.flops = 2.0 * static_cast<double>(call.output->shape.elements()) * call.input(0).shape.columns();
  return cost;
}

Cost norm_matmul(const OpCall& call) {
  Cost cost = matmul(call);
  cost.flops = cost.flops * static_cast<double>(call.inputs.size() - 2) + rowwise(call).flops;
  return cost;
}

Cost cache_write(const OpCall& call) {
  const double written = bytes(call.input(1));
  return {
      .flops = static_cast<double>(call.input(1).shape.elements()), .bytes_read = written, .bytes_written = written};
}

// Every token is counted against half of what the table holds of a sequence, as one that fills up has it on the way, or
// its window.
Cost attention(const OpCall& call) {
  const Operand& query = call.input(0);
  const Operand& keys = call.input(1);
  const std::uint32_t window = call.attributes->u32(Attr::window);
  double positions = std::max(static_cast<double>(call.input(5).shape[1]) * keys.shape[1] / 2, 1.0);
  if (window != 0) positions = std::min<double>(positions, window);
  const double row = static_cast<double>(keys.shape[2]) * keys.shape[3] * info_of(keys.dtype).block_bytes;
  return {.flops = 4.0 * static_cast<double>(query.shape.elements()) * positions,
          .bytes_read = bytes(query) + 2.0 * positions * row,
          .bytes_written = bytes(*call.output)};
}

// At most one matrix for each use of an expert.
Cost matmul_experts(const OpCall& call) {
  const Operand& weight = call.input(1);
  const Shape& ids = call.input(2).shape;
  const auto uses = static_cast<double>(ids.elements());
  const double share = weight.shape[0] == 0 ? 0 : std::min(1.0, uses / weight.shape[0]);
  return {.flops = 2.0 * static_cast<double>(call.output->shape.elements()) * weight.shape.columns(),
          .bytes_read = bytes(call.input(0)) + bytes(weight) * share,
          .bytes_written = bytes(*call.output)};
}

// Each index is found by going over the row.
Cost top_k(const OpCall& call) {
  Cost cost = read_all_write_one(call);
  cost.flops = static_cast<double>(call.input(0).shape.elements()) * call.attributes->u32(Attr::k);
  return cost;
}

Cost take(const OpCall& call) {
  const double written = bytes(*call.output);
  return {.flops = static_cast<double>(call.output->shape.elements()),
          .bytes_read = written + bytes(call.input(1)),
          .bytes_written = written};
}

}  // namespace cost_rule
}  // namespace shunt
