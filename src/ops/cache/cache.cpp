#include "ops/cache/cache.h"

#include "ops/kernel_arguments.h"
#include "ops/rotary/reference.h"

namespace shunt {
namespace {

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

void write_row(const CacheArgs& args, const CpuCall& call, std::uint64_t row) {
  const StridedTensor& x = args.rotary.x;
  const std::uint64_t heads = x.extents[2];
  const std::uint64_t token = row / heads;
  const std::int32_t position = call.in<std::int32_t>(2)[token * args.table.position_stride];
  const std::int32_t sequence = call.in<std::int32_t>(3)[token * args.table.sequence_stride];
  const std::uint64_t slot = state_slot(args.table, call.in<std::int32_t>(4), sequence, position);
  if (slot == kNoSlot) return;
  const std::uint64_t target = (slot * heads + row % heads) * x.extents[3];
  const DType from = static_cast<DType>(x.dtype);
  const DType to = static_cast<DType>(args.state_dtype);
  const auto put = [&](std::uint32_t i, double value) { store_element(to, call.output, target + i, value); };
  if (args.rotates != 0) return rotate_head(args.rotary, call.inputs[1], row_offset(x, row), position, nullptr, put);
  for (std::uint32_t i = 0; i < x.extents[3]; ++i)
    put(i, load_element(from, call.inputs[1], row_offset(x, row) + std::uint64_t{i} * x.strides[3]));
}

int run(const CpuCall& call) {
  const auto& args = call.args<CacheArgs>();
  const Range share = share_of(valid_row_count(args.rotary.x, *call.parameters), call.thread, call.threads);
  for (std::uint64_t row = share.begin; row < share.end; ++row) write_row(args, call, row);
  return 0;
}

}  // namespace

CacheArgs cache_arguments(const OpCall& call) {
  CacheArgs args;
  args.rotates = call.op == Op::rotary_cache_write ? 1 : 0;
  if (args.rotates != 0)
    args.rotary = rotary_arguments(call, call.input(1), call.input(2), nullptr);
  else
    args.rotary.x = strided(call.input(1));
  args.table = page_table(call.input(0), call.input(2), call.input(3), call.input(4));
  args.state_dtype = static_cast<std::uint32_t>(call.input(0).dtype);
  return args;
}

extern const CpuKernel cache_scalar{fits_arguments, work, write_arguments<cache_arguments>, run};

}  // namespace shunt
