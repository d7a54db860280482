// Convolution as a matrix product whose lanes are filters: an element of x under a tap is multiplied with panels of
// packed weights. Included by conv2d_simd.cpp, once per instruction set.
//
// Pixels need not fill vectors, so that small planes and those between which padding lies waste no lanes. Each sum adds
// the same products in the same order as that of conv2d_tile-inl.h.
#if defined(SHUNT_OPS_CONV2D_PANEL_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_CONV2D_PANEL_INL_H_
#undef SHUNT_OPS_CONV2D_PANEL_INL_H_
#else
#define SHUNT_OPS_CONV2D_PANEL_INL_H_
#endif

#include <array>
#include <utility>

#include "ops/conv2d/conv2d_ahead.h"
#include "ops/conv2d/conv2d_planes-inl.h"
#include "ops/linear/register_tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// 14 x 2 sums, 2 vectors of weights and an element of x take 31 of 32 registers; 6 x 2 sums take 15 of 16.
inline constexpr std::size_t kTilePixels = HWY_CAP_GE512 || HWY_TARGET == HWY_NEON ? 14 : 6;
inline constexpr std::size_t kPanelFilters = 2 * kBlockLanes;

// acc[p][v] += x[shifts[i] + p] * panel[i].
template <std::size_t kVectors, std::size_t kPixels>
HWY_INLINE void add_products(const float* HWY_RESTRICT panel, const float* HWY_RESTRICT x,
                             const std::uint32_t* HWY_RESTRICT shifts, std::size_t i,
                             BlockVec (&acc)[kPixels][kVectors]) {
  const BlockTag d;
  std::size_t shift = shifts[i];
  forget_register(shift);
  BlockVec w[kVectors];
  HWY_UNROLL(2) for (std::size_t v = 0; v < kVectors; ++v) {
    w[v] = hn::Load(d, panel + i * kPanelFilters + v * kBlockLanes);
  }
  HWY_UNROLL(14) for (std::size_t p = 0; p < kPixels; ++p) {
    const BlockVec one = hn::Set(d, x[shift + p]);
    HWY_UNROLL(2) for (std::size_t v = 0; v < kVectors; ++v) acc[p][v] = hn::MulAdd(w[v], one, acc[p][v]);
  }
}

// sums[p][f] (+)= x[shifts[i] + p] * panel[i][f], for kPixels pixels and kVectors vectors of f.
template <std::size_t kVectors, std::size_t kPixels>
HWY_NOINLINE void pixel_tile(const float* HWY_RESTRICT panel, const float* HWY_RESTRICT x,
                             const std::uint32_t* HWY_RESTRICT shifts, std::size_t elements, LinesAhead ahead,
                             bool first, float* HWY_RESTRICT sums) {
  const BlockTag d;
  BlockVec acc[kPixels][kVectors];
  HWY_UNROLL(14) for (std::size_t p = 0; p < kPixels; ++p) {
    HWY_UNROLL(2) for (std::size_t v = 0; v < kVectors; ++v) acc[p][v] = hn::Zero(d);
  }
  std::size_t i = 0;
  for (; i + Ahead::kElements <= elements; i += Ahead::kElements, ahead.lines += ahead.step) {
    ask_second_level(ahead.lines[0]);
    add_products(panel, x, shifts, i, acc);
    add_products(panel, x, shifts, i + 1, acc);
    ask_second_level(ahead.lines[1]);
    add_products(panel, x, shifts, i + 2, acc);
    add_products(panel, x, shifts, i + 3, acc);
  }
  for (; i < elements; ++i) add_products(panel, x, shifts, i, acc);
  HWY_UNROLL(14) for (std::size_t p = 0; p < kPixels; ++p) {
    HWY_UNROLL(2) for (std::size_t v = 0; v < kVectors; ++v) {
      // Each strip is summed separately, as in sum_tile().
      float* const sum = sums + p * kPanelFilters + v * kBlockLanes;
      hn::Store(first ? acc[p][v] : hn::Add(acc[p][v], hn::Load(d, sum)), d, sum);
    }
  }
}

// Returns four elements of every fourth row.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const float* in, std::size_t pitch) {
  if constexpr (hn::MaxLanes(D()) <= 4) {
    return hn::LoadU(d, in);
  } else {
    const hn::Half<D> half;
    constexpr std::size_t kRows = hn::MaxLanes(D()) / 2;
    return hn::Combine(d, load_blocks(half, in + kRows * pitch, pitch), load_blocks(half, in, pitch));
  }
}

// Calls take(i, vector) with in[r][i] in lane r, for i below `count`, a multiple of 4.
template <class Take>
HWY_INLINE void for_each_column(const float* HWY_RESTRICT in, std::size_t in_pitch, std::size_t count, Take take) {
  const BlockTag d;
  const hn::RepartitionToWide<BlockTag> wide;
  for (std::size_t i = 0; i < count; i += 4) {
    // Block b of rows[j] is of row 4 b + j.
    BlockVec rows[4];
    HWY_UNROLL(4) for (std::size_t j = 0; j < 4; ++j) rows[j] = load_blocks(d, in + j * in_pitch + i, in_pitch);
    const auto low01 = hn::BitCast(wide, hn::InterleaveLower(d, rows[0], rows[1]));
    const auto high01 = hn::BitCast(wide, hn::InterleaveUpper(d, rows[0], rows[1]));
    const auto low23 = hn::BitCast(wide, hn::InterleaveLower(d, rows[2], rows[3]));
    const auto high23 = hn::BitCast(wide, hn::InterleaveUpper(d, rows[2], rows[3]));
    take(i, hn::BitCast(d, hn::InterleaveLower(wide, low01, low23)));
    take(i + 1, hn::BitCast(d, hn::InterleaveUpper(wide, low01, low23)));
    take(i + 2, hn::BitCast(d, hn::InterleaveLower(wide, high01, high23)));
    take(i + 3, hn::BitCast(d, hn::InterleaveUpper(wide, high01, high23)));
  }
}

// out[i][r] = in[r][i] for kBlockLanes rows r.
HWY_INLINE void transpose_lanes(const float* HWY_RESTRICT in, std::size_t in_pitch, std::size_t count,
                                float* HWY_RESTRICT out) {
  const std::size_t whole = count / 4 * 4;
  for_each_column(in, in_pitch, whole, [&](std::size_t i, BlockVec column) HWY_ATTR {
    hn::Store(column, BlockTag(), out + i * kPanelFilters);
  });
  for (std::size_t i = whole; i < count; ++i)
    for (std::size_t r = 0; r < kBlockLanes; ++r) out[i * kPanelFilters + r] = in[r * in_pitch + i];
}

// Stores the first `count` lanes. Never touches what follows, which may be another thread's.
HWY_INLINE void store_lanes(BlockVec values, std::size_t count, float* out) {
  const BlockTag d;
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  hn::BlendedStore(values, hn::FirstN(d, count), d, out);
#else
  if (count == kBlockLanes) return hn::StoreU(values, d, out);
  HWY_ALIGN float lanes[kBlockLanes];
  hn::Store(values, d, lanes);
  copy_floats(lanes, count, out);
#endif
}

class PanelConvolution {
 public:
  // Returns whether lanes of filters are filled better than lanes of pixels.
  static bool suits(const Conv2dArgs& call_args) {
    const Conv2dArgs args = in_long_rows(call_args);
    const ConvBatch batch = conv_batch(args);
    const auto padded = [](std::uint64_t count, std::uint64_t step) { return (count + step - 1) / step * step; };
    const std::uint64_t filters = args.filters / args.groups;
    // Where both fill their lanes, vectors of pixels need fewer loads.
    const std::uint64_t by_pixels = padded(filters, kTileRows / 3) * padded(batch.places(), kBlockLanes);
    const std::uint64_t by_filters =
        padded(filters, kBlockLanes) * batch.rows * std::max<std::uint64_t>(batch.columns, 4);
    return by_filters < by_pixels;
  }

  explicit PanelConvolution(const CpuCall& call)
      : args_(in_long_rows(call.args<Conv2dArgs>())),
        operands_{call, args_},
        products_(conv_products(args_)),
        panel_(reinterpret_cast<float*>(call.thread_scratch) + conv_shifts(args_)),
        rows_(panel_ + kTileElements * kPanelRows),
        sums_(panel_ + kBlockRows * kTileElements),
        ahead_(reinterpret_cast<const std::byte**>(sums_ + kBlockRows * kSumPitch)),
        planes_(operands_, reinterpret_cast<std::uint32_t*>(call.thread_scratch),
                sums_ + kBlockRows * kSumPitch + Ahead::kFloats, kTilePixels) {}
  PanelConvolution(const PanelConvolution&) = delete;
  PanelConvolution& operator=(const PanelConvolution&) = delete;

  void run() {
    const std::uint64_t filters = args_.filters / args_.groups;
    planes_.for_each_part((filters + kBlockLanes - 1) / kBlockLanes, [&](const Part& part, Range columns,
                                                                         const std::optional<Part>& next) {
      const std::uint64_t first = part.group * filters;
      const Range mine{first + columns.begin * kBlockLanes, first + std::min(filters, columns.end * kBlockLanes)};
      planes_.copy(part);
      multiply(part, mine, next);
    });
  }

 private:
  using Part = ConvPlanes::Part;

  void multiply(const Part& part, Range filters, const std::optional<Part>& next) {
    const std::uint64_t strips = std::max<std::uint64_t>(1, (products_ + kTileElements - 1) / kTileElements);
    const std::uint64_t panels = (filters.end - filters.begin + kPanelFilters - 1) / kPanelFilters;
    const std::uint64_t steps = panels * strips;
    for (std::uint64_t step = 0; step < steps; ++step) {
      const std::uint64_t after = (step + 1) % steps;
      ahead_.clear();
      if (after != 0)
        ask_step(part, panel_of(filters, after / strips), after % strips);
      else if (next)
        ask_step(*next, panel_of(filters, 0), 0);
      if (next) ask_planes(*next, {args_.channels * step / steps, args_.channels * (step + 1) / steps});
      const Range panel = panel_of(filters, step / strips);
      pack(panel, strip_of(step % strips));
      for (std::uint64_t f = panel.begin; f < panel.end; ++f) bias_[f - panel.begin] = operands_.bias(f);
      if (panel.end - panel.begin > kBlockLanes)
        multiply_strip<2>(part, panel, step % strips);
      else
        multiply_strip<1>(part, panel, step % strips);
    }
  }

  // Asks for what a strip of a panel needs.
  void ask_step(const Part& part, Range panel, std::uint64_t strip) {
    ask_weights(panel, strip_of(strip));
    if (strip_of(strip).end == products_) ask_results(part, panel);
  }

  static Range panel_of(Range filters, std::uint64_t panel) {
    const std::uint64_t begin = filters.begin + panel * kPanelFilters;
    return {begin, std::min<std::uint64_t>(begin + kPanelFilters, filters.end)};
  }
  [[nodiscard]] Range strip_of(std::uint64_t strip) const {
    return {strip * kTileElements, std::min<std::uint64_t>((strip + 1) * kTileElements, products_)};
  }

  void ask_weights(Range filters, Range products) {
    if (!operands_.dense_weight) return;
    const std::size_t bytes = info_of(static_cast<DType>(args_.weight_dtype)).block_bytes;
    for (std::uint64_t f = filters.begin; f < filters.end; ++f)
      ahead_.add(operands_.call.inputs[1] + (f * args_.weight_strides[0] + products.begin) * bytes,
                 (products.end - products.begin) * bytes);
  }

  void ask_results(const Part& part, Range filters) {
    const std::size_t bytes = info_of(operands_.x_dtype).block_bytes;
    const bool whole = part.columns.end - part.columns.begin == args_.places[1];
    const std::uint64_t runs = whole ? 1 : part.rows.end - part.rows.begin;
    for (std::uint64_t f = filters.begin; f < filters.end; ++f)
      for (std::uint64_t run = 0; run < runs; ++run) {
        const std::uint64_t row = (part.image * args_.filters + f) * args_.places[0] + part.rows.begin + run;
        ahead_.add(operands_.call.output + (row * args_.places[1] + part.columns.begin) * bytes,
                   part.pixels() / runs * bytes);
      }
  }

  void ask_planes(const Part& part, Range channels) {
    for (std::uint64_t channel = channels.begin; channel < channels.end; ++channel)
      planes_.for_each_row(part, channel, [&](const std::byte* first, std::size_t bytes) { ahead_.add(first, bytes); });
  }

  // Packs weights as [products][kPanelFilters]. Filters past the last are zeros.
  void pack(Range filters, Range products) {
    const std::size_t count = products.end - products.begin;
    const bool plain = operands_.dense_weight && static_cast<DType>(args_.weight_dtype) == DType::F32;
    for (std::uint64_t f = filters.begin; f < filters.end; f += kBlockLanes) {
      float* const out = panel_ + (f - filters.begin);
      if (plain && filters.end - f >= kBlockLanes) {
        const auto* const weights = reinterpret_cast<const float*>(operands_.call.inputs[1]);
        transpose_lanes(weights + f * args_.weight_strides[0] + products.begin, args_.weight_strides[0], count, out);
        continue;
      }
      for (std::size_t r = 0; r < kBlockLanes; ++r)
        if (f + r < filters.end)
          operands_.read_weights(f + r, products.begin, count, rows_ + r * kTileElements);
        else
          zero_floats(count, rows_ + r * kTileElements);
      transpose_lanes(rows_, kTileElements, count, out);
    }
  }

  // The panel stays in the first-level cache while all pixels take it in turn.
  template <std::size_t kVectors>
  void multiply_strip(const Part& part, Range filters, std::uint64_t strip) {
    const Range products = strip_of(strip);
    std::uint64_t rows = part.rows.end - part.rows.begin;
    std::uint64_t columns = part.columns.end - part.columns.begin;
    if (columns == planes_.batch().pitch && columns == args_.places[1]) columns *= std::exchange(rows, 1);
    const std::uint64_t step = planes_.packed() != 0 ? planes_.packed() : equal_part(columns, kTilePixels);
    const std::size_t elements = products.end - products.begin;
    ahead_.spread(rows * ((columns + step - 1) / step), elements);
    float* sums = sums_;
    for (std::uint64_t y = 0; y < rows; ++y)
      for (std::uint64_t column = 0; column < columns; column += step) {
        const std::size_t pixels = std::min(step, columns - column);
        kTiles<kVectors>[pixels - 1](panel_, planes_.at(y, column), planes_.shifts() + products.begin, elements,
                                     ahead_.take(), strip == 0, sums);
        if (products.end == products_)
          write(part, filters, (part.rows.begin + y) * args_.places[1] + part.columns.begin + column, pixels, sums);
        sums += pixels * kPanelFilters;
      }
  }

  using Tile = decltype(&pixel_tile<1, 1>);
  template <std::size_t kVectors, std::size_t... kPixels>
  static constexpr std::array<Tile, kTilePixels> tiles(std::index_sequence<kPixels...>) {
    return {pixel_tile<kVectors, kPixels + 1>...};
  }
  template <std::size_t kVectors>
  static constexpr std::array<Tile, kTilePixels> kTiles = tiles<kVectors>(std::make_index_sequence<kTilePixels>());

  // Writes neighbouring pixels of a panel's filters as soon as their sums are known.
  void write(const Part& part, Range filters, std::uint64_t pixel, std::size_t pixels, const float* sums) const {
    const std::size_t bytes = info_of(operands_.x_dtype).block_bytes;
    const std::uint64_t plane = args_.places[0] * std::uint64_t{args_.places[1]} * bytes;
    for (std::uint64_t f = filters.begin; f < filters.end; f += kBlockLanes)
      for (std::size_t p = 0; p < pixels; p += kBlockLanes) {
        const float* const from = sums + p * kPanelFilters + (f - filters.begin);
        std::byte* const out = operands_.call.output + (part.image * args_.filters + f) * plane + (pixel + p) * bytes;
        const std::size_t rows = std::min<std::uint64_t>(filters.end - f, kBlockLanes);
        write_block(from, bias_ + (f - filters.begin), rows, std::min(pixels - p, kBlockLanes), out, plane);
      }
  }

  // Writes `count` pixels of `rows` filters, whose results are `plane` bytes apart.
  void write_block(const float* sums, const float* bias, std::size_t rows, std::size_t count, std::byte* out,
                   std::uint64_t plane) const {
    const BlockTag d;
    const bool plain = operands_.x_dtype == DType::F32;
    const bool biased = args_.has_bias != 0;
    for_each_column(sums, kPanelFilters, kBlockLanes, [&](std::size_t r, BlockVec values) HWY_ATTR {
      if (r >= rows) return;
      if (biased) values = hn::Add(values, hn::Set(d, bias[r]));
      if (plain) return store_lanes(values, count, reinterpret_cast<float*>(out + r * plane));
      HWY_ALIGN float row[kBlockLanes];
      hn::Store(values, d, row);
      narrow_row(operands_.x_dtype, row, count, out + r * plane);
    });
  }

  const Conv2dArgs args_;
  ConvOperands operands_;
  std::uint64_t products_;
  float* panel_;  // [kTileElements][kPanelFilters]
  float* rows_;   // [kBlockLanes][kTileElements], weights that are not packed from where they are
  float* sums_;   // [kBatchRows][kPanelFilters]
  float bias_[kPanelFilters] = {};
  Ahead ahead_;
  ConvPlanes planes_;
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
