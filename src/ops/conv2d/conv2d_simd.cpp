// A row of the result for several filters at a time: each element of the kernel adds its weight times a run of a row of
// x, which the filters share.
#include <algorithm>

#include "ops/conv2d/conv2d.h"
#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"

#ifndef SHUNT_OPS_CONV2D_ONCE
#define SHUNT_OPS_CONV2D_ONCE
namespace shunt {
// Filters that share what is read of x.
inline constexpr std::size_t kConvFilters = 4;
}  // namespace shunt
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/conv2d/conv2d_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// sums += weight * x
void add_run(const float* HWY_RESTRICT x, float weight, std::size_t elements, float* HWY_RESTRICT sums) {
  const Floats d;
  const auto weights = hn::Set(d, weight);
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d))
    hn::StoreU(hn::MulAdd(hn::LoadU(d, x + i), weights, hn::LoadU(d, sums + i)), d, sums + i);
  for (; i < elements; ++i) sums[i] += x[i] * weight;
}

class Convolution {
 public:
  explicit Convolution(const CpuCall& call)
      : call_(call),
        args_(call.args<Conv2dArgs>()),
        width_(args_.out[1]),
        sums_(reinterpret_cast<float*>(call.thread_scratch)),
        run_(sums_ + kConvFilters * width_),
        row_(run_ + width_) {}

  void run() {
    const std::uint64_t images = valid_rows(args_.x.entries, static_cast<Extent>(args_.x.extent), *call_.parameters);
    const std::uint64_t filters = args_.filters / args_.groups;
    const std::uint64_t blocks = (filters + kConvFilters - 1) / kConvFilters;
    const Range items = share_of(images * args_.groups * blocks * args_.out[0], call_.thread, call_.threads);
    for (std::uint64_t item = items.begin; item < items.end; ++item) {
      const std::uint64_t y = item % args_.out[0];
      const std::uint64_t block = item / args_.out[0] % blocks;
      const std::uint64_t group = item / args_.out[0] / blocks % args_.groups;
      const std::uint64_t image = item / args_.out[0] / blocks / args_.groups;
      const std::uint64_t first = block * kConvFilters;
      convolve(image, group, {group * filters + first, group * filters + std::min(filters, first + kConvFilters)}, y);
    }
  }

 private:
  void convolve(std::uint64_t image, std::uint64_t group, Range filters, std::uint64_t y) {
    for (std::uint64_t filter = filters.begin; filter < filters.end; ++filter)
      std::fill_n(sums_ + (filter - filters.begin) * width_, width_, bias(filter));
    for (std::uint64_t channel = 0; channel < args_.channels; ++channel)
      for (std::uint64_t i = 0; i < args_.kernel[0]; ++i) {
        // Before the first row the difference wraps around and is beyond the last.
        const std::uint64_t row = y * args_.stride[0] + i * args_.dilation[0] - args_.padding[0];
        if (row >= args_.x.extents[2]) continue;
        const std::uint64_t begin = image * args_.x.strides[0] +
                                    (group * args_.channels + channel) * args_.x.strides[1] + row * args_.x.strides[2];
        const float* x = floats_of(static_cast<DType>(args_.x.dtype), call_.inputs[0], begin, args_.x.strides[3],
                                   args_.x.extents[3], row_);
        for (std::uint64_t j = 0; j < args_.kernel[1]; ++j) add_column(filters, channel, i, j, x);
      }
    store(image, filters, y);
  }

  // Element [i, j] of the kernel over a whole row.
  void add_column(Range filters, std::uint64_t channel, std::uint64_t i, std::uint64_t j, const float* x) {
    const std::uint64_t stride = args_.stride[1];
    const std::uint64_t shift = j * args_.dilation[1];
    const std::uint64_t padding = args_.padding[1];
    // The places of the kernel where its element lies on x: shift + place * stride - padding is from 0 to the width.
    const std::uint64_t begin = shift >= padding ? 0 : (padding - shift + stride - 1) / stride;
    const std::uint64_t beyond = args_.x.extents[3] + padding;
    const std::uint64_t end =
        shift >= beyond ? 0 : std::min<std::uint64_t>(width_, (beyond - shift + stride - 1) / stride);
    if (begin >= end) return;
    const float* from = x + (shift + begin * stride - padding);
    if (stride != 1) {
      for (std::uint64_t n = 0; n < end - begin; ++n) run_[n] = from[n * stride];
      from = run_;
    }
    for (std::uint64_t filter = filters.begin; filter < filters.end; ++filter)
      add_run(from, weight(filter, channel, i, j), end - begin, sums_ + (filter - filters.begin) * width_ + begin);
  }

  void store(std::uint64_t image, Range filters, std::uint64_t y) {
    const DType dtype = static_cast<DType>(args_.x.dtype);
    for (std::uint64_t filter = filters.begin; filter < filters.end; ++filter) {
      const std::uint64_t row = (image * args_.filters + filter) * args_.out[0] + y;
      narrow_row(dtype, sums_ + (filter - filters.begin) * width_, width_,
                 call_.output + row * width_ * info_of(dtype).block_bytes);
    }
  }

  [[nodiscard]] float bias(std::uint64_t filter) const {
    if (args_.has_bias == 0) return 0;
    return static_cast<float>(
        load_element(static_cast<DType>(args_.bias_dtype), call_.inputs[2], filter * args_.bias_stride));
  }
  [[nodiscard]] float weight(std::uint64_t filter, std::uint64_t channel, std::uint64_t i, std::uint64_t j) const {
    const std::uint64_t at = filter * args_.weight_strides[0] + channel * args_.weight_strides[1] +
                             i * args_.weight_strides[2] + j * args_.weight_strides[3];
    return static_cast<float>(load_element(static_cast<DType>(args_.weight_dtype), call_.inputs[1], at));
  }

  const CpuCall& call_;
  const Conv2dArgs& args_;
  std::size_t width_;
  float* sums_;  // [kConvFilters, width of the result]
  float* run_;   // [width of the result], every stride-th element of a row of x
  float* row_;   // [width of x], converted
};

int run(const CpuCall& call) {
  Convolution(call).run();
  return 0;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shunt {
namespace {

HWY_EXPORT(run);

CpuWork work(const OpCall& call, std::uint32_t) {
  const std::uint64_t floats = (kConvFilters + 1) * std::uint64_t{call.output->shape[3]} + call.input(0).shape[3];
  return {.phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = floats * sizeof(float)};
}

}  // namespace

extern const CpuKernel conv2d_simd{fits_arguments, work, write_arguments<conv2d_arguments>,
                                   [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
