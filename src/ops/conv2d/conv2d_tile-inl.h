// Convolution as a matrix product: the elements of x that a pixel of the result reads become a column, and columns are
// multiplied with filters in the tiles of linear. Included by conv2d_simd.cpp, once per instruction set.
//
// A batch of pixels is gathered into panels [products][kPanelRows] in the thread's scratch, and serves all filters that
// the thread computes for it. Lanes past the last pixel of the last panel are arbitrary; their sums are never read.
#if defined(SHUNT_OPS_CONV2D_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_CONV2D_TILE_INL_H_
#undef SHUNT_OPS_CONV2D_TILE_INL_H_
#else
#define SHUNT_OPS_CONV2D_TILE_INL_H_
#endif

#include "ops/conv2d/conv2d_operands-inl.h"
#include "ops/linear/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

class TiledConvolution {
 public:
  explicit TiledConvolution(const CpuCall& call)
      : operands_{call, call.args<Conv2dArgs>()},
        args_(operands_.args),
        products_(conv_products(args_)),
        batch_(conv_batch(args_)),
        pixels_(std::uint64_t{args_.places[0]} * args_.places[1]),
        width_(args_.places[1]),
        x_width_(args_.x.extents[3]),
        panels_(reinterpret_cast<float*>(call.thread_scratch)),
        weights_(panels_ + batch_ * products_),
        sums_(weights_ + kBlockRows * kTileElements) {
    // A kernel of one element can treat the rows of x as one.
    const bool one = args_.kernel[0] == 1 && args_.kernel[1] == 1 && args_.stride[0] == 1 && args_.stride[1] == 1;
    const bool same = args_.places[0] == args_.x.extents[2] && args_.places[1] == args_.x.extents[3];
    if (!one || !same || args_.x.strides[2] != std::uint64_t{args_.x.extents[3]} * args_.x.strides[3]) return;
    width_ = x_width_ = pixels_;
  }

  void run() {
    const CpuCall& call = operands_.call;
    const std::uint64_t images = valid_rows(args_.x.entries, static_cast<Extent>(args_.x.extent), *call.parameters);
    const std::uint64_t filters = args_.filters / args_.groups;
    const std::uint64_t tiles = (filters + kTileRows - 1) / kTileRows;
    const std::uint64_t batches = (pixels_ + batch_ - 1) / batch_;
    const Range units = share_of(images * args_.groups * batches * tiles, call.share, call.shares);
    for (std::uint64_t unit = units.begin; unit < units.end;) {
      const std::uint64_t place = unit / tiles;
      const std::uint64_t begin = unit % tiles;
      const std::uint64_t end = std::min(tiles, begin + (units.end - unit));
      const std::uint64_t group = place / batches % args_.groups;
      const std::uint64_t image = place / batches / args_.groups;
      const std::uint64_t first = place % batches * batch_;
      const Range pixels{first, std::min(first + batch_, pixels_)};
      gather(image, group, pixels);
      const std::uint64_t first_filter = group * filters;
      multiply(image, {first_filter + begin * kTileRows, first_filter + std::min(filters, end * kTileRows)}, pixels);
      unit += end - begin;
    }
  }

 private:
  // Consecutive pixels of one row of the result, within one panel.
  struct Run {
    std::uint64_t y, x;
    std::uint64_t count;
    float* out;  // where the first product goes
  };

  void gather(std::uint64_t image, std::uint64_t group, Range pixels) {
    const std::uint64_t first = image * args_.x.strides[0] + group * args_.channels * std::uint64_t{args_.x.strides[1]};
    for (std::uint64_t pixel = pixels.begin; pixel < pixels.end;) {
      const std::uint64_t at = pixel - pixels.begin;
      const std::uint64_t x = pixel % width_;
      const std::uint64_t count = std::min({width_ - x, pixels.end - pixel, kPanelRows - at % kPanelRows});
      float* const out = panels_ + at / kPanelRows * products_ * kPanelRows + at % kPanelRows;
      for (std::uint64_t j = 0; j < args_.kernel[1]; ++j)
        gather_column(first, {pixel / width_, x, count, out + j * kPanelRows}, j);
      pixel += count;
    }
  }

  // Gathers the elements of x under column j of the kernel, for all its rows and channels.
  void gather_column(std::uint64_t first, const Run& run, std::uint64_t j) {
    const std::uint64_t stride = args_.stride[1];
    const std::uint64_t shift = run.x * stride + j * args_.dilation[1];  // in the padded row
    const std::uint64_t padding = args_.padding[1];
    const std::uint64_t beyond = x_width_ + padding;
    // The pixels for which that column is inside x.
    const std::size_t begin =
        std::min<std::uint64_t>(run.count, shift >= padding ? 0 : (padding - shift + stride - 1) / stride);
    const std::size_t end =
        std::clamp<std::uint64_t>(shift >= beyond ? 0 : (beyond - shift + stride - 1) / stride, begin, run.count);
    const std::uint64_t column = (shift + begin * stride - padding) * args_.x.strides[3];
    float* out = run.out;
    for (std::uint64_t channel = 0; channel < args_.channels; ++channel)
      for (std::uint64_t i = 0; i < args_.kernel[0]; ++i, out += args_.kernel[1] * kPanelRows) {
        // Before the first row the difference wraps around to beyond the last.
        const std::uint64_t row = run.y * args_.stride[0] + i * args_.dilation[0] - args_.padding[0];
        if (row >= args_.x.extents[2] || begin == end) {
          zero_floats(run.count, out);
          continue;
        }
        zero_floats(begin, out);
        const std::uint64_t at = first + channel * args_.x.strides[1] + row * args_.x.strides[2] + column;
        operands_.read_x(at, stride, end - begin, out + begin);
        zero_floats(run.count - end, out + end);
      }
  }

  void multiply(std::uint64_t image, Range filters, Range pixels) {
    const std::size_t count = pixels.end - pixels.begin;
    for (std::uint64_t first = filters.begin; first < filters.end; first += kBlockRows) {
      const std::size_t rows = std::min<std::uint64_t>(filters.end - first, kBlockRows);
      for (std::uint64_t begin = 0; begin < products_ || begin == 0; begin += kTileElements) {
        const std::size_t elements = std::min<std::uint64_t>(products_ - begin, kTileElements);
        for (std::size_t r = 0; r < rows; ++r)
          operands_.read_weights(first + r, begin, elements, weights_ + r * kTileElements);
        // The last tile may reach past the block: pad it with zeros.
        for (std::size_t r = rows; r % kTileRows != 0; ++r) zero_floats(kTileElements, weights_ + r * kTileElements);
        tile_strip(panels_, products_, count, weights_, rows, begin, elements, sums_);
      }
      for (std::size_t r = 0; r < rows; ++r) {
        float* const sums = sums_ + r * kSumPitch;
        if (args_.has_bias != 0) add(operands_.bias(first + r), count, sums);
        operands_.write(image, first + r, pixels.begin, sums, count);
      }
    }
  }

  static void add(float bias, std::size_t count, float* sums) {
    for (std::size_t i = 0; i < count; ++i) sums[i] += bias;
  }

  ConvOperands operands_;
  const Conv2dArgs& args_;
  std::uint64_t products_;
  std::uint64_t batch_;
  std::uint64_t pixels_;
  std::uint64_t width_;  // of the result
  std::uint64_t x_width_;
  float* panels_;   // [batch / kPanelRows][products][kPanelRows]
  float* weights_;  // [kBlockRows][kTileElements]
  float* sums_;     // [kBlockRows][kSumPitch]
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
