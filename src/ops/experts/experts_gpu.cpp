#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

#include "ops/experts/experts.h"
#include "ops/gpu_kernels.h"
#include "ops/linear/linear.h"
#include "ops/strips.h"

namespace shunt {
namespace {

std::uint64_t groups(const OpCall& call) {
  const ExpertsArgs args = experts_arguments(call);
  return std::uint64_t{args.tokens} * args.used * ((args.m + kExpertsGroupRows - 1) / kExpertsGroupRows);
}

Specialization specialization(const OpCall& call) { return {experts_arguments(call).weight_dtype}; }

std::uint64_t rounds(const OpCall& call, const ShaderLimits&) {
  return rounds_over(experts_arguments(call).k) * (1 + kExpertsGroupRows) + kRoundsOfAGroup;
}

std::uint64_t blocks(const OpCall& call) { return call.output->shape.elements(); }

// With many rows, experts_product is much faster for one weight after the other.
std::string rows_refusal(const OpCall& call) {
  return experts_arguments(call).tokens > kLinearRowXRows ? up_refusal(call) : std::string();
}

constexpr ShaderKernel kShaders[] = {
    {.supports = up_refusal, .groups = groups, .specialization = specialization, .rounds = rounds},
};

// Matrices in strips. Of few uses each is a product of its own; many are sorted by their matrices.

std::string strips_refusal(const OpCall& call) {
  const ExpertsArgs args = experts_arguments(call);
  if (!has_strips(call.input(1).dtype, args.m, args.k)) return "linear_experts: the weight cannot be in strips";
  if (args.weight_rows != args.m) return "linear_experts: there are gaps between the matrices";
  const bool is_in_fours = args.x_strides[0] % 4 == 0 && args.x_strides[1] % 4 == 0 && args.x_strides[2] == 1;
  if (!is_in_fours) return "linear_experts: x is not in rows of a multiple of 4 elements";
  if (args.has_bias != 0 && args.bias_strides[1] != 1)
    return "linear_experts: elements of a row of bias are not neighbours";
  return {};
}

// A grid has at least as many blocks as a large GPU has multiprocessors.
std::uint64_t strips_blocks(const OpCall& call) {
  const ExpertsArgs args = experts_arguments(call);
  const std::uint64_t all = experts_uses(args);
  if (all == 0) return 0;
  return all * std::clamp<std::uint64_t>(kMultiprocessors / all, 1, std::max(args.m / kStripRowsTogether, 1U));
}
LinearStripPlan plan_of(const OpCall& call) {
  return linear_strip_plan(experts_arguments(call).k, strip_shape(call.input(1).dtype), 1);
}
std::string few_strips_refusal(const OpCall& call) {
  if (std::string reason = rows_refusal(call); !reason.empty()) return reason;
  if (std::string reason = strips_refusal(call); !reason.empty()) return reason;
  return plan_of(call).is_for_row() ? std::string() : "linear_experts: x has too many columns for this kernel";
}
std::uint64_t uses(const OpCall& call) { return experts_uses(experts_arguments(call)); }
std::uint32_t strips_shared_bytes(const OpCall& call) { return plan_of(call).shared_bytes; }
std::vector<std::uint32_t> strips_constants(const OpCall& call) {
  const auto words = std::bit_cast<std::array<std::uint32_t, sizeof(LinearStripPlan) / 4>>(plan_of(call));
  return {words.begin(), words.end()};
}

std::string product_refusal(const OpCall& call) {
  if (std::string reason = up_refusal(call); !reason.empty()) return reason;
  if (std::string reason = strips_refusal(call); !reason.empty()) return reason;
  const ExpertsArgs args = experts_arguments(call);
  if (args.tokens <= kLinearRowXRows / 2) return "linear_experts: x has too few rows for this kernel";
  if (args.held > kExpertsMostHeld) return "linear_experts: there are too many matrices for this kernel";
  return {};
}
bool has_few_rows(const OpCall& call) { return experts_arguments(call).tokens <= kLinearRowXRows; }
template <bool exact>
constexpr std::uint32_t kHalves = exact ? 2 : 1;
template <bool exact>
std::uint64_t scratch_bytes(const OpCall& call) {
  const ExpertsArgs args = experts_arguments(call);
  return experts_scratch(args, linear_x_tiles_bytes(experts_most_rows(args), args.k, kHalves<exact>)).bytes;
}
template <bool exact>
std::string for_arithmetic(const OpCall&) {
  return exact ? "_exact" : "_halves";
}
std::uint64_t one_block(const OpCall&) { return 1; }
std::uint64_t x_tiles_blocks(const OpCall& call) {
  return experts_most_rows(experts_arguments(call)) / kLinearXTilesRows;
}
std::uint64_t product_blocks(const OpCall& call) {
  const ExpertsArgs args = experts_arguments(call);
  return linear_tiles(args.m, kLinearProductWeights) * experts_most_tiles(args);
}
template <bool exact>
std::string product_variant(const OpCall& call) {
  return fmt::format("{}_{}", for_arithmetic<exact>(call), experts_tile_rows(experts_arguments(call)));
}
template <bool exact>
std::uint32_t product_shared_bytes(const OpCall& call) {
  const StripChunk chunk = strip_chunk(call.input(1).dtype);
  return linear_product_shared(linear_product_strip_bytes(chunk.columns, chunk.bytes),
                               experts_tile_rows(experts_arguments(call)), kHalves<exact>);
}

// The sorted uses and the tiles of x depend on x, ids and slots, and on how many matrices there are, so gate and up
// share them.
constexpr std::uint32_t kReadBefore = 1U << 0U | 1U << 2U | 1U << 3U;
std::uint64_t held(const OpCall& call) { return experts_arguments(call).held; }
template <bool exact>
constexpr CudaKernel kSort{.name = "experts_sort",
                           .blocks = one_block,
                           .threads = threads_of_block<kExpertsSortThreads>,
                           .variant = for_arithmetic<exact>};
template <bool exact>
constexpr CudaKernel kXTiles{.name = "experts_x_tiles",
                             .blocks = x_tiles_blocks,
                             .threads = threads_of_block<kLinearXTilesThreads>,
                             .variant = for_arithmetic<exact>,
                             .before = &kSort<exact>};
template <bool exact>
constexpr CudaKernel kProduct{.name = "experts_product",
                              .supports = product_refusal,
                              .blocks = product_blocks,
                              .threads = threads_of_block<kLinearProductThreads>,
                              .variant = product_variant<exact>,
                              .rank = exact ? 2 : 3,
                              .yields = has_few_rows,
                              .weights = Layout::strips,
                              .arithmetic = exact ? Arithmetic::f32 : Arithmetic::halves,
                              .most_blocks = 1,
                              .shared_bytes = product_shared_bytes<exact>,
                              .scratch_bytes = scratch_bytes<exact>,
                              .before = &kXTiles<exact>,
                              .read_before = kReadBefore,
                              .before_depends_on = held};

constexpr CudaKernel kMoreCuda[] = {
    kProduct<true>,
    kProduct<false>,
    {.name = "experts_strips",
     .supports = few_strips_refusal,
     .blocks = strips_blocks,
     .threads = threads_of_block<kLinearStripThreads>,
     .rank = 1,
     .constants = strips_constants,
     .weights = Layout::strips,
     .most_blocks = 1,
     .shares_launch = true,
     .least_blocks = uses,
     .shared_bytes = strips_shared_bytes},
};

}  // namespace

extern const GpuKernels experts_gpu{
    .shaders = kShaders, .cuda = {.supports = rows_refusal, .blocks = blocks}, .more_cuda = kMoreCuda};

}  // namespace shunt
