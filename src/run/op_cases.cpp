#include "run/op_cases.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ops/rules.h"

namespace shunt {
namespace {

constexpr std::uint32_t kPageTokens = 32;
constexpr DType kUsualWeight = DType::Q8_0;
constexpr DType kUsualState = DType::F16;

// What a shape rule's operands are made from.
struct Request {
  const OpInfo& row;
  const OpSizes& sizes;
  std::uint32_t rows;
  DType dtype;

  // Required inputs after the first, all alike.
  void repeat(OpCase& use, const Operand& operand) const {
    while (use.inputs.size() < row.required_inputs) use.inputs.push_back({operand});
  }
};

Operand values(const Shape& shape) { return Operand::contiguous(DType::F32, shape); }
Operand weight(DType dtype, const Shape& shape) { return Operand::contiguous(dtype, shape, TensorKind::weight); }
CaseInput numbers(const Shape& shape, std::uint32_t first, std::uint32_t step, std::uint32_t modulus) {
  return {Operand::contiguous(DType::I32, shape, TensorKind::input), first, step, modulus};
}

std::uint32_t pages(const OpSizes& sizes) { return (sizes.context + kPageTokens - 1) / kPageTokens; }
Operand state(const Request& request) {
  const OpSizes& sizes = request.sizes;
  return Operand::contiguous(request.dtype, {pages(sizes), kPageTokens, sizes.kv_heads, sizes.head_dim},
                             TensorKind::state);
}
// Sequences and pages: one sequence, its pages in order.
void add_page_table(const Request& request, OpCase& use) {
  use.inputs.push_back(numbers({request.rows}, 0, 0, 1));
  use.inputs.push_back(numbers({1, pages(request.sizes)}, 0, 1, pages(request.sizes)));
}
// Of tokens that follow each other.
CaseInput positions(const Request& request) { return numbers({request.rows}, 0, 1, request.sizes.context); }

void elementwise(const Request& request, OpCase& use) {
  request.repeat(use, values({request.rows, request.sizes.feed_forward}));
}

void same(const Request& request, OpCase& use) {
  use.inputs.push_back({values({request.rows, request.sizes.embedding})});
  request.repeat(use, weight(DType::F32, {request.sizes.embedding}));
}

void gather(const Request& request, OpCase& use) {
  use.inputs.push_back({weight(request.dtype, {request.sizes.vocabulary, request.sizes.embedding})});
  // A prime step spreads the rows over the whole table.
  use.inputs.push_back(numbers({request.rows}, 1, 7919, request.sizes.vocabulary));
}

void matmul(const Request& request, OpCase& use) {
  const OpSizes& sizes = request.sizes;
  use.inputs.push_back({values({request.rows, sizes.embedding})});
  use.inputs.push_back({weight(request.dtype, {sizes.feed_forward, sizes.embedding})});
  request.repeat(use, values({request.rows, sizes.feed_forward}));
}

void rotary(const Request& request, OpCase& use) {
  use.inputs.push_back({values({request.rows, request.sizes.heads, request.sizes.head_dim})});
  use.inputs.push_back(positions(request));
}

void cache_write(const Request& request, OpCase& use) {
  use.inputs.push_back({state(request)});
  use.inputs.push_back({values({request.rows, request.sizes.kv_heads, request.sizes.head_dim})});
  use.inputs.push_back(positions(request));
  add_page_table(request, use);
}

// Every token sees the whole context, which is what the cost rule counts.
void attention(const Request& request, OpCase& use) {
  use.inputs.push_back({values({request.rows, request.sizes.heads, request.sizes.head_dim})});
  use.inputs.push_back({state(request)});
  use.inputs.push_back({state(request)});
  use.inputs.push_back(numbers({request.rows}, request.sizes.context - 1, 0, request.sizes.context));
  add_page_table(request, use);
}

void argmax(const Request& request, OpCase& use) {
  use.inputs.push_back({values({request.rows, request.sizes.vocabulary})});
}

// copy and quantize
void convert(const Request& request, OpCase& use) {
  use.inputs.push_back({values({request.rows, request.sizes.embedding})});
  use.attributes.set(Attr::to, request.dtype);
}

void dequantize(const Request& request, OpCase& use) {
  use.inputs.push_back({Operand::contiguous(request.dtype, {request.rows, request.sizes.embedding})});
}

struct Rule {
  ShapeRule rule;
  void (*add_inputs)(const Request& request, OpCase& use);
  DType dtype;
};
constexpr Rule kRules[] = {
    {shape_rule::elementwise, elementwise, DType::F32},
    {shape_rule::same, same, DType::F32},
    {shape_rule::gather, gather, kUsualWeight},
    {shape_rule::matmul, matmul, kUsualWeight},
    {shape_rule::rotary, rotary, DType::F32},
    {shape_rule::cache_write, cache_write, kUsualState},
    {shape_rule::attention, attention, kUsualState},
    {shape_rule::argmax, argmax, DType::F32},
    {shape_rule::copy, convert, DType::F16},
    {shape_rule::quantize, convert, kUsualWeight},
    {shape_rule::dequantize, dequantize, kUsualWeight},
};

// Small shapes do not fill the blocks of every dtype.
std::vector<DType> dtypes_of(const OpInfo& row, const Rule& rule, const OpSizes& sizes) {
  if (rule.rule != shape_rule::matmul || row.is_fused()) return {rule.dtype};
  std::vector<DType> all;
  for (std::size_t i = 0; i < dtypes().size(); ++i)
    if (dtypes()[i].kind != DTypeKind::integer && sizes.embedding % dtypes()[i].block_elements == 0)
      all.push_back(static_cast<DType>(i));
  return all;
}

Result<OpCase> make_case(Op op, const Rule& rule, const Request& request) {
  OpCase use{.op = op, .dtype = request.dtype, .rows = request.rows};
  rule.add_inputs(request, use);
  std::vector<const Operand*> inputs;
  for (const CaseInput& input : use.inputs) inputs.push_back(&input.operand);
  SHUNT_TRY_ASSIGN(const ResultShape result, infer(op, inputs, use.attributes));
  use.output = result.operand;
  return use;
}

}  // namespace

Result<std::vector<OpCase>> op_cases(Op op, const OpSizes& sizes) {
  std::vector<OpCase> cases;
  const OpInfo& row = info_of(op);
  if (row.op_class == OpClass::layout) return cases;
  const auto rule = std::ranges::find(kRules, row.shape_rule, &Rule::rule);
  if (rule == std::end(kRules))
    return fail(Code::unsupported, fmt::format("{}: no sizes are known for operands of its shape rule", row.name));
  for (const DType dtype : dtypes_of(row, *rule, sizes))
    for (const std::uint32_t rows : {1U, sizes.prompt}) {
      SHUNT_TRY_ASSIGN(OpCase use, make_case(op, *rule, {row, sizes, rows, dtype}));
      cases.push_back(std::move(use));
    }
  return cases;
}

}  // namespace shunt
