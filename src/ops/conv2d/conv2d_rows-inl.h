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

#include <type_traits>

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
    if (args_.channels == 1 && operands_.x_dtype == DType::F32) {
      operands_.read_weights(filter, 0, taps_, weights_);
      copy_x(image * args_.x.strides[0] + group * args_.x.strides[1], rows);
      return write_rows(image * args_.filters + filter, operands_.bias(filter), rows);
    }
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
      const std::optional<std::uint64_t> row = operands_.row_of(first, rows.begin * args_.stride[0] + i);
      if (!row) {
        zero_floats(cut_.row_floats(), out);
        continue;
      }
      operands_.read_planes(*row, 0, 1, cut_.phases, cut_.phase_floats - kRowSlack, cut_.phase_floats, out);
    }
  }

  // Computes rows of a plane of the result that have one channel only, where they belong.
  void write_rows(std::uint64_t plane, float bias, Range rows) const {
    const std::size_t width = args_.places[1];
    float* const out = operands_.call.out<float>() + plane * args_.places[0] * width;
    for (std::uint64_t y = rows.begin; y < rows.end; ++y)
      write_row(x_ + (y - rows.begin) * args_.stride[0] * cut_.row_floats(), bias, width, out + y * width);
  }

  // The last vector may overlap the one before it. A shorter row goes through `sums_`.
  void write_row(const float* x, float bias, std::size_t width, float* out) const {
    const auto start = hn::Set(Floats(), bias);
    const std::size_t lanes = hn::Lanes(Floats());
    if (width < lanes) {
      multiply<1>(x, sums_, [&](std::size_t) HWY_ATTR { return start; });
      return copy_floats(sums_, width, out);
    }
    for_each_vectors(width / lanes, [&](auto vectors, std::size_t at) HWY_ATTR {
      multiply<vectors()>(x + at, out + at, [&](std::size_t) HWY_ATTR { return start; });
    });
    const std::size_t last = width - lanes;
    if (width % lanes != 0) multiply<1>(x + last, out + last, [&](std::size_t) HWY_ATTR { return start; });
  }

  // Adds one channel to a row of the result. The last vector may reach past the row.
  void add_row(const float* x, float* sums) const {
    const std::size_t lanes = hn::Lanes(Floats());
    for_each_vectors((args_.places[1] + lanes - 1) / lanes, [&](auto vectors, std::size_t at) HWY_ATTR {
      multiply<vectors()>(x + at, sums + at,
                          [&](std::size_t v) HWY_ATTR { return hn::LoadU(Floats(), sums + at + v * lanes); });
    });
  }

  // Calls compute(count, offset of the first) for `all` vectors, four, two or one at a time.
  template <class Compute>
  HWY_INLINE static void for_each_vectors(std::size_t all, Compute compute) {
    const std::size_t lanes = hn::Lanes(Floats());
    std::size_t done = 0;
    for (; all - done >= 4; done += 4) compute(std::integral_constant<std::size_t, 4>(), done * lanes);
    if (all - done >= 2) {
      compute(std::integral_constant<std::size_t, 2>(), done * lanes);
      done += 2;
    }
    if (all != done) compute(std::integral_constant<std::size_t, 1>(), done * lanes);
  }

  // out = start(vector) + the sum over all taps of one channel.
  template <std::size_t kVectors, class Start>
  HWY_INLINE void multiply(const float* HWY_RESTRICT x, float* out, Start start) const {
    const Floats d;
    const std::size_t lanes = hn::Lanes(d);
    hn::Vec<Floats> acc[kVectors];
    HWY_UNROLL(4) for (std::size_t v = 0; v < kVectors; ++v) acc[v] = start(v);
    for (std::uint64_t tap = 0; tap < taps_; ++tap) {
      const float* const from = x + shifts_[tap];
      const auto w = hn::Set(d, weights_[tap]);
      HWY_UNROLL(4)
      for (std::size_t v = 0; v < kVectors; ++v) acc[v] = hn::MulAdd(w, hn::LoadU(d, from + v * lanes), acc[v]);
    }
    HWY_UNROLL(4) for (std::size_t v = 0; v < kVectors; ++v) hn::StoreU(acc[v], d, out + v * lanes);
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
