#include "run/measure/op_cases.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "ops/rules.h"

namespace shunt {
namespace {

constexpr DType kUsualWeight = DType::Q8_0;
constexpr DType kUsualState = DType::F16;
// Experts of a layer, and how many a token uses.
constexpr std::uint32_t kExperts = 8;
constexpr std::uint32_t kUsedExperts = 2;
// Sides of an image and its channels.
constexpr std::uint32_t kPixels = 14;
constexpr std::uint32_t kChannels = 32;

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
CaseInput numbers(const Shape& shape) { return {Operand::contiguous(DType::I32, shape, TensorKind::input)}; }

std::uint32_t pages(const OpSizes& sizes) { return (sizes.context + sizes.page_tokens - 1) / sizes.page_tokens; }
Operand state(const Request& request) {
  const OpSizes& sizes = request.sizes;
  return Operand::contiguous(request.dtype, {pages(sizes), sizes.page_tokens, sizes.kv_heads, sizes.head_dim},
                             TensorKind::state);
}
// Positions, sequences and pages: one sequence.
void add_places(const Request& request, OpCase& use) {
  use.inputs.push_back(numbers({request.rows}));
  use.inputs.push_back(numbers({request.rows}));
  use.inputs.push_back(numbers({1, pages(request.sizes)}));
}

namespace add_inputs {

void elementwise(const Request& request, OpCase& use) {
  request.repeat(use, values({request.rows, request.sizes.feed_forward}));
}

void same(const Request& request, OpCase& use) {
  use.inputs.push_back({values({request.rows, request.sizes.embedding})});
  request.repeat(use, weight(DType::F32, {request.sizes.embedding}));
}

void gather(const Request& request, OpCase& use) {
  use.inputs.push_back({weight(request.dtype, {request.sizes.vocabulary, request.sizes.embedding})});
  use.inputs.push_back(numbers({request.rows}));
}

void matmul(const Request& request, OpCase& use) {
  const OpSizes& sizes = request.sizes;
  use.inputs.push_back({values({request.rows, sizes.embedding})});
  use.inputs.push_back({weight(request.dtype, {sizes.feed_forward, sizes.embedding})});
  request.repeat(use, values({request.rows, sizes.feed_forward}));
}

void norm_matmul(const Request& request, OpCase& use) {
  const OpSizes& sizes = request.sizes;
  const Operand matrix = weight(request.dtype, {sizes.feed_forward, sizes.embedding});
  use.inputs.push_back({values({request.rows, sizes.embedding})});
  use.inputs.push_back({matrix});
  use.inputs.push_back({weight(DType::F32, {sizes.embedding})});
  request.repeat(use, matrix);
}

void rotary(const Request& request, OpCase& use) {
  use.inputs.push_back({values({request.rows, request.sizes.heads, request.sizes.head_dim})});
  use.inputs.push_back(numbers({request.rows}));
}

void cache_write(const Request& request, OpCase& use) {
  use.inputs.push_back({state(request)});
  use.inputs.push_back({values({request.rows, request.sizes.kv_heads, request.sizes.head_dim})});
  add_places(request, use);
}

void attention(const Request& request, OpCase& use) {
  use.inputs.push_back({values({request.rows, request.sizes.heads, request.sizes.head_dim})});
  use.inputs.push_back({state(request)});
  use.inputs.push_back({state(request)});
  add_places(request, use);
}

void matmul_experts(const Request& request, OpCase& use) {
  const OpSizes& sizes = request.sizes;
  use.inputs.push_back({values({request.rows, 1, sizes.embedding})});
  use.inputs.push_back({weight(request.dtype, {kExperts, sizes.feed_forward, sizes.embedding})});
  use.inputs.push_back(numbers({request.rows, kUsedExperts}));
}

void top_k(const Request& request, OpCase& use) {
  use.inputs.push_back({values({request.rows, request.sizes.embedding})});
  use.attributes.set(Attr::k, std::min(kExperts, request.sizes.embedding));
}

void take(const Request& request, OpCase& use) {
  use.inputs.push_back({values({request.rows, request.sizes.embedding})});
  use.inputs.push_back(numbers({request.rows, kExperts}));
}

// reduce and dot
void rows(const Request& request, OpCase& use) { request.repeat(use, values({request.rows, request.sizes.embedding})); }

void weighted_sum(const Request& request, OpCase& use) {
  use.inputs.push_back({values({request.rows, kUsedExperts, request.sizes.embedding})});
  use.inputs.push_back({values({request.rows, kUsedExperts})});
}

Operand image(const Request& request) { return values({request.rows, kChannels, kPixels, kPixels}); }

void conv2d(const Request& request, OpCase& use) {
  use.inputs.push_back({image(request)});
  use.inputs.push_back({weight(DType::F32, {kChannels, kChannels, 3, 3})});
  use.attributes.set(Attr::padding, Shape{1, 1});
}

void pool2d(const Request& request, OpCase& use) {
  use.inputs.push_back({image(request)});
  use.attributes.set(Attr::kernel, Shape{2, 2});
  use.attributes.set(Attr::stride, Shape{2, 2});
}

void resize(const Request& request, OpCase& use) {
  use.inputs.push_back({image(request)});
  use.attributes.set(Attr::size, Shape{2 * kPixels, 2 * kPixels});
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

}  // namespace add_inputs

struct Rule {
  void (*add_inputs)(const Request& request, OpCase& use) = nullptr;
  DType dtype = DType::F32;
};
// By the names of the shape rules, so that a row of ops.def without sizes to measure does not compile.
namespace case_rule {
constexpr Rule elementwise() { return {add_inputs::elementwise, DType::F32}; }
constexpr Rule same() { return {add_inputs::same, DType::F32}; }
constexpr Rule gather() { return {add_inputs::gather, kUsualWeight}; }
constexpr Rule matmul() { return {add_inputs::matmul, kUsualWeight}; }
constexpr Rule norm_matmul() { return {add_inputs::norm_matmul, kUsualWeight}; }
constexpr Rule rotary() { return {add_inputs::rotary, DType::F32}; }
constexpr Rule cache_write() { return {add_inputs::cache_write, kUsualState}; }
constexpr Rule attention() { return {add_inputs::attention, kUsualState}; }
constexpr Rule matmul_experts() { return {add_inputs::matmul_experts, kUsualWeight}; }
constexpr Rule top_k() { return {add_inputs::top_k, DType::F32}; }
constexpr Rule take() { return {add_inputs::take, DType::F32}; }
constexpr Rule reduce() { return {add_inputs::rows, DType::F32}; }
constexpr Rule dot() { return {add_inputs::rows, DType::F32}; }
constexpr Rule weighted_sum() { return {add_inputs::weighted_sum, DType::F32}; }
constexpr Rule concat() { return {add_inputs::rows, DType::F32}; }
constexpr Rule conv2d() { return {add_inputs::conv2d, DType::F32}; }
constexpr Rule pool2d() { return {add_inputs::pool2d, DType::F32}; }
constexpr Rule resize() { return {add_inputs::resize, DType::F32}; }
constexpr Rule argmax() { return {add_inputs::argmax, DType::F32}; }
constexpr Rule copy() { return {add_inputs::convert, DType::F16}; }
constexpr Rule quantize() { return {add_inputs::convert, kUsualWeight}; }
constexpr Rule dequantize() { return {add_inputs::dequantize, kUsualWeight}; }
}  // namespace case_rule

// One per op.
constexpr Rule kRules[] = {
#define SHUNT_OP(name, inputs, required, attributes, shape_rule, cost_rule, tolerance, family) case_rule::shape_rule(),
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) case_rule::elementwise(),
#define SHUNT_LAYOUT_OP(name, inputs, attributes, shape_rule) {},
#define SHUNT_CUSTOM(name, inputs, required, attributes, shape_rule, cost_rule, family) {},
#include "ops/ops.def"
};

// Small shapes do not fill the blocks of every dtype.
std::vector<DType> dtypes_of(const OpInfo& row, const Rule& rule, const OpSizes& sizes) {
  if (row.shape_rule != shape_rule::matmul || row.is_fused()) return {rule.dtype};
  std::vector<DType> all;
  for (std::size_t i = 0; i < dtypes().size(); ++i)
    if (dtypes()[i].kind != DTypeKind::integer && sizes.embedding % dtypes()[i].block_elements == 0)
      all.push_back(static_cast<DType>(i));
  return all;
}

// The indices in an input of I32, by what the op looks up with them.
void fill_indices(OpCase& use, std::size_t index) {
  const ShapeRule rule = info_of(use.op).shape_rule;
  const auto shape_of = [&](std::size_t input) -> const Shape& { return use.inputs[input].operand.shape; };
  const auto fill = [&](std::uint32_t first, std::uint32_t step, std::uint64_t modulus) {
    CaseInput& input = use.inputs[index];
    std::tie(input.first, input.step) = std::pair(first, step);
    input.modulus = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(modulus, 1, 1U << 31U));
  };
  // A prime step spreads rows over a whole table.
  constexpr std::uint32_t kPrime = 7919;
  const bool is_attention = rule == shape_rule::attention;
  if (is_attention || rule == shape_rule::cache_write) {
    const Shape& cache = shape_of(is_attention ? 1 : 0);
    const std::uint64_t context = std::uint64_t{cache[0]} * cache[1];
    const std::size_t positions = is_attention ? 3 : 2;
    // Of cached tokens that follow each other; each token that looks at them sees half, which is what its cost counts.
    if (index == positions)
      return is_attention ? fill(static_cast<std::uint32_t>(std::max<std::uint64_t>(context / 2, 1) - 1), 0, context)
                          : fill(0, 1, context);
    if (index == positions + 2) return fill(0, 1, cache[0]);
  }
  if (rule == shape_rule::gather) fill(1, kPrime, shape_of(0)[0]);
  if (rule == shape_rule::rotary) fill(0, 1, shape_of(1)[0]);
  if (rule == shape_rule::matmul_experts) fill(1, 3, shape_of(1)[0]);
  if (rule == shape_rule::take) fill(1, kPrime, shape_of(0)[shape_of(0).rank() - 1]);
}

void fill_indices(OpCase& use) {
  for (std::size_t index = 0; index < use.inputs.size(); ++index)
    if (!use.inputs[index].is_absent && use.inputs[index].operand.dtype == DType::I32) fill_indices(use, index);
}

Result<OpCase> make_case(Op op, const Rule& rule, const Request& request) {
  OpCase use{.op = op, .dtype = request.dtype, .rows = request.rows};
  rule.add_inputs(request, use);
  fill_indices(use);
  std::vector<const Operand*> inputs;
  for (const CaseInput& input : use.inputs) inputs.push_back(&input.operand);
  SHUNT_TRY_ASSIGN(const ResultShape result, infer(op, inputs, use.attributes));
  use.output = result.operand;
  return use;
}

}  // namespace

OpOperands::OpOperands(const OpCase& use) : use_(use) {
  for (const CaseInput& input : use.inputs) inputs_.push_back(input.is_absent ? nullptr : &input.operand);
}

OpCase case_of(const OpCall& call) {
  OpCase use{.op = call.op, .dtype = call.output->dtype, .attributes = *call.attributes, .output = *call.output};
  use.rows = call.output->shape[0];
  use.output.extent = Extent::fixed;
  for (const Operand* operand : call.inputs) {
    CaseInput& input = use.inputs.emplace_back();
    input.is_absent = operand == nullptr;
    if (operand == nullptr) continue;
    input.operand = *operand;
    // Those of state are not those of tokens.
    if (operand->extent == Extent::tokens) use.rows = operand->shape[0];
    input.operand.extent = Extent::fixed;
    if (operand->kind == TensorKind::weight && info_of(operand->dtype).kind != DTypeKind::integer)
      use.dtype = operand->dtype;
  }
  fill_indices(use);
  return use;
}

Result<std::vector<OpCase>> op_cases(Op op, const OpSizes& sizes) {
  std::vector<OpCase> cases;
  const OpInfo& row = info_of(op);
  if (row.sample_rule == nullptr) return cases;
  const Rule& rule = kRules[static_cast<std::size_t>(op)];
  for (const DType dtype : dtypes_of(row, rule, sizes))
    for (const std::uint32_t rows : {1U, sizes.prompt}) {
      SHUNT_TRY_ASSIGN(OpCase use, make_case(op, rule, {row, sizes, rows, dtype}));
      cases.push_back(std::move(use));
    }
  return cases;
}

}  // namespace shunt
