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

#include "ops/conv2d/conv2d_ahead.h"
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

// Elements of x for a tile: packed as [elements][kTileTokens], or to be packed while they are multiplied.
struct PackedElements {
  float* panel;
  const float* unpacked;  // where they are in x, or null if they are packed
  const float* ahead;     // where elements are that the next tile reads, or any address
  std::size_t pitch;      // from one element to the next in x
};

// sums[r][t] (+)= weights[r][i] * x.panel[i][t]. Asks for two lines of every fourth element.
template <std::size_t kRows, std::size_t kVectors>
HWY_NOINLINE void packed_tile(const float* HWY_RESTRICT weights, PackedElements x, std::size_t elements, bool first,
                              float* HWY_RESTRICT sums) {
  const auto x_at = [=](std::size_t i) HWY_ATTR {
    const BlockTag d;
    float* const packed = x.panel + i * kTileTokens;
    ask_second_level(reinterpret_cast<const std::byte*>(x.ahead + i / 4 * x.pitch) + i % 2 * Ahead::kLineBytes);
    if (x.unpacked != nullptr)
      for (std::size_t v = 0; v < kVectors * kBlockLanes; v += kBlockLanes)
        hn::Store(hn::LoadU(d, x.unpacked + i * x.pitch + v), d, packed + v);
    return packed;
  };
  sum_tile<kRows, kVectors>(weights, x_at, elements, first, sums);
}

class TiledConvolution {
 public:
  explicit TiledConvolution(const CpuCall& call)
      : args_(in_long_rows(call.args<Conv2dArgs>())),
        operands_{call, args_},
        products_(conv_products(args_)),
        weights_(reinterpret_cast<float*>(call.thread_scratch) + conv_shifts(args_)),
        sums_(weights_ + kBlockRows * kTileElements),
        panel_(sums_ + kBlockRows * kSumPitch),
        packs_(is_one_row(args_)),
        planes_(operands_, reinterpret_cast<std::uint32_t*>(call.thread_scratch), panel_, 0) {}
  TiledConvolution(const TiledConvolution&) = delete;
  TiledConvolution& operator=(const TiledConvolution&) = delete;

  void run() {
    const std::uint64_t filters = args_.filters / args_.groups;
    planes_.for_each_part((filters + kTileRows - 1) / kTileRows, [&](const Part& part, Range tiles, const auto&) {
      const std::uint64_t first = part.group * filters;
      if (!packs_) planes_.copy(part);
      multiply(part, {first + tiles.begin * kTileRows, first + std::min(filters, tiles.end * kTileRows)});
    });
  }

 private:
  static constexpr std::size_t kThird = kTileRows / 3;
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
        multiply_strip(part, rows, places, {begin, begin + elements});
      }
      for (std::size_t r = 0; r < rows; ++r) write(part, first + r, sums_ + r * kSumPitch);
    }
  }

  // All filters take the same places in turn, so that what a tile reads of x stays in the first-level cache.
  void multiply_strip(const Part& part, std::size_t rows, std::size_t places, Range products) const {
    for (std::size_t t = 0; t < places; t += kTileTokens) {
      const std::size_t tokens = std::min(places - t, kTileTokens);
      PackedElements x = packs_ ? pack(part, t, tokens, products) : PackedElements{};
      for (std::size_t r = 0; r < rows;) {
        const std::size_t step = rows_of_tile(rows - r);
        if (tokens <= kBlockLanes)
          multiply_tile<1>(r, step, t, x, products);
        else
          multiply_tile<2>(r, step, t, x, products);
        r += step;
        x.unpacked = nullptr;
        x.ahead += (products.end - products.begin) / 4 * x.pitch;
      }
    }
  }

  // Two tiles of two thirds take less time than a whole one and a third.
  static std::size_t rows_of_tile(std::size_t left) {
    if (left > kTileRows && left <= kTileRows + kThird) return 2 * kThird;
    return std::min((left + kThird - 1) / kThird * kThird, kTileRows);
  }

  // Returns what tiles read of `tokens` pixels from the t-th of a part on.
  PackedElements pack(const Part& part, std::size_t t, std::size_t tokens, Range products) const {
    const auto pitch = static_cast<std::size_t>(args_.x.strides[1]);
    const std::uint64_t at = planes_.first_of(part, products.begin) + (part.columns.begin + t) * args_.x.strides[3];
    if (operands_.plain_x && tokens == kTileTokens) {
      const float* const from = reinterpret_cast<const float*>(operands_.call.inputs[0]) + at;
      return {.panel = panel_, .unpacked = from, .ahead = from + kTileTokens, .pitch = pitch};
    }
    for (std::uint64_t i = 0; i < products.end - products.begin; ++i)
      operands_.read_x(at + i * pitch, 1, tokens, panel_ + i * kTileTokens);
    return {.panel = panel_, .unpacked = nullptr, .ahead = panel_, .pitch = 0};
  }

  template <std::size_t kVectors>
  HWY_INLINE void multiply_tile(std::size_t r, std::size_t rows, std::size_t t, const PackedElements& x,
                                Range products) const {
    if (rows == kTileRows)
      multiply_rows<kTileRows, kVectors>(r, t, x, products);
    else if (rows == 2 * kThird)
      multiply_rows<2 * kThird, kVectors>(r, t, x, products);
    else
      multiply_rows<kThird, kVectors>(r, t, x, products);
  }

  template <std::size_t kRows, std::size_t kVectors>
  HWY_INLINE void multiply_rows(std::size_t r, std::size_t t, const PackedElements& x, Range products) const {
    const float* const weights = weights_ + r * kTileElements;
    const std::size_t elements = products.end - products.begin;
    const bool first = products.begin == 0;
    float* const sums = sums_ + r * kSumPitch + t;
    if (packs_)
      packed_tile<kRows, kVectors>(weights, x, elements, first, sums);
    else
      shifted_tile<kRows, kVectors>(weights, planes_.at(0, t), planes_.shifts() + products.begin, elements, first,
                                    sums);
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
  float* panel_;    // [kTileElements][kTileTokens], elements of x of which each is read by one tap
  bool packs_;      // whether elements are packed there for each tile, instead of in planes
  ConvPlanes planes_;
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
