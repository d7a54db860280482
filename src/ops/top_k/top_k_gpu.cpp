#include <fmt/format.h>

#include "ops/gpu_kernels.h"
#include "ops/top_k/top_k_args.h"
#include "ops/top_k/top_k_split.h"

namespace shunt {
namespace {

// The most elements that a workgroup looks at for one row: about a second's work. Drivers abort longer kernels.
constexpr std::uint64_t kMostLooks = std::uint64_t{1} << 28U;

std::string values_refusal(const OpCall& call) {
  return call.op == Op::top_values ? "top_values: this kernel finds places only" : "";
}

std::string supports(const OpCall& call) {
  const std::uint64_t k = call.attributes->u32(Attr::k);
  const std::uint64_t columns = call.input(0).shape.columns();
  if (k * columns <= kMostLooks) return {};
  return fmt::format("{}: {} of {} columns, and the shader looks at no more than {} elements for a row",
                     info_of(call.op).name, k, columns, kMostLooks);
}

// Each place found makes one invocation look for its next best column.
std::uint64_t rounds(const OpCall& call, const ShaderLimits& limits) {
  const std::uint64_t columns = call.input(0).shape.columns();
  if (limits.language == ShaderLanguage::essl300) return rounds_of_place_search(columns);
  const std::uint64_t looks = rounds_over(columns);
  return looks + call.attributes->u32(Attr::k) * (1 + looks + kRoundsOfAGroup);
}

// Up to this k, finding places one after the other takes less work than ranking all columns.
constexpr std::uint32_t kFew = 16;

std::string rank_supports(const OpCall& call) {
  if (std::string reason = values_refusal(call); !reason.empty()) return reason;
  const std::uint64_t columns = call.input(0).shape.columns();
  if (call.attributes->u32(Attr::k) <= kFew) return "top_k: k is too small for this kernel";
  if (columns * columns <= kMostLooks) return {};
  return fmt::format("top_k: {} columns, and the shader compares no more than {} pairs of a row", columns, kMostLooks);
}

std::uint64_t rank_groups(const OpCall& call) {
  return call.input(0).shape.rows() * rounds_over(call.input(0).shape.columns());
}

std::uint64_t rank_rounds(const OpCall& call, const ShaderLimits&) {
  return (call.input(0).shape.columns() / kTopKAtOnce + 1) * (std::uint64_t{1} + kTopKAtOnce);
}

constexpr ShaderKernel kShaders[] = {
    {.supports = supports, .groups = one_per_input_row, .rounds = rounds},
    {.name = "top_k_rank", .supports = rank_supports, .groups = rank_groups, .rank = 1, .rounds = rank_rounds},
};

std::string short_supports(const OpCall& call) {
  if (std::string reason = values_refusal(call); !reason.empty()) return reason;
  if (call.input(0).shape.columns() <= kTopKShortColumns && call.attributes->u32(Attr::k) <= kTopKShortPlaces)
    return {};
  return "top_k: rows are too long, or k too large, for this kernel";
}
std::uint64_t short_blocks(const OpCall& call) {
  return blocks_for_elements(call.input(0).shape.rows(), kTopKShortThreads / 32);  // a warp for each row
}

std::string split_supports(const OpCall& call) {
  const std::uint32_t columns = call.input(0).shape.columns();
  if (columns > kTopKSplitColumns || call.attributes->u32(Attr::k) > kTopKSplitPlaces)
    return "top_k: rows are too long, or k too large, for this kernel";
  return {};
}
std::uint64_t split_blocks(const OpCall& call) {
  const std::uint64_t rows = call.input(0).shape.rows();
  return rows * top_k_splits(rows);
}
std::uint64_t split_scratch_bytes(const OpCall& call) {
  const Shape& shape = call.input(0).shape;
  return shape.rows() * top_k_split_groups(shape.columns()) * sizeof(std::uint32_t);
}

constexpr CudaKernel kMoreCuda[] = {
    {.name = "top_k_split",
     .supports = split_supports,
     .blocks = split_blocks,
     .threads = threads_of_block<kTopKSplitThreads>,
     .rank = 1,
     .scratch_bytes = split_scratch_bytes},
    {.name = "top_k_short",
     .supports = short_supports,
     .blocks = short_blocks,
     .threads = threads_of_block<kTopKShortThreads>,
     .rank = 2},
};

}  // namespace

extern const GpuKernels top_k_gpu{.shaders = kShaders, .cuda = {.blocks = one_per_input_row}, .more_cuda = kMoreCuda};

}  // namespace shunt
