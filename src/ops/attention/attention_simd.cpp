#include <algorithm>

#include "ops/attention/attention.h"
#include "ops/attention/tile.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/attention/attention_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/amx_tiles-inl.h"
#include "ops/attention/rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

bool has_matrix_tiles() { return has_amx_tiles(); }

int run(const CpuCall& call) {
  const auto& args = call.args<attention::AttentionSimdArgs>();
  tiles::Attention attention(call, args.attention);
  if (args.many == Arithmetic::f32) attention.run<tiles::NoTiles>();
#if SHUNT_HAS_AMX_TILES
  if (args.many == Arithmetic::bf16x3) attention.run<AmxTiles>();
#endif
  return 0;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shunt {
namespace {

HWY_EXPORT(has_matrix_tiles);
HWY_EXPORT(run);

Arithmetic arithmetic(const OpCall& call) {
  // The larger scores are, the more their rounding counts, so tiles are for caches beside which halves would do.
  const bool may_round = allows(call, Arithmetic::halves) && HWY_DYNAMIC_DISPATCH(has_matrix_tiles)();
  return may_round && attention::suits_matrix_tiles(call) ? Arithmetic::bf16x3 : Arithmetic::f32;
}

attention::AttentionSimdArgs simd_arguments(const OpCall& call) {
  return {.attention = attention_arguments(call), .many = arithmetic(call)};
}

CpuWork work(const OpCall& call, std::uint32_t) {
  const Shape& query = call.input(0).shape;
  const std::size_t width = attention::padded_width(query[2]);
  CpuWork work{.thread_scratch_bytes = attention::scratch_bytes(width)};
  if (attention::may_have_parts(call)) {
    work.phases = 2;
    work.shared_scratch_bytes = attention::part_results_bytes(query[1], width);
  }
  return work;
}

}  // namespace

extern const CpuKernel attention_simd{fits_attention_arguments,
                                      work,
                                      write_arguments<simd_arguments>,
                                      [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); },
                                      nullptr,
                                      arithmetic};

}  // namespace shunt
#endif
