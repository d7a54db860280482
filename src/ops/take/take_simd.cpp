// Selecting a few elements of each row leaves nothing to vectorize: plain loops over the words of F32 and of the 16-bit
// types.
#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/take/take.h"

namespace shunt {
namespace {

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

template <class Word>
void take_rows(const TakeArgs& args, const CpuCall& call, Range rows) {
  const std::uint32_t columns = args.x.extents[3];
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) {
    const Word* const x = call.in<Word>(0) + row_offset(args.x, row);
    const std::int32_t* const ids = call.in<std::int32_t>(1) + row_offset(args.x.extents, args.id_strides, row);
    Word* const out = call.out<Word>() + row * args.count;
    for (std::uint64_t j = 0; j < args.count; ++j) {
      // A negative index, as an unsigned number, is beyond every row.
      const auto id = static_cast<std::uint32_t>(ids[j * args.id_strides[3]]);
      out[j] = id < columns ? x[std::uint64_t{id} * args.x.strides[3]] : Word{0};
    }
  }
}

int run(const CpuCall& call) {
  const auto& args = call.args<TakeArgs>();
  const Range rows = share_of(valid_row_count(args.x, *call.parameters), call.share, call.shares);
  if (info_of(static_cast<DType>(args.x.dtype)).block_bytes == sizeof(std::uint32_t))
    take_rows<std::uint32_t>(args, call, rows);
  else
    take_rows<std::uint16_t>(args, call, rows);
  return 0;
}

}  // namespace

extern const CpuKernel take_simd{fits_row_arguments, work, write_arguments<take_arguments>, run};

}  // namespace shunt
