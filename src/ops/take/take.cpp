#include "ops/take/take.h"

#include <algorithm>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"

namespace shunt {
namespace {

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

int run(const CpuCall& call) {
  const auto& args = call.args<TakeArgs>();
  const DType dtype = static_cast<DType>(args.x.dtype);
  const Range share = share_of(valid_row_count(args.x, *call.parameters), call.thread, call.threads);
  for (std::uint64_t row = share.begin; row < share.end; ++row) {
    const std::uint64_t begin = row_offset(args.x, row);
    const std::int32_t* const ids = call.in<std::int32_t>(1) + row_offset(args.x.extents, args.id_strides, row);
    for (std::uint64_t j = 0; j < args.count; ++j) {
      const std::int32_t id = ids[j * args.id_strides[3]];
      const bool there = id >= 0 && static_cast<std::uint32_t>(id) < args.x.extents[3];
      store_element(dtype, call.output, row * args.count + j,
                    there ? load_element(dtype, call.inputs[0],
                                         begin + std::uint64_t{static_cast<std::uint32_t>(id)} * args.x.strides[3])
                          : 0);
    }
  }
  return 0;
}

}  // namespace

TakeArgs take_arguments(const OpCall& call) {
  TakeArgs args;
  args.x = strided(call.input(0));
  std::ranges::copy(strided_like(call.input(1), call.input(0)).strides, args.id_strides);
  args.count = call.input(1).shape.columns();
  return args;
}

extern const CpuKernel take_scalar{fits_row_arguments, work, write_arguments<take_arguments>, run};

}  // namespace shunt
