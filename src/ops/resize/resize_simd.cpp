// Interpolates between whole rows in F32, then between columns by index. The compiler vectorizes what little there is.
#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/resize/resize.h"

namespace shunt {
namespace {

// The scratch holds one row, interpolated between two of x, in F32.
CpuWork work(const OpCall& call, std::uint32_t) {
  return {.phases = 1,
          .shared_scratch_bytes = 0,
          .thread_scratch_bytes = std::uint64_t{call.input(0).shape[3]} * sizeof(float)};
}

float mixed(float a, float b, float share) { return share == 0 ? a : a + (b - a) * share; }

// Interpolates between two rows of x.
void mix_rows(const ResizeArgs& args, const CpuCall& call, std::uint64_t begin, const Between& y, float* out) {
  const DType dtype = static_cast<DType>(args.x.dtype);
  const std::uint64_t first = begin + y.first * args.x.strides[2];
  const std::uint64_t second = begin + y.second * args.x.strides[2];
  const auto share = static_cast<float>(y.share);
  for (std::uint64_t i = 0; i < args.x.extents[3]; ++i)
    out[i] = mixed(static_cast<float>(load_element(dtype, call.inputs[0], first + i * args.x.strides[3])),
                   static_cast<float>(load_element(dtype, call.inputs[0], second + i * args.x.strides[3])), share);
}

int run(const CpuCall& call) {
  const auto& args = call.args<ResizeArgs>();
  const DType dtype = static_cast<DType>(args.x.dtype);
  const std::uint64_t channels = args.x.extents[1];
  const std::uint64_t images = valid_rows(args.x.entries, static_cast<Extent>(args.x.extent), *call.parameters);
  const Range rows = share_of(images * channels * args.size[0], call.share, call.shares);
  auto* const line = reinterpret_cast<float*>(call.thread_scratch);
  for (std::uint64_t row = rows.begin; row < rows.end; ++row) {
    const std::uint64_t plane = row / args.size[0];
    const std::uint64_t begin = plane / channels * args.x.strides[0] + plane % channels * args.x.strides[1];
    mix_rows(args, call, begin, resize_place(args, 0, row % args.size[0]), line);
    for (std::uint64_t column = 0; column < args.size[1]; ++column) {
      const Between x = resize_place(args, 1, column);
      const float value = mixed(line[x.first], line[x.second], static_cast<float>(x.share));
      store_element(dtype, call.output, row * args.size[1] + column, static_cast<double>(value));
    }
  }
  return 0;
}

}  // namespace

extern const CpuKernel resize_simd{fits_arguments, work, write_arguments<resize_arguments>, run};

}  // namespace shunt
