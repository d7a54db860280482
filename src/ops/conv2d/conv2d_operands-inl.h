// Loads and stores of both kinds of convolution: weights, biases, runs of x, and rows of the result. Included by
// conv2d_simd.cpp, once per instruction set.
#if defined(SHUNT_OPS_CONV2D_OPERANDS_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_CONV2D_OPERANDS_INL_H_
#undef SHUNT_OPS_CONV2D_OPERANDS_INL_H_
#else
#define SHUNT_OPS_CONV2D_OPERANDS_INL_H_
#endif

#include <optional>

#include "hwy/cache_control.h"
#include "ops/conv2d/conv2d_blocking.h"
#include "ops/float_rows-inl.h"
#include "ops/kernel.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Calls copy(tag) with the longest vectors that `count` floats fill, and returns true; false if they fill none.
template <class Copy>
HWY_INLINE bool with_vectors(std::size_t count, Copy copy) {
  if (count >= hn::Lanes(Floats())) return copy(Floats()), true;
  if (count >= 8) return copy(hn::CappedTag<float, 8>()), true;
  if (count >= 4) return copy(hn::CappedTag<float, 4>()), true;
  return false;
}

// Copies `count` contiguous floats. The last vector may overlap the one before it.
HWY_INLINE void copy_floats(const float* HWY_RESTRICT in, std::size_t count, float* HWY_RESTRICT out) {
  const auto copy = [&](auto d) HWY_ATTR {
    const std::size_t lanes = hn::Lanes(d);
    std::size_t i = 0;
    for (; i + lanes <= count; i += lanes) hn::StoreU(hn::LoadU(d, in + i), d, out + i);
    if (i != count) hn::StoreU(hn::LoadU(d, in + count - lanes), d, out + count - lanes);
  };
  if (with_vectors(count, copy)) return;
  for (std::size_t i = 0; i < count; ++i) out[i] = in[i];
}

// Copies every second float of `in`. Never reads past the last of the `count`: the last vector holds the odd floats of
// a pair of vectors that ends there, and may overlap the one before it.
HWY_INLINE void copy_every_second(const float* HWY_RESTRICT in, std::size_t count, float* HWY_RESTRICT out) {
  const auto copy = [&](auto d) HWY_ATTR {
    const std::size_t lanes = hn::Lanes(d);
    hn::Vec<decltype(d)> even;
    hn::Vec<decltype(d)> odd;
    for (std::size_t i = 0; i + lanes < count; i += lanes) {
      hn::LoadInterleaved2(d, in + 2 * i, even, odd);
      hn::StoreU(even, d, out + i);
    }
    hn::LoadInterleaved2(d, in + 2 * (count - lanes) - 1, even, odd);
    hn::StoreU(odd, d, out + count - lanes);
  };
  // One more than a vector, so that the last pair of vectors begins within `in`.
  out[0] = in[0];
  if (count > 1 && with_vectors(count - 1, copy)) return;
  for (std::size_t i = 1; i < count; ++i) out[i] = in[2 * i];
}

// Splits `count` pairs of floats. The last vectors may overlap those before them.
HWY_INLINE void split_pairs(const float* HWY_RESTRICT in, std::size_t count, float* HWY_RESTRICT first,
                            float* HWY_RESTRICT second) {
  const auto split = [&](auto d) HWY_ATTR {
    const std::size_t lanes = hn::Lanes(d);
    hn::Vec<decltype(d)> even;
    hn::Vec<decltype(d)> odd;
    for (std::size_t i = 0; i < count; i += lanes) {
      const std::size_t at = std::min(i, count - lanes);
      hn::LoadInterleaved2(d, in + 2 * at, even, odd);
      hn::StoreU(even, d, first + at);
      hn::StoreU(odd, d, second + at);
    }
  };
  if (with_vectors(count, split)) return;
  for (std::size_t i = 0; i < count; ++i) {
    first[i] = in[2 * i];
    second[i] = in[2 * i + 1];
  }
}

HWY_INLINE void zero_floats(std::size_t count, float* out) {
  for (std::size_t i = 0; i < count; ++i) out[i] = 0;
}

struct ConvOperands {
  const CpuCall& call;
  const Conv2dArgs& args;
  DType x_dtype = static_cast<DType>(args.x.dtype);
  bool plain_x = x_dtype == DType::F32 && args.x.strides[3] == 1;
  // Whether the elements of a filter are contiguous.
  bool dense_weight = (args.kernel[1] == 1 || args.weight_strides[3] == 1) &&
                      (args.kernel[0] == 1 || args.weight_strides[2] == args.kernel[1]) &&
                      (args.channels == 1 || args.weight_strides[1] == args.kernel[0] * args.kernel[1]);

  // Reads elements begin .. begin + count - 1 of a filter, in the order channel, row, column.
  void read_weights(std::uint64_t filter, std::uint64_t begin, std::size_t count, float* out) const {
    const auto dtype = static_cast<DType>(args.weight_dtype);
    const std::uint64_t first = filter * args.weight_strides[0];
    if (dense_weight && dtype == DType::F32)
      return copy_floats(reinterpret_cast<const float*>(call.inputs[1]) + first + begin, count, out);
    if (dense_weight)
      return widen_row(dtype, call.inputs[1] + (first + begin) * info_of(dtype).block_bytes, count, out);
    for (std::size_t i = 0; i < count; ++i) {
      const std::uint64_t tap = begin + i;
      const std::uint64_t row = tap / args.kernel[1];
      const std::uint64_t at = first + tap % args.kernel[1] * args.weight_strides[3] +
                               row % args.kernel[0] * args.weight_strides[2] +
                               row / args.kernel[0] * args.weight_strides[1];
      out[i] = static_cast<float>(load_element(dtype, call.inputs[1], at));
    }
  }

  [[nodiscard]] float bias(std::uint64_t filter) const {
    if (args.has_bias == 0) return 0;
    return static_cast<float>(
        load_element(static_cast<DType>(args.bias_dtype), call.inputs[2], filter * args.bias_stride));
  }

  // Reads every `step`-th element of x, beginning at `at`.
  HWY_INLINE void read_x(std::uint64_t at, std::uint64_t step, std::size_t count, float* out) const {
    if (plain_x) {
      const float* const x = reinterpret_cast<const float*>(call.inputs[0]) + at;
      if (step == 1) return copy_floats(x, count, out);
      if (step == 2 && count != 0) return copy_every_second(x, count, out);
      for (std::size_t i = 0; i < count; ++i) out[i] = x[i * step];
      return;
    }
    const std::uint64_t stride = step * args.x.strides[3];
    if (stride == 1 && count != 0)
      return widen_row(x_dtype, call.inputs[0] + at * info_of(x_dtype).block_bytes, count, out);
    for (std::size_t i = 0; i < count; ++i)
      out[i] = static_cast<float>(load_element(x_dtype, call.inputs[0], at + i * stride));
  }

  // Copies elements begin, begin + stride, ... of a row of x with its padding. `at` is where the row begins in x.
  HWY_INLINE void read_padded(std::uint64_t at, std::uint64_t begin, std::size_t count, float* out) const {
    const std::uint64_t stride = args.stride[1];
    const std::uint64_t padding = args.padding[1];
    const std::uint64_t beyond = args.x.extents[3] + padding;
    const std::size_t first =
        std::min<std::uint64_t>(count, begin >= padding ? 0 : (padding - begin + stride - 1) / stride);
    const std::size_t last =
        std::clamp<std::uint64_t>(begin >= beyond ? 0 : (beyond - begin + stride - 1) / stride, first, count);
    zero_floats(first, out);
    if (first < last)
      read_x(at + (begin + first * stride - padding) * args.x.strides[3], stride, last - first, out + first);
    zero_floats(count - last, out + last);
  }

  // Copies a row of x with its padding to `planes` rows that are `plane_floats` apart: of each `count` elements a
  // stride apart, beginning `step` after those of the one before.
  HWY_INLINE void read_planes(std::uint64_t at, std::uint64_t begin, std::uint64_t step, std::uint64_t planes,
                              std::size_t count, std::uint64_t plane_floats, float* out) const {
    if (plain_x && args.stride[1] == 2 && step == 1 && planes == 2)
      return read_both_phases(at, begin, count, out, out + plane_floats);
    for (std::uint64_t plane = 0; plane < planes; ++plane)
      read_padded(at, begin + plane * step, count, out + plane * plane_floats);
  }

  // Copies elements begin, begin + 2, ... and those after them of a row of x with its padding.
  HWY_INLINE void read_both_phases(std::uint64_t at, std::uint64_t begin, std::size_t count, float* first,
                                   float* second) const {
    const float* const x = reinterpret_cast<const float*>(call.inputs[0]) + at;
    const auto element = [&](std::uint64_t place) {
      // Before the first element the difference wraps around to beyond the last.
      return place - args.padding[1] < args.x.extents[3] ? x[place - args.padding[1]] : 0.0F;
    };
    const auto copy = [&](std::size_t i) {
      first[i] = element(begin + 2 * i);
      second[i] = element(begin + 2 * i + 1);
    };
    // Pairs that are within the row begin at `low`, and end at `high`.
    const std::uint64_t padding = std::max<std::uint64_t>(args.padding[1], begin) - begin;
    const std::uint64_t beyond = std::max(args.x.extents[3] + std::uint64_t{args.padding[1]}, begin) - begin;
    const std::size_t low = std::min<std::uint64_t>(count, (padding + 1) / 2);
    const std::size_t high = std::clamp<std::uint64_t>(beyond / 2, low, count);
    for (std::size_t i = 0; i < low; ++i) copy(i);
    if (low < high) split_pairs(x + (begin + 2 * low - args.padding[1]), high - low, first + low, second + low);
    for (std::size_t i = high; i < count; ++i) copy(i);
  }

  // Asks for the elements of x from `at` on that `count` floats a stride apart span.
  HWY_INLINE void prefetch_x(std::uint64_t at, std::size_t count) const {
    if (!plain_x) return;
    const auto* const x = reinterpret_cast<const float*>(call.inputs[0]) + at;
    for (std::size_t i = 0; i < count * args.stride[1]; i += 16) hwy::Prefetch(x + i);
  }

  // Returns where row y of x with its padding begins, if it is a row of x.
  [[nodiscard]] std::optional<std::uint64_t> row_of(std::uint64_t channel_at, std::uint64_t y) const {
    // Before the first row the difference wraps around to beyond the last.
    const std::uint64_t row = y - args.padding[0];
    if (row >= args.x.extents[2]) return std::nullopt;
    return channel_at + row * args.x.strides[2];
  }

  // Writes `count` pixels of one image and filter, beginning at `pixel`.
  void write(std::uint64_t image, std::uint64_t filter, std::uint64_t pixel, const float* sums,
             std::size_t count) const {
    const std::uint64_t plane = image * args.filters + filter;
    const std::uint64_t at = plane * args.places[0] * args.places[1] + pixel;
    narrow_row(x_dtype, sums, count, call.output + at * info_of(x_dtype).block_bytes);
  }
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
