#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ops/gpu_kernels.h"
#include "ops/norm/norm.h"

namespace shunt {
namespace {

std::uint64_t rounds(const OpCall& call, const ShaderLimits& limits) {
  const bool is_fragment = limits.language == ShaderLanguage::essl300;
  return is_fragment ? call.output->shape.columns() : rounds_over_rows(*call.output, 1);
}

constexpr GroupNeeds kNeeds = {.group = 256, .smallest_subgroup = 4};

std::uint32_t fours_each(const OpCall& call) {
  constexpr std::uint32_t kElements = 4 * kNeeds.group;
  return (call.output->shape.columns() + kElements - 1) / kElements;
}

// Returns why rows cannot be read four elements at a time, or an empty string.
std::string fours_refusal(const OpCall& call) {
  const auto is_f32 = [&](std::size_t input) {
    return !call.has_input(input) || call.input(input).dtype == DType::F32;
  };
  const auto is_run = [&](std::size_t input) {
    return !call.has_input(input) || call.input(input).has_contiguous_rows();
  };
  if (call.output->shape.columns() % 4 == 0 && is_f32(0) && is_run(0) &&
      (call.inputs.size() < 2 || (is_f32(1) && is_run(1))))
    return {};
  return fmt::format("{}: x is not F32 in rows of a multiple of 4 elements", name_of(call.op));
}

std::string row_supports(const OpCall& call) {
  if (fours_each(call) > kNormRowFours) return fmt::format("{}: rows are too long for this kernel", name_of(call.op));
  return fours_refusal(call);
}

Specialization row_specialization(const OpCall& call) { return {fours_each(call), 0, 0, kNeeds.group}; }

constexpr ShaderKernel kShaders[] = {
    {.groups = whole_rows, .first_pass_words = one_per_row, .rounds = rounds},
    {.name = "norm_row",
     .supports = row_supports,
     .groups = one_per_row,
     .specialization = row_specialization,
     .runs_on = offers<kNeeds>,
     .rank = 1},
};

// How threads share a row: a warp keeps up to 512 elements, a block up to 8192.
struct RowShare {
  std::uint32_t threads = 0;
  std::uint32_t fours = 0;  // of a thread, a power of two
};
RowShare row_share(const OpCall& call) {
  const std::uint32_t columns = call.output->shape.columns();
  const std::uint32_t threads = columns <= 512 ? 32 : kNormRowThreads;
  return {threads, std::bit_ceil(std::max((columns + 4 * threads - 1) / (4 * threads), 1U))};
}

std::string cuda_row_supports(const OpCall& call) {
  if (row_share(call).fours > 8) return fmt::format("{}: rows are too long for this kernel", name_of(call.op));
  return fours_refusal(call);
}
std::uint64_t cuda_row_blocks(const OpCall& call) {
  return blocks_for_elements(one_per_row(call), kNormRowThreads / row_share(call).threads);
}
std::string cuda_row_variant(const OpCall& call) {
  const auto [threads, fours] = row_share(call);
  return fmt::format("_{}_{}", threads, fours);
}

constexpr CudaKernel kMoreCuda[] = {
    {.name = "norm_row",
     .supports = cuda_row_supports,
     .blocks = cuda_row_blocks,
     .threads = threads_of_block<kNormRowThreads>,
     .variant = cuda_row_variant,
     .rank = 1,
     .shares_launch = true},
};

}  // namespace

extern const GpuKernels norm_gpu{.shaders = kShaders, .cuda = {.blocks = one_per_row}, .more_cuda = kMoreCuda};

}  // namespace shunt
