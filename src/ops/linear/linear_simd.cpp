// The SIMD linear (row_products.h). Token rows are taken in batches of kBatchRows. A program prepared for few F32 rows
// has one phase. Any other has two per batch, the first of which prepares x in the shared scratch.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "ops/kernel_arguments.h"
#include "ops/linear/row_products.h"

namespace shunt {
namespace {

struct alignas(16) LinearSimdArgs {
  LinearArgs linear;
  ProductRule rule;
};

// One batch of a call's token rows.
class LinearBatch final : public TokenRows {
 public:
  LinearBatch(const CpuCall& call, const LinearArgs& args, std::uint64_t begin)
      : call_(call), args_(args), begin_(begin) {}

  [[nodiscard]] const std::byte* x(std::size_t row) const override {
    const std::uint64_t offset = row_offset(args_.extents, args_.x_strides, begin_ + row);
    return call_.inputs[0] + offset * info_of(static_cast<DType>(args_.x_dtype)).block_bytes;
  }
  [[nodiscard]] const float* residual(std::size_t row) const override {
    if (args_.has_residual == 0) return nullptr;
    return call_.in<float>(2) + row_offset(args_.extents, args_.residual_strides, begin_ + row);
  }
  [[nodiscard]] float* out(std::size_t row) const override {
    return call_.out<float>() + row_offset(args_.extents, args_.out_strides, begin_ + row);
  }

 private:
  const CpuCall& call_;
  const LinearArgs& args_;
  std::uint64_t begin_;
};

std::string supports(const OpCall& call) {
  if (!call.input(0).has_contiguous_rows())
    return fmt::format("{}: the elements of a row of x must be neighbours", name_of(call.op));
  if (std::string reason = normalizes_refusal(call); !reason.empty()) return reason;
  return linear_refusal(call);
}

LinearSimdArgs simd_arguments(const OpCall& call) {
  const LinearArgs args = linear_args(call);
  return {.linear = args, .rule = product_rule(call, linear_capacity(args), args.k)};
}

Arithmetic arithmetic(const OpCall& call) { return arithmetic_of(simd_arguments(call).rule); }

CpuWork work(const OpCall& call, std::uint32_t) {
  const auto [args, rule] = simd_arguments(call);
  const std::uint64_t capacity = linear_capacity(args);
  const std::uint64_t rows = std::min<std::uint64_t>(capacity, kBatchRows);
  CpuWork work;
  work.thread_scratch_bytes = product_scratch(args, rule, rows);
  if (!prepares(args, rule, capacity)) return work;
  work.batch_phases = 2;
  work.phases = static_cast<std::uint32_t>(2 * std::max<std::uint64_t>(1, (capacity + kBatchRows - 1) / kBatchRows));
  work.first_phase_is_small = capacity * args.k <= kSmallElements;
  work.shared_scratch_bytes = prepared_bytes(args, rule, rows);
  return work;
}

std::uint64_t most_shares(const OpCall& call) {
  const auto [args, rule] = simd_arguments(call);
  if (linear_capacity(args) > kDotRows) return args.m / kBlockRows;
  const bool has_strips = rule.many == Arithmetic::bf16 || rule.many == Arithmetic::bf16x3;
  return args.m / (has_strips ? kBf16StripRows : kDotBlockRows);
}

bool prepares_alike(const OpCall& one_call, const OpCall& other_call) {
  if (one_call.input(0).kind == TensorKind::weight) return false;  // it may be another one
  const LinearSimdArgs one = simd_arguments(one_call);
  const LinearSimdArgs other = simd_arguments(other_call);
  const auto x = [](const LinearArgs& args) {
    return std::tuple(std::to_array(args.extents), std::to_array(args.x_strides), args.extent, args.k, args.x_dtype);
  };
  return x(one.linear) == x(other.linear) && one.rule == other.rule &&
         prepares_alike(one.rule, one_call.input(1).dtype, other_call.input(1).dtype);
}

int run(const CpuCall& call) {
  const auto& [args, rule] = call.args<LinearSimdArgs>();
  const bool prepares_first = prepares(args, rule, linear_capacity(args));
  const std::uint64_t begin = std::uint64_t{prepares_first ? call.phase / 2 : 0} * kBatchRows;
  const std::uint64_t valid = linear_rows(args, *call.parameters);
  if (begin >= valid || args.m == 0) return 0;
  const LinearBatch batch(call, args, begin);
  const RowProduct product{.tokens = batch,
                           .rows = static_cast<std::size_t>(std::min<std::uint64_t>(valid - begin, kBatchRows)),
                           .args = args,
                           .rule = rule,
                           .weight = call.inputs[1],
                           .prepared = call.shared_scratch,
                           .scratch = call.thread_scratch};
  if (prepares_first && call.phase % 2 == 0)
    prepare_rows(product, share_of(prepare_items(product), call.share, call.shares));
  else
    multiply_rows(product, share_of(args.m, call.share, call.shares, weight_grain(product)));
  return 0;
}

}  // namespace

extern const CpuKernel linear_simd;
const CpuKernel linear_simd{supports,    work,          write_arguments<simd_arguments>, run, nullptr, arithmetic,
                            most_shares, prepares_alike};

}  // namespace shunt
