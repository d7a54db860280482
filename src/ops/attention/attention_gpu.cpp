#include <fmt/format.h>

#include <algorithm>

#include "ops/attention/attention.h"
#include "ops/gpu_kernels.h"

namespace shunt {
namespace {

// One score for each position that a row could see.
std::uint64_t first_pass_words(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  return row_count(args.query) * args.table.sequence_pages * args.table.page_tokens;
}

// Rounds per tile of 64 positions: the product with a key, the group's largest score, and per position the elements
// that an invocation sums.
std::uint64_t rounds(const OpCall& call, const ShaderLimits& limits) {
  constexpr std::uint64_t kElements = kHeadPart / kShaderGroupSize;
  const std::uint64_t positions = visible_at_most(call);
  const std::uint64_t head_dim = call.input(0).shape.columns();
  if (limits.language == ShaderLanguage::essl300) {
    const bool has_scores = first_pass_words(call) * sizeof(float) <= limits.largest_binding_bytes;
    return has_scores ? positions + head_dim : positions * (1 + head_dim);
  }
  const std::uint64_t of_tile = 1 + head_dim + kRoundsOfAGroup + 2 * kElements + kShaderGroupSize * (1 + kElements);
  return (head_dim + kHeadPart - 1) / kHeadPart * (1 + rounds_over(positions) * of_tile + 2 * kElements);
}

std::string supports(const OpCall& call) { return blocks_refusal(call, call.input(1)); }

constexpr GroupNeeds kNeeds = {.group = 128, .smallest_subgroup = 4};

std::string row_supports(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  const std::uint32_t head_dim = args.query.extents[3];
  if (static_cast<DType>(args.state_dtype) == DType::F16 && head_dim % 8 == 0 && head_dim <= kHeadPart && head_dim != 0)
    return {};
  return "attention: the cached heads are not F16 in a multiple of 8 elements";
}

std::string cuda_row_supports(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  const std::uint32_t head_dim = args.query.extents[3];
  const auto dtype = static_cast<DType>(args.state_dtype);
  if (dtype != DType::F32 && head_dim % 8 == 0 && head_dim <= kHeadPart && head_dim != 0) return {};
  return "attention: its heads are not of 16 or 8 bits in eights";
}

// Names the dtype, and how many threads read a head in eights.
std::string cuda_row_variant(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  std::uint32_t threads = 8;
  while (threads * 8 < args.query.extents[3]) threads *= 2;
  return fmt::format("_{}_{}", name_of(static_cast<DType>(args.state_dtype)), threads);
}

// Returns why tensor cores cannot compute the call, or an empty string.
std::string tensor_core_refusal(const AttentionArgs& args) {
  constexpr std::uint32_t kHeadDims[] = {
#define SHUNT_FOR_HEAD(size) size,
#include "ops/each_head.cuh"
  };
  const auto dtype = static_cast<DType>(args.state_dtype);
  if (args.query.extents[2] == 0) return "attention: there are no heads";
  if (dtype == DType::F32) return "attention: its cache has 32 bits an element";
  if (std::ranges::find(kHeadDims, args.query.extents[3]) == std::end(kHeadDims))
    return fmt::format("attention: there is no kernel on tensor cores for heads of {}", args.query.extents[3]);
  if (static_cast<DType>(args.query.dtype) != DType::F32 || args.query.strides[3] != 1)
    return "attention: the elements of a query are not F32 neighbours";
  if (std::uint64_t{args.table.pages} * args.table.page_tokens >= ~std::uint32_t{0})
    return "attention: its cache has too many slots for this kernel";
  return {};
}

std::string head_size(const OpCall& call) { return fmt::format("{}", attention_arguments(call).query.extents[3]); }

std::string cache_variant(const OpCall& call) {
  return fmt::format("_{}", name_of(static_cast<DType>(attention_arguments(call).state_dtype)));
}

std::string split_supports(const OpCall& call) { return tensor_core_refusal(attention_arguments(call)); }
// It is for few tokens, or for no more than there are sequences, which rarely share keys.
bool has_many_tokens(const OpCall& call) {
  constexpr std::uint32_t kFewTokens = 64;
  const AttentionArgs args = attention_arguments(call);
  return args.query.extents[1] > std::max(kFewTokens, args.table.sequences);
}
std::uint64_t split_blocks(const OpCall& call) {
  const AttentionSplit split = attention_split(attention_arguments(call));
  return std::uint64_t{split.tiles} * split.splits;
}
std::uint64_t split_scratch_bytes(const OpCall& call) {
  return attention_split_scratch_bytes(attention_arguments(call));
}

// The 16-bit numbers whose sum a query is. One BF16 number would have too few bits even where rounding is allowed.
template <bool exact>
std::uint32_t tile_parts(const AttentionArgs& args) {
  return (static_cast<DType>(args.state_dtype) == DType::BF16 ? 2U : 1U) + (exact ? 1U : 0U);
}
template <bool exact>
std::string tile_supports(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  if (exact && static_cast<DType>(args.state_dtype) == DType::Q8_0)
    return "attention: blocks become halves in this kernel";
  if (std::string reason = tensor_core_refusal(args); !reason.empty()) return reason;
  const std::uint32_t heads = args.query.extents[2] / args.kv_heads;
  if (heads > attention_tile(args.query.extents[3], tile_parts<exact>(args)).rows())
    return "attention: too many heads share a key head";
  return {};
}
template <bool exact>
std::uint64_t tile_blocks(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  return attention_tile_blocks(args, tile_parts<exact>(args));
}
template <bool exact>
std::uint32_t tile_threads(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  return attention_tile(args.query.extents[3], tile_parts<exact>(args)).threads();
}
template <bool exact>
std::string tile_variant(const OpCall& call) {
  return cache_variant(call) + (exact ? "_exact" : "_halves");
}
template <bool exact>
std::uint32_t tile_shared_bytes(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  return attention_tile_shared_bytes(args.query.extents[3], tile_parts<exact>(args));
}

constexpr CudaKernel kMoreCuda[] = {
    {.name = "attention_row",
     .supports = cuda_row_supports,
     .blocks = one_per_row,
     .threads = threads_of_block<kAttentionRowThreads>,
     .variant = cuda_row_variant,
     .rank = 1},
    {.name = "attention_tile",
     .supports = tile_supports<true>,
     .blocks = tile_blocks<true>,
     .threads = tile_threads<true>,
     .variant = tile_variant<true>,
     .part = head_size,
     .rank = 2,
     .shared_bytes = tile_shared_bytes<true>},
    {.name = "attention_tile",
     .supports = tile_supports<false>,
     .blocks = tile_blocks<false>,
     .threads = tile_threads<false>,
     .variant = tile_variant<false>,
     .part = head_size,
     .rank = 3,
     .arithmetic = Arithmetic::halves,
     .shared_bytes = tile_shared_bytes<false>},
    {.name = "attention_split",
     .supports = split_supports,
     .blocks = split_blocks,
     .threads = threads_of_block<kAttentionSplitThreads>,
     .variant = cache_variant,
     .part = head_size,
     .rank = 4,
     .yields = has_many_tokens,
     .scratch_bytes = split_scratch_bytes},
};

Specialization row_specialization(const OpCall& call) { return {call.input(0).shape.columns(), 0, 0, kNeeds.group}; }

// Rounds per tile, which has one position per invocation: the results of the subgroups, and the positions, at least
// four at a time.
std::uint64_t row_rounds(const OpCall& call, const ShaderLimits&) {
  constexpr std::uint64_t kParts = kNeeds.group / kNeeds.smallest_subgroup;
  constexpr std::uint64_t kOfTile = 1 + 2 * kParts;
  return (visible_at_most(call) / kNeeds.group + 1) * kOfTile + kParts + kNeeds.group;
}

constexpr ShaderKernel kShaders[] = {
    {.supports = supports, .groups = one_per_row, .first_pass_words = first_pass_words, .rounds = rounds},
    {.name = "attention_row",
     .supports = row_supports,
     .groups = one_per_row,
     .specialization = row_specialization,
     .runs_on = offers<kNeeds>,
     .rank = 1,
     .rounds = row_rounds},
};

}  // namespace

extern const GpuKernels attention_gpu{.shaders = kShaders, .cuda = {.blocks = one_per_row}, .more_cuda = kMoreCuda};

}  // namespace shunt
