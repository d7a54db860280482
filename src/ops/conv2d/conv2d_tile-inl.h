// Convolution as a matrix product: filters are multiplied with the elements of x under each tap of the kernel, in
// register tiles like those of linear. Included by conv2d_simd.cpp, once per instruction set.
//
// The planes of x that a batch of pixels reads (ConvBatch) are copied into the thread's scratch with their padding, and
// serve all filters that the thread computes for the batch. A tap reads them at a shift of its own, so that nothing is
// copied once per tap. The places between the last pixel of a row and the next row get sums that are never read.
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

// sums[r][t] (+)= weights[r][i] * x[shifts[i] + t], for kRows filters and kVectors vectors of t.
template <std::size_t kRows, std::size_t kVectors>
HWY_NOINLINE void shifted_tile(const float* HWY_RESTRICT weights, const float* HWY_RESTRICT x,
                               const std::uint32_t* HWY_RESTRICT shifts, std::size_t elements, bool first,
                               float* HWY_RESTRICT sums) {
  sum_tile<kRows, kVectors>(weights, [&](std::size_t i) { return x + shifts[i]; }, elements, first, sums);
}

class TiledConvolution {
 public:
  explicit TiledConvolution(const CpuCall& call)
      : args_(in_long_rows(call.args<Conv2dArgs>())),
        operands_{call, args_},
        products_(conv_products(args_)),
        batch_(conv_batch(args_)),
        shifts_(reinterpret_cast<std::uint32_t*>(call.thread_scratch)),
        weights_(reinterpret_cast<float*>(call.thread_scratch) + conv_shifts(args_)),
        sums_(weights_ + kBlockRows * kTileElements),
        planes_(sums_ + kBlockRows * kSumPitch) {
    find_shifts();
  }
  TiledConvolution(const TiledConvolution&) = delete;
  TiledConvolution& operator=(const TiledConvolution&) = delete;

  void run() {
    const CpuCall& call = operands_.call;
    const std::uint64_t images = valid_rows(args_.x.entries, static_cast<Extent>(args_.x.extent), *call.parameters);
    const std::uint64_t filters = args_.filters / args_.groups;
    const std::uint64_t tiles = (filters + kTileRows - 1) / kTileRows;
    const std::uint64_t down = (args_.places[0] + batch_.rows - 1) / batch_.rows;
    const std::uint64_t across = (args_.places[1] + batch_.columns - 1) / batch_.columns;
    const std::uint64_t batches = down * across;
    const Range units = share_of(images * args_.groups * batches * tiles, call.share, call.shares);
    for (std::uint64_t unit = units.begin; unit < units.end;) {
      const std::uint64_t at = unit / tiles;
      const std::uint64_t begin = unit % tiles;
      const std::uint64_t end = std::min(tiles, begin + (units.end - unit));
      const std::uint64_t group = at / batches % args_.groups;
      const std::uint64_t y = at / across % down * batch_.rows;
      const std::uint64_t x = at % across * batch_.columns;
      const Part part{.image = at / batches / args_.groups,
                      .rows = {y, std::min<std::uint64_t>(y + batch_.rows, args_.places[0])},
                      .columns = {x, std::min<std::uint64_t>(x + batch_.columns, args_.places[1])}};
      copy_planes(part, group);
      multiply(part, {group * filters + begin * kTileRows, group * filters + std::min(filters, end * kTileRows)});
      unit += end - begin;
    }
  }

 private:
  static constexpr std::uint64_t kChannelsAhead = 2;

  // The pixels of a batch.
  struct Part {
    std::uint64_t image;
    Range rows;
    Range columns;
  };

  void copy_planes(const Part& part, std::uint64_t group) {
    const std::uint64_t first = part.image * args_.x.strides[0];
    const std::uint64_t step_y = batch_.shared ? 1 : args_.dilation[0];
    const std::uint64_t step_x = batch_.shared ? 1 : args_.dilation[1];
    for (std::uint64_t channel = 0; channel < args_.channels; ++channel) {
      const std::uint64_t from = first + (group * args_.channels + channel) * args_.x.strides[1];
      float* out = planes_ + channel * batch_.channel_floats();
      for (std::uint64_t i = 0; i < batch_.planes[0]; ++i)
        for (std::uint64_t j = 0; j < batch_.planes[1]; ++j, out += batch_.plane_floats())
          copy_plane(from, part, i * step_y, j * step_x, out);
    }
  }

  // Copies the elements of a channel that begin (i, j) after the first pixel's, and are a stride apart.
  void copy_plane(std::uint64_t from, const Part& part, std::uint64_t i, std::uint64_t j, float* out) {
    const std::uint64_t beyond = batch_.plane_rows - batch_.rows;
    for (std::uint64_t y = part.rows.begin; y < part.rows.end + beyond; ++y, out += batch_.pitch) {
      const std::optional<std::uint64_t> row = operands_.row_of(from, y * args_.stride[0] + i);
      if (!row) {
        zero_floats(batch_.pitch, out);
        continue;
      }
      const std::uint64_t column = part.columns.begin * args_.stride[1];
      // Rows of channels are far apart, where the processor does not look ahead.
      if (j == 0) operands_.prefetch_x(*row + kChannelsAhead * args_.x.strides[1] + column, batch_.columns);
      operands_.read_padded(*row, column + j, batch_.pitch, out);
    }
  }

  void multiply(const Part& part, Range filters) {
    const std::uint64_t places =
        (part.rows.end - part.rows.begin - 1) * batch_.pitch + part.columns.end - part.columns.begin;
    for (std::uint64_t first = filters.begin; first < filters.end; first += kBlockRows) {
      const std::size_t rows = std::min<std::uint64_t>(filters.end - first, kBlockRows);
      for (std::uint64_t begin = 0; begin < products_ || begin == 0; begin += kTileElements) {
        const std::size_t elements = std::min<std::uint64_t>(products_ - begin, kTileElements);
        for (std::size_t r = 0; r < rows; ++r)
          operands_.read_weights(first + r, begin, elements, weights_ + r * kTileElements);
        // The last tile may reach past the block: pad it with zeros.
        for (std::size_t r = rows; r % kTileRows != 0; ++r) zero_floats(elements, weights_ + r * kTileElements);
        multiply_strip(rows, places, {begin, begin + elements});
      }
      for (std::size_t r = 0; r < rows; ++r) write(part, first + r, sums_ + r * kSumPitch);
    }
  }

  // Finds where in the planes the elements of x are that each product reads.
  void find_shifts() {
    const std::uint64_t taps = std::uint64_t{args_.kernel[0]} * args_.kernel[1];
    for (std::uint64_t i = 0; i < products_; ++i)
      shifts_[i] = static_cast<std::uint32_t>(i < taps ? shift_of(i / args_.kernel[1], i % args_.kernel[1])
                                                       : shifts_[i - taps] + batch_.channel_floats());
  }

  [[nodiscard]] std::uint64_t shift_of(std::uint64_t row, std::uint64_t column) const {
    if (!batch_.shared) return (row * args_.kernel[1] + column) * batch_.plane_floats();
    const std::uint64_t y = row * args_.dilation[0];
    const std::uint64_t x = column * args_.dilation[1];
    const std::uint64_t plane = y % args_.stride[0] * batch_.planes[1] + x % args_.stride[1];
    return plane * batch_.plane_floats() + y / args_.stride[0] * batch_.pitch + x / args_.stride[1];
  }

  // All filters take the same places in turn, so that what a tile reads of x stays in the first-level cache.
  void multiply_strip(std::size_t rows, std::size_t places, Range products) const {
    for (std::size_t t = 0; t < places; t += kTileTokens)
      for (std::size_t r = 0; r < rows; r += kTileRows)
        if (places - t <= kBlockLanes)
          multiply_tile<1>(r, std::min(rows - r, kTileRows), t, products);
        else
          multiply_tile<2>(r, std::min(rows - r, kTileRows), t, products);
  }

  // The last tile of a block may have fewer filters.
  template <std::size_t kVectors>
  HWY_INLINE void multiply_tile(std::size_t r, std::size_t rows, std::size_t t, Range products) const {
    constexpr std::size_t kThird = kTileRows / 3;
    const auto tile = rows <= kThird       ? shifted_tile<kThird, kVectors>
                      : rows <= 2 * kThird ? shifted_tile<2 * kThird, kVectors>
                                           : shifted_tile<kTileRows, kVectors>;
    tile(weights_ + r * kTileElements, planes_ + t, shifts_ + products.begin, products.end - products.begin,
         products.begin == 0, sums_ + r * kSumPitch + t);
  }

  // Writes a filter's pixels, of which `sums` holds a row every `pitch` floats.
  void write(const Part& part, std::uint64_t filter, float* sums) {
    const std::size_t columns = part.columns.end - part.columns.begin;
    const float bias = operands_.bias(filter);
    for (std::uint64_t y = part.rows.begin; y < part.rows.end; ++y, sums += batch_.pitch) {
      if (args_.has_bias != 0) add(bias, columns, sums);
      operands_.write(part.image, filter, y * args_.places[1] + part.columns.begin, sums, columns);
    }
  }

  static void add(float bias, std::size_t count, float* sums) {
    for (std::size_t i = 0; i < count; ++i) sums[i] += bias;
  }

  const Conv2dArgs args_;
  ConvOperands operands_;
  std::uint64_t products_;
  ConvBatch batch_;
  std::uint32_t* shifts_;  // [products]
  float* weights_;         // [kBlockRows][kTileElements]
  float* sums_;            // [kBlockRows][kSumPitch]
  float* planes_;          // [channels][planes][plane_rows][pitch]
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
