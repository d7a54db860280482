// Convolution for groups of few filters, depthwise convolution above all. Computes one filter at a time over a block of
// rows, whose sums stay in registers over all elements of the kernel. Included by conv2d_simd.cpp, once per instruction
// set.
//
// The rows of x that a block needs are copied with their padding, so that the kernel never leaves them. If the kernel
// moves by more than one column, every stride-th element is stored contiguously. The floats past the end of a row are
// arbitrary; they only affect sums past the end of the result.
#if defined(SHUNT_OPS_CONV2D_ROWS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_CONV2D_ROWS_INL_H_
#undef SHUNT_OPS_CONV2D_ROWS_INL_H_
#else
#define SHUNT_OPS_CONV2D_ROWS_INL_H_
#endif

#include "ops/conv2d/conv2d_operands-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

class RowConvolution {
 public:
  explicit RowConvolution(const CpuCall& call)
      : operands_{call, call.args<Conv2dArgs>()},
        args_(operands_.args),
        cut_(conv_rows(args_)),
        sum_pitch_(args_.places[1] + kRowSlack),
        sums_(reinterpret_cast<float*>(call.thread_scratch)),
        taps_(std::uint64_t{args_.kernel[0]} * args_.kernel[1]),
        weights_(sums_ + cut_.sum_floats(args_)),
        shifts_(reinterpret_cast<std::uint32_t*>(weights_ + taps_)),
        x_(weights_ + 2 * taps_) {
    for (std::uint64_t tap = 0; tap < taps_; ++tap) {
      const std::uint64_t row = tap / args_.kernel[1] * args_.dilation[0];
      const std::uint64_t column = tap % args_.kernel[1] * args_.dilation[1];
      shifts_[tap] = static_cast<std::uint32_t>(row * cut_.row_floats() + column % args_.stride[1] * cut_.phase_floats +
                                                column / args_.stride[1]);
    }
  }

  void run() {
    const CpuCall& call = operands_.call;
    const std::uint64_t images = valid_rows(args_.x.entries, static_cast<Extent>(args_.x.extent), *call.parameters);
    const std::uint64_t blocks = (args_.places[0] + cut_.rows - 1) / cut_.rows;
    const Range units = share_of(images * args_.filters * blocks, call.share, call.shares);
    for (std::uint64_t unit = units.begin; unit < units.end; ++unit) {
      const std::uint64_t y = unit % blocks * cut_.rows;
      const std::uint64_t filter = unit / blocks % args_.filters;
      convolve(unit / blocks / args_.filters, filter, {y, std::min<std::uint64_t>(y + cut_.rows, args_.places[0])});
    }
  }

 private:
  void convolve(std::uint64_t image, std::uint64_t filter, Range rows) {
    const std::uint64_t group = filter / (args_.filters / args_.groups);
    std::fill_n(sums_, (rows.end - rows.begin) * sum_pitch_, operands_.bias(filter));
    for (std::uint64_t channel = 0; channel < args_.channels; ++channel) {
      operands_.read_weights(filter, channel * taps_, taps_, weights_);
      copy_x(image * args_.x.strides[0] + (group * args_.channels + channel) * args_.x.strides[1], rows);
      for (std::uint64_t y = 0; y < rows.end - rows.begin; ++y)
        add_row(x_ + y * args_.stride[0] * cut_.row_floats(), sums_ + y * sum_pitch_);
    }
    for (std::uint64_t y = rows.begin; y < rows.end; ++y)
      operands_.write(image, filter, y * args_.places[1], sums_ + (y - rows.begin) * sum_pitch_, args_.places[1]);
  }

  // Copies what these rows of the result read of the channel that begins at `first`.
  void copy_x(std::uint64_t first, Range rows) {
    const std::uint64_t count = (rows.end - rows.begin - 1) * args_.stride[0] + cut_.reach;
    for (std::uint64_t i = 0; i < count; ++i) {
      float* const out = x_ + i * cut_.row_floats();
      // Before the first row the difference wraps around to beyond the last.
      const std::uint64_t row = rows.begin * args_.stride[0] + i - args_.padding[0];
      if (row >= args_.x.extents[2]) {
        std::fill_n(out, cut_.row_floats(), 0.0F);
        continue;
      }
      for (std::uint64_t phase = 0; phase < cut_.phases; ++phase)
        copy_phase(first + row * args_.x.strides[2], phase, out + phase * cut_.phase_floats);
    }
  }

  // Copies elements phase, phase + stride, ... of a padded row.
  void copy_phase(std::uint64_t row, std::uint64_t phase, float* out) {
    const std::uint64_t stride = args_.stride[1];
    const std::uint64_t padding = args_.padding[1];
    const std::uint64_t beyond = args_.x.extents[3] + padding;
    const std::uint64_t count = cut_.phase_floats - kRowSlack;
    const std::uint64_t begin = std::min(count, phase >= padding ? 0 : (padding - phase + stride - 1) / stride);
    const std::uint64_t end = std::clamp(phase >= beyond ? 0 : (beyond - phase + stride - 1) / stride, begin, count);
    std::fill_n(out, begin, 0.0F);
    if (begin < end)
      operands_.read_x(row + (phase + begin * stride - padding) * args_.x.strides[3], stride, end - begin, out + begin);
    std::fill_n(out + end, count - end, 0.0F);
  }

  // Adds one channel to a row of the result, up to four vectors at a time. The last vector may reach past the row.
  void add_row(const float* x, float* sums) const {
    const std::size_t lanes = hn::Lanes(Floats());
    for (std::size_t at = 0; at < args_.places[1];) {
      const std::size_t vectors = (args_.places[1] - at + lanes - 1) / lanes;
      if (vectors >= 4) {
        add_vectors<4>(x + at, sums + at);
        at += 4 * lanes;
      } else if (vectors >= 2) {
        add_vectors<2>(x + at, sums + at);
        at += 2 * lanes;
      } else {
        add_vectors<1>(x + at, sums + at);
        at += lanes;
      }
    }
  }

  template <std::size_t kVectors>
  HWY_INLINE void add_vectors(const float* HWY_RESTRICT x, float* HWY_RESTRICT sums) const {
    const Floats d;
    const std::size_t lanes = hn::Lanes(d);
    hn::Vec<Floats> acc[kVectors];
    HWY_UNROLL(4) for (std::size_t v = 0; v < kVectors; ++v) acc[v] = hn::LoadU(d, sums + v * lanes);
    for (std::uint64_t tap = 0; tap < taps_; ++tap) {
      const float* const from = x + shifts_[tap];
      const auto w = hn::Set(d, weights_[tap]);
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) acc[v] = hn::MulAdd(w, hn::LoadU(d, from + v * lanes), acc[v]);
    }
    HWY_UNROLL(4) for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(acc[v], d, sums + v * lanes);
  }

  ConvOperands operands_;
  const Conv2dArgs& args_;
  ConvRows cut_;
  std::uint64_t sum_pitch_;
  float* sums_;            // [rows][out[1] + kRowSlack]
  std::uint64_t taps_;     // elements of the kernel
  float* weights_;         // [taps] of one channel of a filter
  std::uint32_t* shifts_;  // [taps], offsets in x_ of the elements under the taps
  float* x_;               // [rows of x][phases][phase_floats]
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
