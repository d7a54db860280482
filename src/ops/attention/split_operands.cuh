// The operands of attention_split, in registers as tensor cores take them, and their products.
//
// Keys and values go from memory to registers as they lie, without shared memory: the order of a head's elements
// within a product is free, so each thread takes 16 bytes at once, and the scores of a product are where the
// product with the values wants its weights.
//
// Of a cache in blocks, quants are multiplied. Scales of keys are those of the columns of a product, which they
// multiply afterwards; those of values multiply the weights before.
#pragma once

#include "ops/attention/quants.cuh"
#include "ops/attention/split_tile.cuh"

namespace shunt {
namespace {

// The 16-bit numbers that keys, and values, are as operands. Weights times scales need the range of BF16.
template <std::uint32_t of>
constexpr std::uint32_t kKeysAs = of == dtype::Q8_0 ? std::uint32_t{dtype::F16} : of;
template <std::uint32_t of>
constexpr std::uint32_t kValuesAs = of == dtype::Q8_0 ? std::uint32_t{dtype::BF16} : of;

// The 16-bit numbers whose sum an element of a query, or a weight, is.
template <std::uint32_t of>
constexpr std::uint32_t kQueryParts = of == dtype::F16 ? 2 : 3;
constexpr std::uint32_t kWeightParts = 2;

struct alignas(8) TwoWords {
  std::uint32_t words[2];
};

// Reads `words` neighbouring words, a thread's part of a stretch of a head.
template <std::uint32_t words>
SHUNT_FUNCTION void read_words(const std::uint16_t* from, std::uint32_t* to) {
  if constexpr (words == 4) {
    const FourWords four = load_once(from);
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) to[i] = four.words[i];
  } else if constexpr (words == 2) {
    const TwoWords two = *reinterpret_cast<const TwoWords*>(from);
    to[0] = two.words[0];
    to[1] = two.words[1];
  } else {
    to[0] = *reinterpret_cast<const std::uint32_t*>(from);
  }
}

// Keys of a unit: column g of the right operand is position g, then position g + 8. Thread 4g + t has elements 8t to
// 8t + 7 of each 32, which are rows 2t, 2t + 1, 2t + 8 and 2t + 9 of two products, and elements 4t to 4t + 3 of the
// last 16.
template <std::uint32_t of, std::uint32_t dim>
struct Keys {
  static constexpr std::uint32_t kWords = dim / 8;
  std::uint32_t words[2][kWords];

  SHUNT_FUNCTION void read(const std::uint8_t* head, std::uint64_t slot_bytes, const Slots& slots) {
    const std::uint32_t t = lane() % 4U;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) {
      SHUNT_UNROLL
      for (std::uint32_t w = 0; w < kWords; ++w) words[i][w] = 0;
      if (slots.keys[i] == kNone) continue;
      const auto* const key = reinterpret_cast<const std::uint16_t*>(head + slots.keys[i] * slot_bytes);
      SHUNT_UNROLL
      for (std::uint32_t j = 0; j < dim / 32; ++j)
        read_words<4>(key + std::uint64_t{j} * 32U + std::uint64_t{t} * 8U, &words[i][j * 4]);
      if constexpr (dim % 32 != 0)
        read_words<2>(key + std::uint64_t{dim / 32} * 32U + std::uint64_t{t} * 4U, &words[i][dim / 32 * 4]);
    }
  }
};

// Of blocks, the thread has the same elements, and the scales of the four positions whose scores it gets.
template <std::uint32_t dim>
struct Keys<dtype::Q8_0, dim> {
  static constexpr std::uint32_t kBlocks = dim / kBlock;
  std::uint32_t fours[2][kBlocks * 2];
  BlockScales<kBlocks> scales[4];

  SHUNT_FUNCTION void read(const std::uint8_t* head, std::uint64_t slot_bytes, const Slots& slots) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) {
      SHUNT_UNROLL
      for (std::uint32_t w = 0; w < kBlocks * 2; ++w) fours[i][w] = 0;
      if (slots.keys[i] == kNone) continue;
      const std::uint8_t* const key = head + slots.keys[i] * slot_bytes + std::uint64_t{lane() % 4U} * 8U + 2U;
      SHUNT_UNROLL
      for (std::uint32_t j = 0; j < kBlocks; ++j)
        read_quants<2>(key + std::uint64_t{j} * kBlockBytes, has_quants_in_fours(dim, j), &fours[i][j * 2]);
    }
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) {
      scales[i] = {};
      if (slots.values[i] != kNone) scales[i].read(head + slots.values[i] * slot_bytes);
    }
  }
};

// Values of a unit: positions are the rows of the right operand, of which a thread has four. Its columns are the
// head's elements: thread 4g + t has elements 8g to 8g + 7 of each 64, of a rest of 32 those from 4g, of 16 those
// from 2g.
template <std::uint32_t of, std::uint32_t dim>
struct Values {
  static constexpr std::uint32_t kWords = dim / 16;
  static constexpr std::uint32_t kWide = dim / 64 * 4;  // words in stretches of 64 elements
  static constexpr std::uint32_t kRest = dim % 64;
  std::uint32_t words[4][kWords];

  SHUNT_FUNCTION void read(const std::uint8_t* head, std::uint64_t slot_bytes, const Slots& slots) {
    const std::uint32_t g = lane() % kWarp / 4U;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) {
      SHUNT_UNROLL
      for (std::uint32_t w = 0; w < kWords; ++w) words[i][w] = 0;
      if (slots.values[i] == kNone) continue;
      const auto* const value = reinterpret_cast<const std::uint16_t*>(head + slots.values[i] * slot_bytes);
      SHUNT_UNROLL
      for (std::uint32_t j = 0; j < kWide / 4; ++j)
        read_words<4>(value + std::uint64_t{j} * 64U + std::uint64_t{g} * 8U, &words[i][j * 4]);
      if constexpr (kRest >= 32)
        read_words<2>(value + std::uint64_t{kWide} * 16U + std::uint64_t{g} * 4U, &words[i][kWide]);
      if constexpr (kRest % 32 != 0) read_words<1>(value + (dim - 16U) + std::uint64_t{g} * 2U, &words[i][kWords - 1]);
    }
  }
};

// Of blocks, elements 4g to 4g + 3 of each, so that the columns of a product have one scale.
template <std::uint32_t dim>
struct Values<dtype::Q8_0, dim> {
  static constexpr std::uint32_t kBlocks = dim / kBlock;
  std::uint32_t fours[4][kBlocks];
  BlockScales<kBlocks> scales[4];

  SHUNT_FUNCTION void read(const std::uint8_t* head, std::uint64_t slot_bytes, const Slots& slots) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) {
      SHUNT_UNROLL
      for (std::uint32_t j = 0; j < kBlocks; ++j) fours[i][j] = 0;
      scales[i] = {};
      if (slots.values[i] == kNone) continue;
      const std::uint8_t* const value = head + slots.values[i] * slot_bytes;
      scales[i].read(value);
      SHUNT_UNROLL
      for (std::uint32_t j = 0; j < kBlocks; ++j)
        read_quants<1>(value + std::uint64_t{j} * kBlockBytes + std::uint64_t{lane() % kWarp / 4U} * 4U + 2U,
                       has_quants_in_fours(dim, j), &fours[i][j]);
    }
  }
};

// The running softmax of a warp: each thread's sums of row g, and of the same row's lower parts.
template <std::uint32_t of, std::uint32_t dim>
struct Sums {
  static constexpr std::uint32_t kItemsOfHead = dim / 16;
  static constexpr std::uint32_t kWide = of == dtype::Q8_0 ? 0 : dim / 64;  // stretches of 64 elements
  static constexpr std::uint32_t kRest = of == dtype::Q8_0 ? 0 : dim % 64;
  float sums[dim / 8][4]{};
  float largest = kLeast;
  float total = 0.0F;

  // Returns the sums of four neighbouring elements, item `i` of the thread; element_of() says which.
  SHUNT_FUNCTION FourFloats item(std::uint32_t i) const {
    FourFloats four;
    const bool is_last = kRest % 32 != 0 && i + 1 == kItemsOfHead;
    const std::uint32_t parity = i < kWide * 4 ? i % 4U / 2U : i % 2U;
    const std::uint32_t first = i < kWide * 4 ? i / 4U * 8U + i % 2U * 4U : kWide * 8 + (i - kWide * 4) / 2U * 4U;
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < 4; ++e) {
      const std::uint32_t product = is_last ? dim / 8 - 2 + e % 2U : first + e;
      const std::uint32_t column = is_last ? e / 2U : parity;
      four.values[e] = sums[product][column] + sums[product][column + 2U];
    }
    return four;
  }
  // Returns the first element of item `i` of thread 4g + t.
  SHUNT_FUNCTION static std::uint32_t element_of(std::uint32_t i, std::uint32_t t) {
    if (i < kWide * 4) return i / 4U * 64U + (2U * t + i % 4U / 2U) * 8U + i % 2U * 4U;
    if (kRest % 32 != 0 && i + 1 == kItemsOfHead) return dim - 16U + 4U * t;
    return kWide * 64 + (i - kWide * 4) / 2U * 32U + (2U * t + i % 2U) * 4U;
  }
};

// The thread's operands of the products with keys: the parts of row g of the queries.
template <std::uint32_t of, std::uint32_t dim>
struct Queries {
  static constexpr std::uint32_t kParts = kQueryParts<of>;
  FourWords parts[(dim + 31) / 32][kParts][kWarp];  // of a last stretch of 16 elements, only two words
  float factors[kRows];

  // A warp prepares a row, a thread eight elements of it.
  SHUNT_FUNCTION void prepare(const CudaCall* call, const AttentionArgs& args, const Tile& tile) {
    const std::uint32_t row = lane() / kWarp;
    const std::uint32_t chunk = lane() % kWarp;
    float query[8]{};
    if (tile.has_row(row) && chunk < dim / 8) {
      const float* const from = input_of<float>(call, 0) + std::uint64_t{tile.token(row)} * args.query.strides[1] +
                                std::uint64_t{tile.head(row)} * args.query.strides[2] + std::uint64_t{chunk} * 8U;
      const bool in_sixteens = is_in_sixteens(from);
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < 2; ++i) {
        const FourFloats four = read_four(from + std::uint64_t{i} * 4U, in_sixteens);
        SHUNT_UNROLL
        for (std::uint32_t e = 0; e < 4; ++e) query[i * 4 + e] = four.values[e];
      }
    }
    float largest = 0.0F;
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < 8; ++e) largest = kernel_math::larger(largest, kernel_math::abs(query[e]));
    SHUNT_UNROLL
    for (std::uint32_t mask = 1; mask < kWarp; mask *= 2)
      largest = kernel_math::larger(largest, from_lane(largest, mask));
    const std::int32_t exponent = query_exponent(largest);
    if (chunk == 0) factors[row] = Scoring(args).factor(exponent);
    if (chunk < dim / 8) put(row, chunk, query, kernel_math::power_of_two(-exponent));
  }

 private:
  SHUNT_FUNCTION void put(std::uint32_t row, std::uint32_t chunk, const float (&query)[8], float scale) {
    Pairs<of, kParts> pairs[4];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i)
      pairs[i].set(query[std::uint64_t{i} * 2U] * scale, query[std::uint64_t{i} * 2U + 1U] * scale);
    SHUNT_UNROLL
    for (std::uint32_t part = 0; part < kParts; ++part) {
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i) {
        const bool is_wide = chunk < dim / 32 * 4;
        const std::uint32_t thread = is_wide ? chunk % 4U : chunk % 2U * 2U + i / 2U;
        parts[chunk / 4][part][row * 4U + thread].words[is_wide ? i : i % 2U] = pairs[i].words[part];
      }
    }
  }
};

// Adds the product of two pairs of columns of the queries, in all their parts, with those of the keys.
template <std::uint32_t of>
SHUNT_FUNCTION void add_scores(float (&scores)[4], const std::uint32_t (&low)[kQueryParts<of>],
                               const std::uint32_t (&high)[kQueryParts<of>], std::uint32_t key_low,
                               std::uint32_t key_high) {
  add_product<of>(scores, {low[0], low[1], high[0], high[1]}, key_low, key_high);
  if constexpr (kQueryParts<of> == 3) add_product<of>(scores, {low[2], 0, high[2], 0}, key_low, key_high);
}

// Products of row g with the thread's four positions of a unit.
template <std::uint32_t of, std::uint32_t dim>
SHUNT_FUNCTION void multiply_keys(const Queries<kKeysAs<of>, dim>& queries, const Keys<of, dim>& keys,
                                  float (&products)[1][4]) {
  constexpr std::uint32_t kParts = kQueryParts<kKeysAs<of>>;
  float sums[2][4]{};
  SHUNT_UNROLL
  for (std::uint32_t j = 0; j < (dim + 31) / 32; ++j) {
    std::uint32_t words[4][kParts];
    SHUNT_UNROLL
    for (std::uint32_t part = 0; part < kParts; ++part) {
      const FourWords four = load_shared(shared_address(&queries.parts[j][part][lane() % kWarp]));
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i) words[i][part] = four.words[i];
    }
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) {
      if constexpr (of == dtype::Q8_0) {
        const std::uint32_t* const fours = &keys.fours[i][j * 2];
        float of_block[4]{};
        SHUNT_UNROLL
        for (std::uint32_t w = 0; w < 2; ++w)
          add_scores<dtype::F16>(of_block, words[w * 2], words[w * 2 + 1], quants_as_halves(fours[w], 0),
                                 quants_as_halves(fours[w], 1));
        SHUNT_UNROLL
        for (std::uint32_t e = 0; e < 4; ++e) sums[i][e] += of_block[e] * keys.scales[i * 2 + e % 2][j];
      } else {
        const std::uint32_t* const key = &keys.words[i][j * 4];
        add_scores<of>(sums[i], words[0], words[1], key[0], key[1]);
        if (j < dim / 32) add_scores<of>(sums[i], words[2], words[3], key[2], key[3]);
      }
    }
  }
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) products[0][i] = sums[i / 2][i % 2] + sums[i / 2][i % 2 + 2];
}

// Returns four weights of row g as a left operand.
template <std::uint32_t of>
SHUNT_FUNCTION FourWords weights_as_left(const float (&weights)[4]) {
  Pairs<of, kWeightParts> pairs[2];
  pairs[0].set(weights[0], weights[1]);
  pairs[1].set(weights[2], weights[3]);
  return {pairs[0].words[0], pairs[0].words[1], pairs[1].words[0], pairs[1].words[1]};
}

// Adds the values of a unit with these weights of row g.
template <std::uint32_t of, std::uint32_t dim>
SHUNT_FUNCTION void add_values(Sums<of, dim>& sums, const Values<of, dim>& values, const float (&weights)[4]) {
  const FourWords left = weights_as_left<of>(weights);
  SHUNT_UNROLL
  for (std::uint32_t w = 0; w < Values<of, dim>::kWords; ++w) {
    SHUNT_UNROLL
    for (std::uint32_t half = 0; half < 2; ++half) {
      const std::uint32_t selector = half == 0 ? 0x5410U : 0x7632U;
      add_product<of>(sums.sums[w * 2 + half], left, byte_permute(values.words[0][w], values.words[1][w], selector),
                      byte_permute(values.words[2][w], values.words[3][w], selector));
    }
  }
}

template <std::uint32_t dim>
SHUNT_FUNCTION void add_values(Sums<dtype::Q8_0, dim>& sums, const Values<dtype::Q8_0, dim>& values,
                               const float (&weights)[4]) {
  constexpr std::uint32_t kAs = kValuesAs<dtype::Q8_0>;
  SHUNT_UNROLL
  for (std::uint32_t j = 0; j < dim / kBlock; ++j) {
    float scaled[4];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) scaled[i] = weights[i] * values.scales[i][j];
    const FourWords left = weights_as_left<kAs>(scaled);
    SHUNT_UNROLL
    for (std::uint32_t n = 0; n < 4; ++n)
      add_product<kAs>(sums.sums[j * 4 + n], left, quants_as_bf16(values.fours[0][j], values.fours[1][j], n),
                       quants_as_bf16(values.fours[2][j], values.fours[3][j], n));
  }
}

// Takes in the scores of a unit and returns their weights. `seen` says which of the four positions row g sees.
template <std::uint32_t of, std::uint32_t dim>
SHUNT_FUNCTION void weigh(Sums<of, dim>& sums, const float (&scores)[4], const bool (&seen)[4], float (&weights)[4]) {
  float best = sums.largest;
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) best = kernel_math::larger(best, seen[i] ? scores[i] : kLeast);
  SHUNT_UNROLL
  for (std::uint32_t mask = 1; mask < 4; mask *= 2) best = kernel_math::larger(best, from_lane(best, mask));
  const float shrink = kernel_math::exp2(sums.largest - best);
  sums.largest = best;
  sums.total *= shrink;
  SHUNT_UNROLL
  for (std::uint32_t i = 0; i < 4; ++i) {
    weights[i] = seen[i] ? kernel_math::exp2(scores[i] - best + kWeightBits) : 0.0F;
    sums.total += weights[i];
  }
  SHUNT_UNROLL
  for (std::uint32_t product = 0; product < dim / 8; ++product) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) sums.sums[product][i] *= shrink;
  }
}

}  // namespace
}  // namespace shunt
