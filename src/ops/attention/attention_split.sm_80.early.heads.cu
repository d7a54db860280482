// Few rows of queries over many positions, on tensor cores, as exactly as in F32: the left operand of a product is up
// to eight rows of queries that share a key head, as the sum of several 16-bit numbers, which fill its other eight
// rows.
//
// Keys and values go from memory to registers as they lie, without shared memory: the order of a head's elements
// within a product is free, so each thread takes 16 bytes at once, and the scores of a product are where the
// product with the values wants its weights. Several blocks share the positions of a tile; the block that ends last
// adds up their sums, in the order of their numbers.
//
// Of a cache in blocks, quants are multiplied. Scales of keys are those of the columns of a product, which they
// multiply afterwards; those of values multiply the weights before.
#include "ops/attention/quants.cuh"
#include "ops/attention/score.cuh"
#include "ops/collective.cuh"
#include "ops/early.cuh"

namespace shunt {
namespace {

using namespace attention;

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kWarps = kAttentionSplitThreads / kWarp;
constexpr std::uint32_t kRows = kAttentionSplitRows;
constexpr std::uint32_t kUnit = 16;                                      // positions that a warp takes at once
constexpr std::uint32_t kLeastUnits = kAttentionSplitPositions / kUnit;  // of a block, if others take the rest
constexpr std::uint32_t kNone = ~0U;                                     // no slot
constexpr std::uint32_t kPlaces = 1U << 3U | 1U << 4U | 1U << 5U;        // the inputs that say where tokens are
constexpr std::uint32_t kItems = 8;                                      // sums that warps put together at once
static_assert(kAttentionSplitEnough / 2 * sizeof(std::uint32_t) <= kCudaCounterBytes);
static_assert(kWarps == kRows);  // a warp prepares each row

// The 16-bit numbers that keys, and values, are as operands. Weights times scales need the range of BF16.
template <std::uint32_t of>
inline constexpr std::uint32_t kKeysAs = of == dtype::Q8_0 ? std::uint32_t{dtype::F16} : of;
template <std::uint32_t of>
inline constexpr std::uint32_t kValuesAs = of == dtype::Q8_0 ? std::uint32_t{dtype::BF16} : of;

// The 16-bit numbers whose sum an element of a query, or a weight, is.
template <std::uint32_t of>
inline constexpr std::uint32_t kQueryParts = of == dtype::F16 ? 2 : 3;
inline constexpr std::uint32_t kWeightParts = 2;

// The block's tile, and its number among those of the tile.
struct Tile {
  AttentionSplit split;
  std::uint32_t number;
  std::uint32_t share;
  std::uint32_t kv_head;
  std::uint32_t first_token;
  std::uint32_t first_head;  // of the group
  std::uint32_t tokens;
  std::uint32_t heads;

  SHUNT_FUNCTION Tile(const CudaCall* call, const AttentionArgs& args) : split(attention_split(args)) {
    const auto block = static_cast<std::uint32_t>(group());
    share = block / split.tiles;
    number = block - share * split.tiles;
    const std::uint32_t rest = number / args.kv_heads;
    kv_head = number - rest * args.kv_heads;
    first_token = rest / split.parts * split.tokens;
    first_head = rest % split.parts * kRows;
    heads = split.group - first_head < split.heads ? split.group - first_head : split.heads;
    const std::uint32_t valid =
        valid_rows(args.query.entries, static_cast<Extent>(args.query.extent), parameters_of(call));
    const std::uint32_t left = first_token < valid ? valid - first_token : 0;
    tokens = left < split.tokens ? left : split.tokens;
  }
  SHUNT_FUNCTION bool has_row(std::uint32_t row) const { return row < tokens * heads; }
  // REQUIRES: has_row(row).
  SHUNT_FUNCTION std::uint32_t token(std::uint32_t row) const { return first_token + row / heads; }
  SHUNT_FUNCTION std::uint32_t head(std::uint32_t row) const {
    return kv_head * split.group + first_head + row % heads;
  }
};

// A thread's token of the tile, if it has one.
struct Token {
  std::int32_t position = -1;
  std::int32_t sequence = -1;

  SHUNT_FUNCTION Token(const CudaCall* call, const AttentionArgs& args, const Tile& tile) {
    if (lane() >= tile.tokens) return;
    const std::uint64_t number = std::uint64_t{tile.first_token} + lane();
    position = input_of<std::int32_t>(call, 3)[number * args.table.position_stride];
    sequence = input_of<std::int32_t>(call, 4)[number * args.table.sequence_stride];
  }
};

// Neighbouring tokens of one sequence, and the units of 16 positions that they see together.
struct Run {
  std::int32_t sequence;
  std::uint32_t first;
  std::uint32_t end;
  std::uint32_t units_before;  // in other runs
};

// The tokens of a block's tile.
struct Tokens {
  Visible visible[kRows];
  std::int32_t sequences[kRows];
  std::uint32_t runs_of[kRows];
  Run runs[kRows];
  std::uint32_t run_count;
  std::uint32_t units;

  // Call it with the thread's token. REQUIRES: all threads call it.
  SHUNT_FUNCTION void put(const AttentionArgs& args, const Tile& tile, const Token& token) {
    if (lane() < tile.tokens) {
      sequences[lane()] = token.sequence;
      visible[lane()] = visible_of(args, token.sequence, token.position);
    }
    sync_warp();
    if (lane() == 0) find_runs(tile.tokens);
  }

 private:
  SHUNT_FUNCTION void find_runs(std::uint32_t tokens) {
    run_count = 0;
    units = 0;
    for (std::uint32_t token = 0; token < tokens; ++run_count) {
      Run run{sequences[token], kNone, 0, units};
      for (; token < tokens && sequences[token] == run.sequence; ++token) {
        runs_of[token] = run_count;
        const Visible seen = visible[token];
        if (seen.end == 0) continue;
        run.first = seen.first < run.first ? seen.first : run.first;
        run.end = seen.end > run.end ? seen.end : run.end;
      }
      if (run.end != 0) units += (run.end - run.first + kUnit - 1) / kUnit;
      runs[run_count] = run;
    }
  }
};

// 16 positions of a run, of which those before `end` exist.
struct Unit {
  std::int32_t sequence = 0;
  std::uint32_t run = 0;
  std::uint32_t first = 0;
  std::uint32_t end = 0;

  SHUNT_FUNCTION Unit(const Tokens& tokens, std::uint32_t number, bool exists) {
    if (!exists) return;
    while (run + 1 < tokens.run_count && tokens.runs[run + 1].units_before <= number) ++run;
    const Run& found = tokens.runs[run];
    sequence = found.sequence;
    first = found.first + (number - found.units_before) * kUnit;
    end = found.end;
  }
};

// The slots of a unit's positions that a thread needs: of its two keys, and of its four values and scores.
struct Slots {
  std::uint32_t keys[2];
  std::uint32_t values[4];

  // Returns the slot of position lane() % 16 of the unit.
  SHUNT_FUNCTION static std::uint32_t find(const PageTable& table, const std::int32_t* pages, const Unit& unit) {
    const std::uint32_t position = unit.first + lane() % kUnit;
    if (position >= unit.end) return kNone;
    return static_cast<std::uint32_t>(state_slot(table, pages, unit.sequence, static_cast<std::int64_t>(position)));
  }
  SHUNT_FUNCTION void share(std::uint32_t found) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) keys[i] = value_of_lane(found, lane() % kWarp / 4U + i * 8U);
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) values[i] = value_of_lane(found, place_of(i));
  }
  // Returns the place in a unit of the thread's position i.
  SHUNT_FUNCTION static std::uint32_t place_of(std::uint32_t i) { return lane() % 4U * 2U + i % 2U + i / 2U * 8U; }
};

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

// The results of all blocks of a tile, as the last block reads them.
struct Found {
  float largest[kAttentionMostSplits][kRows];
  float totals[kAttentionMostSplits][kRows];
};

template <std::uint32_t of, std::uint32_t dim>
struct Shared {
  Tokens tokens;
  Queries<kKeysAs<of>, dim> queries;
  float largest[kWarps][kRows];
  float totals[kWarps][kRows];
  std::uint32_t order;
  union {
    FourFloats items[kWarps][kItems][kWarp];
    Found found;
  };
};

// Where a block leaves what it found of a row: the sums, then the largest score and the total.
SHUNT_FUNCTION float* found_row(const CudaCall* call, const Tile& tile, std::uint32_t dim, std::uint32_t share,
                                std::uint32_t row) {
  const std::uint64_t number = (std::uint64_t{share} * tile.split.tiles + tile.number) * kRows + row;
  return reinterpret_cast<float*>(call->scratch) + number * attention_split_row_floats(dim);
}

SHUNT_FUNCTION void store_four(float* to, const FourFloats& four) { *reinterpret_cast<FourFloats*>(to) = four; }

// Stores four elements of a row of the result from their sums.
SHUNT_FUNCTION void store_result(const CudaCall* call, const AttentionArgs& args, const Tile& tile, std::uint32_t row,
                                 std::uint32_t element, const FourFloats& sums, float largest, float total) {
  const std::uint32_t head = tile.head(row);
  const float sink = sink_score(call, args, head);
  const float top = kernel_math::larger(largest, sink);
  if (sink > kLeast) total = total * kernel_math::exp2(largest - top) + kernel_math::exp2(sink - top) * kSinkWeight;
  const float by = total == 0.0F ? 0.0F : kernel_math::exp2(largest - top) / total;
  FourFloats four;
  SHUNT_UNROLL
  for (std::uint32_t e = 0; e < 4; ++e) four.values[e] = total == 0.0F ? 0.0F : sums.values[e] * by;
  const std::uint64_t number = std::uint64_t{tile.token(row)} * args.query.extents[2] + head;
  store_four(output_of<float>(call) + number * args.query.extents[3] + element, four);
}

// Adds what the block's warps found and stores it: the result if no other block has a share of the tile.
template <std::uint32_t of, std::uint32_t dim>
SHUNT_FUNCTION void merge_warps(const CudaCall* call, const AttentionArgs& args, const Tile& tile, bool is_alone,
                                Shared<of, dim>& shared, Sums<of, dim>& sums) {
  const std::uint32_t warp = lane() / kWarp;
  const std::uint32_t row_of_thread = lane() % kWarp / 4U;
  SHUNT_UNROLL
  for (std::uint32_t mask = 1; mask < 4; mask *= 2) sums.total += from_lane(sums.total, mask);
  if (lane() % 4U == 0) {
    shared.largest[warp][row_of_thread] = sums.largest;
    shared.totals[warp][row_of_thread] = sums.total;
  }
  SHUNT_UNROLL
  for (std::uint32_t first = 0; first < dim / 16; first += kItems) {
    const std::uint32_t count = dim / 16 - first < kItems ? dim / 16 - first : kItems;
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < count; ++i) shared.items[warp][i][lane() % kWarp] = sums.item(first + i);
    sync();
    if (warp < count && tile.has_row(row_of_thread)) {
      const std::uint32_t row = row_of_thread;
      float largest = kLeast;
      SHUNT_UNROLL
      for (std::uint32_t w = 0; w < kWarps; ++w) largest = kernel_math::larger(largest, shared.largest[w][row]);
      float total = 0.0F;
      FourFloats sum{};
      SHUNT_UNROLL
      for (std::uint32_t w = 0; w < kWarps; ++w) {
        const float factor = kernel_math::exp2(shared.largest[w][row] - largest);
        total += shared.totals[w][row] * factor;
        const FourFloats part = shared.items[w][warp][lane() % kWarp];
        SHUNT_UNROLL
        for (std::uint32_t e = 0; e < 4; ++e) sum.values[e] += part.values[e] * factor;
      }
      const std::uint32_t element = Sums<of, dim>::element_of(first + warp, lane() % 4U);
      if (is_alone) {
        store_result(call, args, tile, row, element, sum, largest, total);
      } else {
        float* const to = found_row(call, tile, dim, tile.share, row);
        store_four(to + element, sum);
        if (element == 0) store_four(to + dim, {{largest, total, 0.0F, 0.0F}});
      }
    }
    sync();
  }
}

// Adds what the blocks of a tile found, in the order of their numbers.
template <std::uint32_t dim>
SHUNT_FUNCTION void merge_blocks(const CudaCall* call, const AttentionArgs& args, const Tile& tile,
                                 std::uint32_t blocks, Found& found) {
  constexpr std::uint32_t kAtOnce = 8;
  constexpr std::uint32_t kFours = dim / 4;
  for (std::uint32_t i = lane(); i < blocks * kRows; i += kAttentionSplitThreads) {
    const std::uint32_t row = i % kRows;
    if (!tile.has_row(row)) continue;
    const auto four = __builtin_bit_cast(FourFloats, load_once(found_row(call, tile, dim, i / kRows, row) + dim));
    found.largest[i / kRows][row] = four.values[0];
    found.totals[i / kRows][row] = four.values[1];
  }
  sync();
  for (std::uint32_t i = lane(); i < kRows * kFours; i += kAttentionSplitThreads) {
    const std::uint32_t row = i / kFours;
    if (!tile.has_row(row)) continue;
    float largest = kLeast;
    for (std::uint32_t block = 0; block < blocks; ++block)
      largest = kernel_math::larger(largest, found.largest[block][row]);
    float total = 0.0F;
    FourFloats sum{};
    for (std::uint32_t first = 0; first < blocks; first += kAtOnce) {
      FourWords parts[kAtOnce];
      SHUNT_UNROLL
      for (std::uint32_t b = 0; b < kAtOnce; ++b) {
        parts[b] = {};
        if (first + b < blocks)
          parts[b] = load_once(found_row(call, tile, dim, first + b, row) + std::uint64_t{i % kFours} * 4U);
      }
      SHUNT_UNROLL
      for (std::uint32_t b = 0; b < kAtOnce; ++b) {
        if (first + b >= blocks) continue;
        const float factor = kernel_math::exp2(found.largest[first + b][row] - largest);
        total += found.totals[first + b][row] * factor;
        const auto part = __builtin_bit_cast(FourFloats, parts[b]);
        SHUNT_UNROLL
        for (std::uint32_t e = 0; e < 4; ++e) sum.values[e] += part.values[e] * factor;
      }
    }
    store_result(call, args, tile, row, i % kFours * 4U, sum, largest, total);
  }
}

// Prepares the queries, and takes in the units from `first` to `end` - 1, a warp every eighth. Waits for earlier
// kernels.
template <std::uint32_t of, std::uint32_t dim>
SHUNT_FUNCTION void take_in(const CudaCall* call, const AttentionArgs& args, const Tile& tile, Shared<of, dim>& shared,
                            std::uint32_t first, std::uint32_t end, Sums<of, dim>& sums) {
  constexpr bool kReadsAhead = dim <= 192;  // otherwise there are too few registers
  const PageTable table = args.table;
  const std::int32_t* const pages = input_of<std::int32_t>(call, 5);
  const Scoring scoring(args);
  const std::uint64_t slot_bytes = args.kv_heads * row_bytes(of, dim);
  const std::uint8_t* const keys_at = input_of<std::uint8_t>(call, 1) + tile.kv_head * row_bytes(of, dim);
  const std::uint8_t* const values_at = input_of<std::uint8_t>(call, 2) + tile.kv_head * row_bytes(of, dim);
  const std::uint32_t row = lane() % kWarp / 4U;
  const bool has_row = tile.has_row(row);
  const std::uint32_t token = has_row ? row / tile.heads : 0;
  const Visible visible = has_row ? shared.tokens.visible[token] : Visible{0, 0};
  const std::uint32_t run = shared.tokens.runs_of[token];

  std::uint32_t number = first + lane() / kWarp;
  Unit unit(shared.tokens, number, number < end);
  Slots slots;
  slots.share(Slots::find(table, pages, unit));
  wait_for_earlier_kernels();
  Keys<of, dim> keys;
  Values<of, dim> values;
  if constexpr (kReadsAhead) {
    keys.read(keys_at, slot_bytes, slots);
    values.read(values_at, slot_bytes, slots);
  }
  shared.queries.prepare(call, args, tile);
  sync();
  const float factors[2] = {shared.queries.factors[row], shared.queries.factors[row]};
  // All warps go round equally often; some find nothing in the last round.
  for (std::uint32_t round = first; round < end; round += kWarps) {
    number += kWarps;
    const Unit next_unit(shared.tokens, number, number < end);
    const std::uint32_t found = Slots::find(table, pages, next_unit);
    if constexpr (!kReadsAhead) keys.read(keys_at, slot_bytes, slots);
    float scores[1][4];
    multiply_keys<of, dim>(shared.queries, keys, scores);
    scoring.set(scores, factors);
    Slots next_slots;
    next_slots.share(found);
    if constexpr (kReadsAhead)
      keys.read(keys_at, slot_bytes, next_slots);
    else
      values.read(values_at, slot_bytes, slots);
    bool seen[4];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t position = unit.first + Slots::place_of(i);
      seen[i] = slots.values[i] != kNone && run == unit.run && position >= visible.first && position < visible.end;
    }
    float weights[4];
    weigh(sums, scores[0], seen, weights);
    add_values(sums, values, weights);
    if constexpr (kReadsAhead) values.read(values_at, slot_bytes, next_slots);
    unit = next_unit;
    slots = next_slots;
  }
}

// How the units of a tile are divided: blocks without a share leave at once, so that few positions need no merging.
struct Shares {
  std::uint32_t of_block = 0;  // units
  std::uint32_t blocks = 1;

  SHUNT_FUNCTION Shares(std::uint32_t units, std::uint32_t most) {
    const std::uint32_t wanted = (units + kLeastUnits - 1) / kLeastUnits;
    if (wanted == 0) return;
    const std::uint32_t fewer = wanted < most ? wanted : most;
    of_block = (units + fewer - 1) / fewer;
    blocks = (units + of_block - 1) / of_block;
  }
};

// Computes the block's share of a tile. Returns how many blocks have one, or 0 if nothing is left to do.
template <std::uint32_t of, std::uint32_t dim>
SHUNT_FUNCTION std::uint32_t attend_share(const CudaCall* call, const AttentionArgs& args, const Tile& tile,
                                          Shared<of, dim>& shared) {
  wait_to_read(call, kPlaces);
  const Token token(call, args, tile);
  shared.tokens.put(args, tile, token);
  sync();
  const std::uint32_t units = shared.tokens.units;
  const Shares shares(units, tile.split.splits);
  if (tile.share >= shares.blocks) return 0;
  const std::uint32_t first = tile.share * shares.of_block;
  const std::uint32_t end = first + shares.of_block < units ? first + shares.of_block : units;
  Sums<of, dim> sums;
  take_in<of, dim>(call, args, tile, shared, first, end, sums);
  merge_warps<of, dim>(call, args, tile, shares.blocks == 1, shared, sums);
  return shares.blocks == 1 ? 0 : shares.blocks;
}

template <std::uint32_t of, std::uint32_t dim>
SHUNT_FUNCTION void attend(const CudaCall* call) {
  SHUNT_SHARED Shared<of, dim> shared;
  const auto& args = arguments_of<AttentionArgs>(call);
  let_next_kernel_begin();
  const Tile tile(call, args);
  if (tile.tokens == 0) return wait_for_earlier_kernels();
  const std::uint32_t blocks = attend_share<of, dim>(call, args, tile, shared);
  if (blocks == 0) return;
  if (lane() == 0) {
    std::uint32_t* const counter = reinterpret_cast<std::uint32_t*>(call->scratch - kCudaCounterBytes) + tile.number;
    shared.order = count_block(counter);
    if (shared.order + 1 == blocks) *counter = 0;
  }
  sync();
  if (shared.order + 1 == blocks) merge_blocks<dim>(call, args, tile, blocks, shared.found);
}

}  // namespace
}  // namespace shunt

#define SHUNT_SPLIT(of, dim)                                                                 \
  SHUNT_BOUNDED_KERNEL(attention_split_##dim##_##of, shunt::kAttentionSplitThreads, 1) {     \
    shunt::attend<shunt::dtype::of, dim>(shunt::call_in(launch_copies, launch_shares).call); \
  }
#define SHUNT_FOR_HEAD(dim) \
  SHUNT_SPLIT(F16, dim)     \
  SHUNT_SPLIT(BF16, dim)    \
  SHUNT_IN_BLOCKS(dim, SHUNT_SPLIT(Q8_0, dim))
#include "ops/each_head.cuh"
