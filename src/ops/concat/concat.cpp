#include "ops/concat/concat.h"

#include "ops/elements.h"
#include "ops/kernel_arguments.h"

namespace shunt {
namespace {

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

void copy_rows(const ConcatArgs& args, const CpuCall& call, bool of_b) {
  const StridedTensor& from = of_b ? args.b : args.a;
  const DType dtype = static_cast<DType>(from.dtype);
  const Range rows = share_of(valid_row_count(from, *call.parameters), call.thread, call.threads);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row)
    for (std::uint64_t column = 0; column < from.extents[3]; ++column)
      store_element(dtype, call.output, concat_target(args, of_b, row) + column,
                    load_element(dtype, call.inputs[of_b ? 1 : 0], row_offset(from, row) + column * from.strides[3]));
}

int run(const CpuCall& call) {
  for (const bool of_b : {false, true}) copy_rows(call.args<ConcatArgs>(), call, of_b);
  return 0;
}

}  // namespace

ConcatArgs concat_arguments(const OpCall& call) {
  ConcatArgs args;
  args.a = strided(call.input(0));
  args.b = strided(call.input(1));
  args.axis = args.a.first_axis + call.attributes->u32(Attr::axis);
  return args;
}

extern const CpuKernel concat_scalar{fits_arguments, work, write_arguments<concat_arguments>, run};

}  // namespace shunt
