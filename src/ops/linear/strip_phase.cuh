// Products of strips with few rows of x: the items of a phase, and the end of a batch of pairs.
#pragma once

#include "ops/linear/strip_ring.cuh"
#include "ops/linear/strip_x.cuh"

namespace shunt {
namespace {

// The places of a thread's columns of x.
template <std::uint32_t of, std::uint32_t x_rows>
struct XColumns {
  using Parts = XParts<of, x_rows>;
  using Weights = Strip<of>;
  const std::uint8_t* even;  // in even groups
  const std::uint8_t* odd;
  const std::uint8_t* thirds;
  const std::uint8_t* sums;
  const float* sizes;

  SHUNT_FUNCTION explicit XColumns(const Parts& parts) {
    const std::uint32_t t = lane() % 4U;
    const std::uint32_t column = lane() % kWarp / 4U % Parts::kColumns;  // columns that are not used repeat others
    even = parts.parts + column * Parts::kPlace + t * 16U;
    odd = parts.parts + (column ^ 1U) * Parts::kPlace + t * 16U;
    thirds = parts.thirds + column / 2U * Parts::kPlace + t * 16U;
    sums = parts.sums;
    sizes = parts.sizes + t % x_rows;
    if constexpr (Parts::kSums != 0) sums += column * (Parts::kSums * 2U) + t % (Parts::kSums / 2U) * 4U;
  }
  // Returns what tile `tile` multiplies of group `group`: the operands of an even and of an odd step.
  SHUNT_FUNCTION const FourWords& parts_of(std::uint32_t chunk, std::uint32_t group, std::uint32_t tile) const {
    const std::uint32_t at = chunk * (Weights::kColumns / 32U) + group;
    if (Parts::kHasThird && tile >= Parts::kTiles)
      return *reinterpret_cast<const FourWords*>(thirds + (at * x_rows + (tile - Parts::kTiles) * 4U) * Parts::kPlace);
    const std::uint8_t* const base = group % 2U == 0 ? even : odd;
    return *reinterpret_cast<const FourWords*>(base + (at * Parts::kColumns + tile * 8U) * Parts::kPlace);
  }
  // Returns the size of the row of x whose parts are the thread's columns of the product.
  SHUNT_FUNCTION float size_of(std::uint32_t chunk, std::uint32_t tile) const {
    return sizes[chunk * x_rows + tile % Parts::kTiles * (x_rows == 8 ? 4U : 0U)];
  }
  SHUNT_FUNCTION std::uint32_t sums_of(std::uint32_t chunk, std::uint32_t tile, std::uint32_t word) const {
    return *reinterpret_cast<const std::uint32_t*>(sums + (chunk * Parts::kColumns + tile * 8U) * (Parts::kSums * 2U) +
                                                   word * 4U);
  }
};

template <std::uint32_t of>
SHUNT_FUNCTION Product multiply_step(const StepHalves& first, const StepHalves& second, std::uint32_t low,
                                     std::uint32_t high, const Product& sums) {
  const std::uint32_t a[4] = {first.low, second.low, first.high, second.high};
  if constexpr (of == dtype::BF16) {
    return multiply_bf16(a, low, high, sums);
  } else {
    return multiply_halves(a, low, high, sums);
  }
}

// Adds to the sums of the rows of the first strip, and of the second.
[[maybe_unused]] SHUNT_FUNCTION void add_scaled(Product& sums, const Product& product, float first, float second) {
  sums.sums[0] += first * product.sums[0];
  sums.sums[1] += first * product.sums[1];
  sums.sums[2] += second * product.sums[2];
  sums.sums[3] += second * product.sums[3];
}

// Adds the products of a group of 32 columns.
template <std::uint32_t of, std::uint32_t x_rows, std::uint32_t tiles>
SHUNT_FUNCTION void multiply_group(const Strip<of>& first, const Strip<of>& second, const XColumns<of, x_rows>& x,
                                   std::uint32_t chunk, std::uint32_t group, Product (&sums)[tiles]) {
  constexpr std::uint32_t kScaled = Strip<of>::kGroupColumns;
  StepHalves a[2];
  StepHalves b[2];
  SHUNT_UNROLL
  for (std::uint32_t s = 0; s < 2; ++s) {
    a[s] = first.step(2U * group + s);
    b[s] = second.step(2U * group + s);
  }
  SHUNT_UNROLL
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    const FourWords parts = x.parts_of(chunk, group, tile);
    Product product = kScaled == 0 ? sums[tile] : Product{};
    SHUNT_UNROLL
    for (std::uint32_t s = 0; s < 2; ++s) {
      product = multiply_step<of>(a[s], b[s], parts.words[std::uint64_t{2} * s], parts.words[std::uint64_t{2} * s + 1U],
                                  product);
      if constexpr (kScaled == 16) {
        add_scaled(sums[tile], product, first.scale(2U * group + s), second.scale(2U * group + s));
        product = Product{};
      }
    }
    if constexpr (kScaled == 0) sums[tile] = product;
    if constexpr (kScaled == 32) add_scaled(sums[tile], product, first.scale(group), second.scale(group));
  }
}

// Adds the products of the minima with sums of x.
template <std::uint32_t of, std::uint32_t x_rows, std::uint32_t tiles>
SHUNT_FUNCTION void multiply_minima(const Strip<of>& first, const Strip<of>& second, const XColumns<of, x_rows>& x,
                                    std::uint32_t chunk, Product (&sums)[tiles]) {
  const OffsetHalves a = first.minima(lane() % 4U);
  const OffsetHalves b = second.minima(lane() % 4U);
  SHUNT_UNROLL
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    Product product;
    if constexpr (XParts<of, x_rows>::kSums == 16) {
      const std::uint32_t both[4] = {a.low, b.low, a.high, b.high};
      product = multiply_halves(both, x.sums_of(chunk, tile, 0), x.sums_of(chunk, tile, 4), Product{});
    } else {
      product = multiply_eight_halves(a.low, b.low, x.sums_of(chunk, tile, 0));
    }
    const float size = x.size_of(chunk, tile);
    add_scaled(sums[tile], product, first.offset_factor() * size, second.offset_factor() * size);
  }
}

// Adds the products of an item: a chunk of both streams with chunk `chunk` of x.
template <std::uint32_t of, std::uint32_t x_rows, std::uint32_t tiles>
SHUNT_FUNCTION void multiply_item(const std::uint8_t* first_chunk, const std::uint8_t* second_chunk,
                                  const XColumns<of, x_rows>& x, std::uint32_t chunk, Product (&sums)[tiles]) {
  using Weights = Strip<of>;
  Weights first;
  Weights second;
  first.read(first_chunk, lane() % kWarp);
  second.read(second_chunk, lane() % kWarp);
  if constexpr (Weights::kHasOffsets) multiply_minima(first, second, x, chunk, sums);
  Product inner[tiles]{};
  SHUNT_UNROLL
  for (std::uint32_t group = 0; group < Weights::kColumns / 32U; ++group)
    multiply_group(first, second, x, chunk, group, inner);
  SHUNT_UNROLL
  for (std::uint32_t tile = 0; tile < tiles; ++tile) {
    const float size = x.size_of(chunk, tile);
    if constexpr (Weights::kHasOuter)
      add_scaled(sums[tile], inner[tile], first.outer() * size, second.outer() * size);
    else
      add_scaled(sums[tile], inner[tile], size, size);
  }
}

// The sums of two batches, which take turns.
SHUNT_FUNCTION float* all_sums() { return reinterpret_cast<float*>(dynamic_shared() + kLinearStripHead); }
SHUNT_FUNCTION void clear_sums(std::uint32_t fours) {
  for (std::uint32_t i = lane(); i < fours; i += kThreads)
    reinterpret_cast<FourFloats*>(all_sums())[i] = {{0.0F, 0.0F, 0.0F, 0.0F}};
}

// The place of a warp's sum in those of a buffer.
template <std::uint32_t x_rows>
SHUNT_FUNCTION std::uint32_t sum_place(std::uint32_t pair, std::uint32_t n, std::uint32_t row) {
  return ((pair * x_rows + n) * kPairRows + row) * kWarps;
}

// Adds what the warp has of a pair to its place, and clears it. Thread 4 g + t has rows g and g + 8 of the pair; of the
// product's columns it has the parts of one row of x in each tile.
template <std::uint32_t of, std::uint32_t x_rows, std::uint32_t tiles>
SHUNT_FUNCTION void add_to_pair(float* sums, std::uint32_t pair, Product (&products)[tiles]) {
  using Parts = XParts<of, x_rows>;
  constexpr float kLow = Parts::kHasThird ? 1.0F : 0x1p-11F;
  SHUNT_UNROLL
  for (std::uint32_t tile = 0; tile < Parts::kTiles; ++tile) {
    const std::uint32_t n = tile * 4U + lane() % 4U;
    SHUNT_UNROLL
    for (std::uint32_t half = 0; half < 2; ++half) {
      float value = products[tile].sums[2U * half + 1U] * kLow;
      if constexpr (Parts::kHasThird) value += products[Parts::kTiles + tile].sums[2U * half];
      value += products[tile].sums[2U * half];
      if (n < x_rows) sums[sum_place<x_rows>(pair, n, half * 8U + lane() % kWarp / 4U) + lane() / kWarp] += value;
    }
  }
  SHUNT_UNROLL
  for (std::uint32_t tile = 0; tile < tiles; ++tile) products[tile] = Product{};
}

// ---- The products of a phase.

// A warp's place in the ring.
struct Place {
  std::uint32_t round = 0;
  std::uint32_t slot = 0;
  std::uint32_t parity = 0;
};

// Leaves the stage that the warp has read. The last warp fills it again. A Ring has the numbers of its rounds and of
// its stages, and fill(round, slot).
template <class Ring>
SHUNT_FUNCTION void leave(Place& place, const Ring& ring) {
  sync_warp();
  if (lane() % kWarp == 0 && place.round + ring.stages < ring.rounds &&
      count_up(&head().left[place.slot]) == kWarps - 1) {
    head().left[place.slot] = 0;
    ring.fill(place.round + ring.stages, place.slot);
  }
  ++place.round;
  if (++place.slot == ring.stages) {
    place.slot = 0;
    place.parity ^= 1U;
  }
}

// Multiplies the items of a phase of `phase_rounds` rounds: `chunks` chunks of `pairs` pairs.
template <std::uint32_t of, std::uint32_t x_rows, class Ring>
SHUNT_FUNCTION void multiply_phase(Place& place, const Ring& ring, const XColumns<of, x_rows>& x,
                                   std::uint32_t phase_rounds, std::uint32_t pairs, std::uint32_t chunks, float* sums) {
  constexpr std::uint32_t kBytes = Strip<of>::kBytes;
  constexpr std::uint64_t kStageBytes = std::uint64_t{2} * kWarps * kBytes;
  const std::uint32_t warp = lane() / kWarp;
  const std::uint8_t* const stages = stage_at<kBytes>(ring.at, 0) + warp * kBytes;
  Product products[XParts<of, x_rows>::kAllTiles]{};
  std::uint32_t chunk = warp;
  std::uint32_t pair = 0;
  for (; chunk >= chunks; chunk -= chunks) ++pair;
  for (std::uint32_t left = phase_rounds; left != 0; --left) {
    wait(&head().full[place.slot], place.parity);
    const std::uint8_t* const at = stages + place.slot * kStageBytes;
    if (pair < pairs) multiply_item(at, at + std::uint64_t{kWarps} * kBytes, x, chunk, products);
    leave(place, ring);
    const std::uint32_t done = pair;
    for (chunk += kWarps; chunk >= chunks; chunk -= chunks) ++pair;
    if (pair != done && done < pairs) add_to_pair<of, x_rows>(sums, done, products);
  }
}

// ---- The end of a batch.

// Returns the sum of a row over the warps, and clears it if there is another batch. Neighbours begin with different
// fours, which are in different banks; the sum has the same terms in each order.
template <std::uint32_t x_rows>
SHUNT_FUNCTION float take_sum(float* sums, std::uint32_t pair, std::uint32_t n, std::uint32_t row, bool clears) {
  static_assert(kWarps == 16);
  auto* const fours = reinterpret_cast<FourFloats*>(sums + sum_place<x_rows>(pair, n, row));
  float parts[4];
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) {
    const std::uint32_t place = i ^ (lane() / 2U % 4U);
    const FourFloats four = fours[place];
    if (clears) fours[place] = {{0.0F, 0.0F, 0.0F, 0.0F}};
    parts[i] = (four.values[0] + four.values[1]) + (four.values[2] + four.values[3]);
  }
  return (parts[0] + parts[1]) + (parts[2] + parts[3]);
}

// An output of a batch.
template <std::uint32_t x_rows>
struct Output {
  std::uint32_t pair;
  std::uint32_t n;
  std::uint32_t row;  // of the pair

  SHUNT_FUNCTION Output(const LinearArgs& args, std::uint32_t index) {
    static_assert(kPairRows == 16);
    const std::uint32_t bits = args.has_up != 0 ? 3U : 4U;  // of a row of a pair
    row = index & ((1U << bits) - 1U);
    n = (index >> bits) % x_rows;
    pair = (index >> bits) / x_rows;
  }
  SHUNT_FUNCTION static std::uint32_t count(const LinearArgs& args, std::uint32_t pairs) {
    return pairs * x_rows * (args.has_up != 0 ? 8U : kPairRows);
  }
};

// Returns the residual of an output, if its row of x exists.
template <std::uint32_t x_rows>
SHUNT_FUNCTION float residual_of(const CudaCall& call, const LinearArgs& args, const WeightRowsOfBlock& weight,
                                 const Output<x_rows>& output, std::uint32_t first_pair) {
  const std::uint32_t pair = first_pair + output.pair;
  const bool exists = (x_rows == 1 || output.n < linear_capacity(args)) && weight.has_row(pair, output.row);
  if (args.has_residual == 0 || !exists) return 0.0F;
  return fresh_float(input_of<float>(&call, 2) + offset_of<x_rows>(args, args.residual_strides, output.n) +
                     weight.row_of(pair, output.row));
}

// Stores the outputs of a batch of `pairs` pairs. `early` is the residual of the thread's first one in the first batch.
template <std::uint32_t of, std::uint32_t x_rows>
SHUNT_FUNCTION void finish(const CudaCall& call, const LinearArgs& args, const WeightRowsOfBlock& weight, float* sums,
                           std::uint32_t first_pair, std::uint32_t pairs, bool clears, float early) {
  const bool has_up = args.has_up != 0;
  for (std::uint32_t i = lane(); i < Output<x_rows>::count(args, pairs); i += kThreads) {
    const Output<x_rows> output(args, i);
    const float factor = head().factors[output.n] / Strip<of>::kOne;
    const auto total = [&](std::uint32_t row) {
      return take_sum<x_rows>(sums, output.pair, output.n, row, clears) * factor;
    };
    float sum = total(output.row);
    if (has_up) sum = sum / (1.0F + kernel_math::exp(-sum)) * total(output.row + 8U);
    if (output.n >= head().rows || !weight.has_row(first_pair + output.pair, output.row)) continue;
    sum += first_pair == 0 && i == lane() ? early : residual_of(call, args, weight, output, first_pair);
    output_of<float>(&call)[offset_of<x_rows>(args, args.out_strides, output.n) +
                            weight.row_of(first_pair + output.pair, output.row)] = sum;
  }
}

}  // namespace
}  // namespace shunt
