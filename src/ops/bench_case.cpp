#include "ops/bench_case.h"

#include <algorithm>

namespace shunt {
namespace {

// Skips dtypes whose blocks do not divide the embedding.
std::vector<DType> dtypes_of(const OpInfo& row, const OpSizes& sizes) {
  if (!row.rule->benches_every_weight || row.is_fused()) return {row.rule->bench_dtype};
  std::vector<DType> all;
  for (std::size_t i = 0; i < dtypes().size(); ++i)
    if (dtypes()[i].kind != DTypeKind::integer && sizes.embedding % dtypes()[i].block_elements == 0)
      all.push_back(static_cast<DType>(i));
  return all;
}

void fill_indices(BenchCase& use) {
  const auto indices_of = info_of(use.op).rule->bench_indices;
  if (indices_of == nullptr) return;
  for (std::size_t index = 0; index < use.inputs.size(); ++index) {
    BenchInput& input = use.inputs[index];
    if (input.is_absent || input.operand.dtype != DType::I32) continue;
    input.indices = indices_of(use, index);
    input.indices.modulus = std::clamp<std::uint64_t>(input.indices.modulus, 1, 1U << 31U);
  }
}

Result<BenchCase> make_case(Op op, const OpSizes& sizes, std::uint32_t rows, DType dtype) {
  BenchBuilder builder(op, sizes, rows, dtype);
  info_of(op).rule->bench(builder);
  BenchCase use = std::move(builder).finish();
  fill_indices(use);
  std::vector<const Operand*> inputs;
  for (const BenchInput& input : use.inputs) inputs.push_back(&input.operand);
  SHUNT_TRY_ASSIGN(const ResultShape result, infer(op, inputs, use.attributes));
  use.output = result.operand;
  return use;
}

}  // namespace

void BenchBuilder::add_state() {
  add(Operand::contiguous(dtype(), {pages(), sizes_.page_tokens, sizes_.kv_heads, sizes_.head_dim}, TensorKind::state));
}

void BenchBuilder::add_page_table() {
  add_indices({rows()});
  add_indices({rows()});
  add_indices({1, pages()});
}

void BenchBuilder::fill_up(const Operand& operand) {
  while (use_.inputs.size() < info_of(use_.op).required_inputs) add(operand);
}

BenchOperands::BenchOperands(const BenchCase& use) : use_(use) {
  for (const BenchInput& input : use.inputs) inputs_.push_back(input.is_absent ? nullptr : &input.operand);
}

BenchCase bench_case_of(const OpCall& call) {
  BenchCase use{.op = call.op,
                .dtype = call.output->dtype,
                .attributes = *call.attributes,
                .output = *call.output,
                .numerics = call.numerics};
  use.rows = call.output->shape[0];
  use.output.extent = Extent::fixed;
  for (const Operand* operand : call.inputs) {
    BenchInput& input = use.inputs.emplace_back();
    input.is_absent = operand == nullptr;
    if (operand == nullptr) continue;
    input.operand = *operand;
    // Rows of state are not tokens.
    if (operand->extent == Extent::tokens) use.rows = operand->shape[0];
    input.operand.extent = Extent::fixed;
    if (operand->kind == TensorKind::weight && info_of(operand->dtype).kind != DTypeKind::integer)
      use.dtype = operand->dtype;
  }
  fill_indices(use);
  return use;
}

Result<std::vector<BenchCase>> bench_cases(Op op, const OpSizes& sizes) {
  std::vector<BenchCase> cases;
  const OpInfo& row = info_of(op);
  if (!row.can_be_sampled()) return cases;
  for (const DType dtype : dtypes_of(row, sizes))
    for (const std::uint32_t rows : {1U, sizes.prompt}) {
      SHUNT_TRY_ASSIGN(BenchCase use, make_case(op, sizes, rows, dtype));
      cases.push_back(std::move(use));
    }
  return cases;
}

}  // namespace shunt
