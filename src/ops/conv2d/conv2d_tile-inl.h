// Convolution as a matrix product: filters are multiplied with the elements of x under each tap of the kernel, in
// register tiles like those of linear. Included by conv2d_simd.cpp, once per instruction set.
//
// Lanes are pixels (conv2d_panel-inl.h has filters in them). The places between the last pixel of a row and the next
// row get sums that are never read.
#if defined(SHUNT_OPS_CONV2D_TILE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_CONV2D_TILE_INL_H_
#undef SHUNT_OPS_CONV2D_TILE_INL_H_
#else
#define SHUNT_OPS_CONV2D_TILE_INL_H_
#endif

#include "ops/conv2d/conv2d_planes-inl.h"
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
        weights_(reinterpret_cast<float*>(call.thread_scratch) + conv_shifts(args_)),
        sums_(weights_ + kBlockRows * kTileElements),
        planes_(operands_, reinterpret_cast<std::uint32_t*>(call.thread_scratch), sums_ + kBlockRows * kSumPitch, 0) {}
  TiledConvolution(const TiledConvolution&) = delete;
  TiledConvolution& operator=(const TiledConvolution&) = delete;

  void run() {
    const std::uint64_t filters = args_.filters / args_.groups;
    planes_.for_each_part((filters + kTileRows - 1) / kTileRows, [&](const Part& part, Range tiles, const auto&) {
      const std::uint64_t first = part.group * filters;
      multiply(part, {first + tiles.begin * kTileRows, first + std::min(filters, tiles.end * kTileRows)});
    });
  }

 private:
  using Part = ConvPlanes::Part;

  void multiply(const Part& part, Range filters) {
    const std::uint64_t places =
        (part.rows.end - part.rows.begin - 1) * planes_.batch().pitch + part.columns.end - part.columns.begin;
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
    tile(weights_ + r * kTileElements, planes_.at(0, t), planes_.shifts() + products.begin,
         products.end - products.begin, products.begin == 0, sums_ + r * kSumPitch + t);
  }

  // Writes a filter's pixels, of which `sums` holds a row every `pitch` floats.
  void write(const Part& part, std::uint64_t filter, float* sums) {
    const std::size_t columns = part.columns.end - part.columns.begin;
    const float bias = operands_.bias(filter);
    for (std::uint64_t y = part.rows.begin; y < part.rows.end; ++y, sums += planes_.batch().pitch) {
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
  float* weights_;  // [kBlockRows][kTileElements]
  float* sums_;     // [kBlockRows][kSumPitch]
  ConvPlanes planes_;
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
