// Experts on GPUs of compute capability 9.0: which matrix a use has, and what experts_sort leaves for the kernels after
// it.
#pragma once

#include "ops/experts/experts_args.h"
#include "ops/linear/linear_args.h"

#include "ops/bulk_copy.cuh"

namespace shunt {
namespace {

static_assert(kExpertsEight == kLinearPieceRows);

// Returns the matrix of a use, or kNoExpert. REQUIRES: wait_for_earlier_kernels() was called.
SHUNT_FUNCTION std::uint32_t slot_of_use(const CudaCall* call, std::uint32_t use) {
  const auto& args = arguments_of<ExpertsArgs>(call);
  return expert_slot(args, input_of<std::int32_t>(call, 2), input_of<std::int32_t>(call, 3), use / args.used,
                     use % args.used, [](const std::int32_t* at) { return static_cast<std::int32_t>(fresh_word(at)); });
}
// Returns how many uses this submission has.
SHUNT_FUNCTION std::uint32_t valid_uses(const CudaCall* call) {
  const auto& args = arguments_of<ExpertsArgs>(call);
  return valid_rows(args.tokens, static_cast<Extent>(args.extent), parameters_of(call)) * args.used;
}

// The sorted uses. `halves` are those of an element of x in its tiles.
template <std::uint32_t halves>
struct SortedUses {
  const CudaCall* call;
  ExpertsScratch at;

  SHUNT_FUNCTION explicit SortedUses(const CudaCall* of)
      : call(of), at(experts_scratch(args(), linear_x_tiles_bytes(experts_most_rows(args()), args().k, halves))) {}

  SHUNT_FUNCTION const ExpertsArgs& args() const { return arguments_of<ExpertsArgs>(call); }
  template <class T>
  SHUNT_FUNCTION T* scratch(std::uint64_t offset) const {
    return reinterpret_cast<T*>(call->scratch + offset);
  }
  SHUNT_FUNCTION ExpertsCounts* counts() const { return scratch<ExpertsCounts>(at.counts); }
  SHUNT_FUNCTION ExpertsTile* tile(std::uint32_t number) const { return scratch<ExpertsTile>(at.tiles) + number; }
  SHUNT_FUNCTION std::int32_t* use_of(std::uint64_t row) const { return scratch<std::int32_t>(at.uses) + row; }
  SHUNT_FUNCTION std::uint32_t* idle(std::uint32_t number) const { return scratch<std::uint32_t>(at.idle) + number; }
  SHUNT_FUNCTION float* factors() const { return scratch<float>(at.factors); }
  // The distance between pieces of neighbouring columns of x.
  SHUNT_FUNCTION std::uint32_t eights() const { return experts_most_rows(args()) / kExpertsEight; }
};

}  // namespace
}  // namespace shunt
