// Copies whole rows where their elements are contiguous; vector code would gain nothing.
#include <algorithm>

#include "ops/concat/concat.h"
#include "ops/kernel_arguments.h"

namespace shunt {
namespace {

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

template <class Word>
void copy_rows(const ConcatArgs& args, const CpuCall& call, bool of_b) {
  const StridedTensor& from = of_b ? args.b : args.a;
  const std::uint64_t columns = from.extents[3];
  const Range rows = share_of(valid_row_count(from, *call.parameters), call.share, call.shares);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) {
    const Word* const x = call.in<Word>(of_b ? 1 : 0) + row_offset(from, row);
    Word* const out = call.out<Word>() + concat_target(args, of_b, row);
    if (from.strides[3] == 1) {
      std::copy_n(x, columns, out);
    } else {
      for (std::uint64_t column = 0; column < columns; ++column) out[column] = x[column * from.strides[3]];
    }
  }
}

int run(const CpuCall& call) {
  const auto& args = call.args<ConcatArgs>();
  const std::uint64_t bytes = info_of(static_cast<DType>(args.a.dtype)).block_bytes;
  for (const bool of_b : {false, true}) {
    if (bytes == sizeof(std::uint32_t))
      copy_rows<std::uint32_t>(args, call, of_b);
    else if (bytes == sizeof(std::uint16_t))
      copy_rows<std::uint16_t>(args, call, of_b);
    else
      copy_rows<std::uint8_t>(args, call, of_b);
  }
  return 0;
}

}  // namespace

extern const CpuKernel concat_simd{fits_arguments, work, write_arguments<concat_arguments>, run};

}  // namespace shunt
