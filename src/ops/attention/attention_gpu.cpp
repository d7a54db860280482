#include <fmt/format.h>

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
  if ((dtype == DType::F16 || dtype == DType::BF16) && head_dim % 8 == 0 && head_dim <= kHeadPart && head_dim != 0)
    return {};
  return "attention: its heads are not of 16 bits in eights";
}

std::uint32_t cuda_row_threads(const OpCall&) { return kAttentionRowThreads; }

// Names the dtype, and how many threads read a head in eights.
std::string cuda_row_variant(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  std::uint32_t threads = 8;
  while (threads * 8 < args.query.extents[3]) threads *= 2;
  return fmt::format("_{}_{}", name_of(static_cast<DType>(args.state_dtype)), threads);
}

constexpr CudaKernel kMoreCuda[] = {
    {.name = "attention_row",
     .supports = cuda_row_supports,
     .blocks = one_per_row,
     .threads = cuda_row_threads,
     .variant = cuda_row_variant,
     .rank = 1},
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
    {.groups = one_per_row, .first_pass_words = first_pass_words, .rounds = rounds},
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
