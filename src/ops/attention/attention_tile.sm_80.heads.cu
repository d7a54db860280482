// Many rows of queries over cached positions, on tensor cores. A block computes a tile: the rows of some tokens and of
// the heads that share a key head, 16 per warp. It goes through the positions that any of them sees, some at a time,
// with an online softmax in base 2; copies of the next positions run meanwhile.
//
// Queries and weights are sums of one 16-bit number each (arithmetic `halves`) or of several (`exact`), which take as
// many products. Cached numbers of 16 bits are taken as they are; blocks become halves on their way, for `halves`
// alone. Neighbouring tokens of one sequence form a run; a tile with several runs takes them one after the other.
#include "ops/async_copy.cuh"
#include "ops/attention/quants.cuh"
#include "ops/attention/score.cuh"
#include "ops/collective.cuh"

namespace shunt {
namespace {

using namespace attention;

constexpr std::uint32_t kWarp = 32;
constexpr std::uint32_t kNone = ~0U;  // no slot
constexpr std::uint32_t kRing = 4;    // steps whose slots are remembered

// A kernel of this file.
template <std::uint32_t of_, std::uint32_t dim, std::uint32_t query_parts, std::uint32_t weight_parts>
struct Form {
  static constexpr AttentionTile kTile = attention_tile(dim, query_parts);
  static constexpr bool kInBlocks = of_ == dtype::Q8_0;
  static constexpr std::uint32_t kCached = of_;
  static constexpr std::uint32_t kOf = kInBlocks ? std::uint32_t{dtype::F16} : of_;  // of the products
  static constexpr std::uint32_t kDim = dim;
  static constexpr std::uint32_t kQueryParts = query_parts;
  static constexpr std::uint32_t kWeightParts = weight_parts;
  static constexpr std::uint32_t kRows = kTile.rows();
  static constexpr std::uint32_t kThreads = kTile.threads();
  static constexpr std::uint32_t kPositions = kTile.positions;
  static constexpr std::uint32_t kPitch = attention_tile_pitch(dim);
  static constexpr std::uint32_t kStepBytes = kPositions * kPitch;  // of keys, and of values
  static constexpr std::uint32_t kColumns = dim / 16;               // products along a head
};

// The tokens and heads of a block.
struct Place {
  std::uint32_t group;  // query heads per key head
  std::uint32_t kv_head;
  std::uint32_t first_token;
  std::uint32_t tokens;

  // Tiles of the last tokens come first: they take the longest.
  SHUNT_FUNCTION Place(const CudaCall* call, const AttentionArgs& args, std::uint32_t rows) {
    group = args.query.extents[2] / args.kv_heads;
    const std::uint32_t tokens_of_tile = rows / group;
    const std::uint32_t tiles = (args.query.extents[1] + tokens_of_tile - 1) / tokens_of_tile;
    const auto block = static_cast<std::uint32_t>(shunt::group());
    kv_head = block % args.kv_heads;
    first_token = (tiles - 1 - block / args.kv_heads) * tokens_of_tile;
    const std::uint32_t valid =
        valid_rows(args.query.entries, static_cast<Extent>(args.query.extent), parameters_of(call));
    const std::uint32_t left = first_token < valid ? valid - first_token : 0;
    tokens = left < tokens_of_tile ? left : tokens_of_tile;
  }
  SHUNT_FUNCTION bool has_row(std::uint32_t row) const { return row < tokens * group; }
  SHUNT_FUNCTION std::uint32_t token(std::uint32_t row) const { return first_token + row / group; }
  SHUNT_FUNCTION std::uint32_t head(std::uint32_t row) const { return kv_head * group + row % group; }
};

// Neighbouring tokens of one sequence, and the positions that they see.
struct Run {
  std::uint32_t first_token;  // of the tile's
  std::uint32_t end_token;
  std::int32_t sequence;
  std::uint32_t first;  // position that any of them sees
  std::uint32_t end;
  std::uint32_t all_first;  // positions from here to all_end - 1 are seen by all of them
  std::uint32_t all_end;
};

template <std::uint32_t rows>
struct Tokens {
  Visible visible[rows];
  std::int32_t sequences[rows];

  SHUNT_FUNCTION void read(const CudaCall* call, const AttentionArgs& args, const Place& place) {
    if (lane() >= place.tokens) return;
    const std::uint64_t token = std::uint64_t{place.first_token} + lane();
    const std::int32_t position = input_of<std::int32_t>(call, 3)[token * args.table.position_stride];
    const std::int32_t sequence = input_of<std::int32_t>(call, 4)[token * args.table.sequence_stride];
    sequences[lane()] = sequence;
    visible[lane()] = visible_of(args, sequence, position);
  }

  // Returns the run that begins at `first_token`, to each thread of the warp.
  SHUNT_FUNCTION Run run_at(std::uint32_t first_token, std::uint32_t tokens) const {
    Run run{first_token, tokens, sequences[first_token], kNone, 0, 0, kNone};
    for (std::uint32_t i = first_token + lane() % kWarp; i < tokens; i += kWarp)
      if (sequences[i] != run.sequence && i < run.end_token) run.end_token = i;
    run.end_token = smallest_of_warp(run.end_token);
    for (std::uint32_t i = first_token + lane() % kWarp; i < run.end_token; i += kWarp) {
      const Visible seen = visible[i];
      run.all_first = seen.first > run.all_first ? seen.first : run.all_first;
      run.all_end = seen.end < run.all_end ? seen.end : run.all_end;
      if (seen.end == 0) continue;
      run.first = seen.first < run.first ? seen.first : run.first;
      run.end = seen.end > run.end ? seen.end : run.end;
    }
    run.first = smallest_of_warp(run.first);
    run.end = largest_of_warp(run.end);
    run.all_first = largest_of_warp(run.all_first);
    run.all_end = smallest_of_warp(run.all_end);
    return run;
  }
};

// A thread's query rows, g and g + 8 of its warp's, as left operands.
template <class F>
struct Queries {
  static constexpr bool kKept = F::kTile.keeps_query;
  FourWords kept[kKept ? F::kColumns * F::kQueryParts : 1]{};
  SharedAddress shared = 0;  // of [columns, parts, 32] of this warp
  float factors[2]{};

  SHUNT_FUNCTION FourWords operand(std::uint32_t column, std::uint32_t part) const {
    if constexpr (kKept)
      return kept[column * F::kQueryParts + part];
    else
      return load_shared(shared + ((column * F::kQueryParts + part) * kWarp + lane() % kWarp) * 16U);
  }

  SHUNT_FUNCTION void prepare(const CudaCall* call, const AttentionArgs& args, const Place& place) {
    auto* const of_warp = reinterpret_cast<FourWords*>(dynamic_shared() + 4 * F::kStepBytes) +
                          lane() / kWarp * (F::kColumns * F::kQueryParts * kWarp);
    shared = shared_address(of_warp);
    float query[F::kColumns][8];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t row = lane() / kWarp * 16U + lane() % kWarp / 4U + i * 8U;
      read_row(call, args, place, row, i, query);
    }
    SHUNT_UNROLL
    for (std::uint32_t column = 0; column < F::kColumns; ++column) {
      Pairs<F::kOf, F::kQueryParts> pairs[4];
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i) pairs[i].set(query[column][i * 2], query[column][i * 2 + 1]);
      SHUNT_UNROLL
      for (std::uint32_t part = 0; part < F::kQueryParts; ++part) {
        const FourWords four{pairs[0].words[part], pairs[1].words[part], pairs[2].words[part], pairs[3].words[part]};
        const std::uint32_t number = column * F::kQueryParts + part;
        if constexpr (kKept)
          kept[number] = four;
        else
          of_warp[number * kWarp + lane() % kWarp] = four;
      }
    }
  }

 private:
  // Reads the thread's elements of its row i, scaled: pairs i and i + 2 of each column.
  SHUNT_FUNCTION void read_row(const CudaCall* call, const AttentionArgs& args, const Place& place, std::uint32_t row,
                               std::uint32_t i, float (&query)[F::kColumns][8]) {
    const bool has_row = place.has_row(row);
    const float* from = input_of<float>(call, 0) + std::uint64_t{lane() % 4U} * 2U;
    if (has_row)
      from += std::uint64_t{place.token(row)} * args.query.strides[1] +
              std::uint64_t{place.head(row)} * args.query.strides[2];
    const bool in_eights = reinterpret_cast<std::uintptr_t>(from) % sizeof(TwoFloats) == 0;
    float largest = 0.0F;
    SHUNT_UNROLL
    for (std::uint32_t pair = 0; pair < F::kColumns * 2; ++pair) {
      TwoFloats two{};
      if (has_row) two = read_two(from + std::uint64_t{pair} * 8U, in_eights);
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < 2; ++e) {
        query[pair / 2][pair % 2U * 4U + i * 2U + e] = two.values[e];
        largest = kernel_math::larger(largest, kernel_math::abs(two.values[e]));
      }
    }
    SHUNT_UNROLL
    for (std::uint32_t mask = 1; mask < 4; mask *= 2) largest = kernel_math::larger(largest, from_lane(largest, mask));
    const std::int32_t exponent = query_exponent(largest);
    factors[i] = Scoring(args).factor(exponent);
    const float scale = kernel_math::power_of_two(-exponent);
    SHUNT_UNROLL
    for (std::uint32_t column = 0; column < F::kColumns; ++column) {
      SHUNT_UNROLL
      for (std::uint32_t e = 0; e < 4; ++e) query[column][e / 2U * 4U + i * 2U + e % 2U] *= scale;
    }
  }
};

// Copies of keys and values of 16 bits to shared memory, which run while the block computes.
template <class F, bool in_blocks = F::kInBlocks>
struct Copies {
  const std::uint16_t* keys;
  const std::uint16_t* values;
  std::uint32_t slot_elements;

  SHUNT_FUNCTION Copies(const CudaCall* call, const AttentionArgs& args, std::uint32_t kv_head)
      : keys(input_of<std::uint16_t>(call, 1) + std::uint64_t{kv_head} * F::kDim),
        values(input_of<std::uint16_t>(call, 2) + std::uint64_t{kv_head} * F::kDim),
        slot_elements(args.kv_heads * F::kDim) {}

  // Starts to copy the keys and values at these slots; zeros stand for positions without one.
  SHUNT_FUNCTION void begin(const std::uint32_t (&slots)[F::kPositions], SharedAddress keys_to,
                            SharedAddress values_to) {
    constexpr std::uint32_t kPieces = F::kDim / 8;  // of 16 bytes in a head
    constexpr std::uint32_t kAll = F::kPositions * kPieces;
    SHUNT_UNROLL
    for (std::uint32_t first = 0; first < kAll; first += F::kThreads) {
      const std::uint32_t number = first + lane();
      if (kAll % F::kThreads != 0 && number >= kAll) continue;
      const std::uint32_t place = number / kPieces;
      const std::uint32_t piece = number % kPieces;
      const std::uint32_t slot = slots[place];
      const bool exists = slot != kNone;
      const std::uint64_t element = std::uint64_t{exists ? slot : 0} * slot_elements + std::uint64_t{piece} * 8U;
      const std::uint32_t to = place * F::kPitch + piece * 16U;
      copy_sixteen(keys_to + to, keys + element, exists);
      copy_sixteen(values_to + to, values + element, exists);
    }
    commit_copies();
  }
  SHUNT_FUNCTION void end(unsigned char*) {}
};

// The same of blocks: they are in registers while the block computes, and become halves at the end.
template <class F>
struct Copies<F, true> {
  static constexpr std::uint32_t kPieces = F::kDim / 8;  // of eight quants
  static constexpr std::uint32_t kAll = F::kPositions * kPieces;
  static constexpr std::uint32_t kOfThread = (kAll + F::kThreads - 1) / F::kThreads;
  // Eight quants and their scale.
  struct Piece {
    std::uint32_t fours[2];
    std::uint32_t scale;

    SHUNT_FUNCTION void read(const std::uint8_t* head, std::uint32_t piece) {
      const std::uint8_t* const block = head + std::uint64_t{piece / 4U} * kBlockBytes;
      scale = *reinterpret_cast<const std::uint16_t*>(block);
      read_quants<2>(block + 2U + std::uint64_t{piece % 4U} * 8U, false, fours);
    }
    SHUNT_FUNCTION FourWords halves() const {
      const std::uint32_t scales = twice_half(scale, 0);
      FourWords four;
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < 4; ++i)
        four.words[i] = product_of_halves(quants_as_halves(fours[i / 2U], i % 2U), scales);
      return four;
    }
  };

  const std::uint8_t* keys;
  const std::uint8_t* values;
  std::uint64_t slot_bytes;
  Piece of_keys[kOfThread];
  Piece of_values[kOfThread];

  SHUNT_FUNCTION Copies(const CudaCall* call, const AttentionArgs& args, std::uint32_t kv_head)
      : keys(input_of<std::uint8_t>(call, 1) + kv_head * row_bytes(F::kCached, F::kDim)),
        values(input_of<std::uint8_t>(call, 2) + kv_head * row_bytes(F::kCached, F::kDim)),
        slot_bytes(args.kv_heads * row_bytes(F::kCached, F::kDim)) {}

  SHUNT_FUNCTION void begin(const std::uint32_t (&slots)[F::kPositions], SharedAddress, SharedAddress) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kOfThread; ++i) {
      const std::uint32_t number = i * F::kThreads + lane();
      of_keys[i] = {};
      of_values[i] = {};
      if (kAll % F::kThreads != 0 && number >= kAll) continue;
      const std::uint32_t slot = slots[number / kPieces];
      if (slot == kNone) continue;
      of_keys[i].read(keys + slot * slot_bytes, number % kPieces);
      of_values[i].read(values + slot * slot_bytes, number % kPieces);
    }
  }
  SHUNT_FUNCTION void end(unsigned char* step) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < kOfThread; ++i) {
      const std::uint32_t number = i * F::kThreads + lane();
      if (kAll % F::kThreads != 0 && number >= kAll) continue;
      const std::uint32_t to = number / kPieces * F::kPitch + number % kPieces * 16U;
      *reinterpret_cast<FourWords*>(step + to) = of_keys[i].halves();
      *reinterpret_cast<FourWords*>(step + F::kStepBytes + to) = of_values[i].halves();
    }
  }
};

// The cached keys and values of a key head, the slots of the positions of a few steps, and the way of steps to shared
// memory.
template <class F>
struct Cache {
  Copies<F> copies;
  const std::int32_t* pages;
  PageTable table;
  std::uint32_t (&slots)[kRing][F::kPositions];
  SharedAddress memory;  // [2 steps, keys and values, positions, pitch]

  SHUNT_FUNCTION Cache(const CudaCall* call, const AttentionArgs& args, std::uint32_t kv_head,
                       std::uint32_t (&of_steps)[kRing][F::kPositions])
      : copies(call, args, kv_head),
        pages(input_of<std::int32_t>(call, 5)),
        table(args.table),
        slots(of_steps),
        memory(shared_address(dynamic_shared())) {}

  SHUNT_FUNCTION static std::uint32_t offset_of(std::uint32_t step) { return step % 2U * 2U * F::kStepBytes; }
  SHUNT_FUNCTION SharedAddress keys_of(std::uint32_t step) const { return memory + offset_of(step); }
  SHUNT_FUNCTION SharedAddress values_of(std::uint32_t step) const { return keys_of(step) + F::kStepBytes; }

  // Returns the slot of the thread's position of a step.
  SHUNT_FUNCTION std::uint32_t find(const Run& run, std::uint32_t step) const {
    const std::uint32_t position = run.first + step * F::kPositions + lane();
    if (lane() >= F::kPositions || position >= run.end) return kNone;
    return static_cast<std::uint32_t>(state_slot(table, pages, run.sequence, static_cast<std::int64_t>(position)));
  }
  // Remembers it; returns whether the position should have a slot and has none.
  SHUNT_FUNCTION bool remember(const Run& run, std::uint32_t step, std::uint32_t slot) const {
    if (lane() >= F::kPositions) return false;
    slots[step % kRing][lane()] = slot;
    return slot == kNone && run.first + step * F::kPositions + lane() < run.end;
  }
  SHUNT_FUNCTION bool has(std::uint32_t step, std::uint32_t place) const { return slots[step % kRing][place] != kNone; }

  // Bring the keys and values of a step to shared memory, while the block computes in between.
  SHUNT_FUNCTION void begin_copy(std::uint32_t step) {
    copies.begin(slots[step % kRing], keys_of(step), values_of(step));
  }
  SHUNT_FUNCTION void end_copy(std::uint32_t step) { copies.end(dynamic_shared() + offset_of(step)); }

  // Starts with a run: brings its first step and finds the slots of the second. Returns whether a position of the first
  // has no slot.
  SHUNT_FUNCTION bool start(const Run& run, bool& second_has_hole) {
    const bool has_holes = sync_any(remember(run, 0, find(run, 0)));
    begin_copy(0);
    second_has_hole = remember(run, 1, find(run, 1));
    end_copy(0);
    return has_holes;
  }
};

// The online softmax of a thread's rows g and g + 8: sums[c] are of elements 8c + 2t and 8c + 2t + 1.
template <class F>
struct Sums {
  float sums[F::kDim / 8][4]{};
  float largest[2];
  float totals[2];

  // A sink is there from the beginning, without a value. One thread of the four of a row counts it.
  SHUNT_FUNCTION void begin(const CudaCall* call, const AttentionArgs& args, const Place& place) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t row = lane() / kWarp * 16U + lane() % kWarp / 4U + i * 8U;
      largest[i] = place.has_row(row) ? sink_score(call, args, place.head(row)) : kLeast;
      totals[i] = largest[i] > kLeast && lane() % 4U == 0 ? kSinkWeight : 0.0F;
    }
  }

  // Turns the scores of a step into weights. Scores of what is not seen are kLeast.
  SHUNT_FUNCTION void weigh(float (&scores)[F::kPositions / 8][4]) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) {
      float best = largest[i];
      SHUNT_UNROLL
      for (std::uint32_t n = 0; n < F::kPositions / 8; ++n)
        best = kernel_math::larger(best, kernel_math::larger(scores[n][i * 2], scores[n][i * 2 + 1]));
      SHUNT_UNROLL
      for (std::uint32_t mask = 1; mask < 4; mask *= 2) best = kernel_math::larger(best, from_lane(best, mask));
      const float shrink = kernel_math::exp2(largest[i] - best);
      largest[i] = best;
      // If nothing was seen yet, this makes the weights zero.
      const float base = (best == kLeast ? 0.0F : best) - kWeightBits;
      float total = 0.0F;
      SHUNT_UNROLL
      for (std::uint32_t n = 0; n < F::kPositions / 8; ++n) {
        SHUNT_UNROLL
        for (std::uint32_t e = i * 2; e < i * 2 + 2; ++e) {
          scores[n][e] = kernel_math::exp2(scores[n][e] - base);
          total += scores[n][e];
        }
      }
      totals[i] = totals[i] * shrink + total;
      SHUNT_UNROLL
      for (std::uint32_t c = 0; c < F::kDim / 8; ++c) {
        sums[c][i * 2] *= shrink;
        sums[c][i * 2 + 1] *= shrink;
      }
    }
  }

  SHUNT_FUNCTION void store(const CudaCall* call, const AttentionArgs& args, const Place& place) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) {
      SHUNT_UNROLL
      for (std::uint32_t mask = 1; mask < 4; mask *= 2) totals[i] += from_lane(totals[i], mask);
      const std::uint32_t row = lane() / kWarp * 16U + lane() % kWarp / 4U + i * 8U;
      if (!place.has_row(row)) continue;
      const float by = 1.0F / totals[i];
      const std::uint64_t number = std::uint64_t{place.token(row)} * args.query.extents[2] + place.head(row);
      float* const out = output_of<float>(call) + number * F::kDim + lane() % 4U * 2U;
      SHUNT_UNROLL
      for (std::uint32_t c = 0; c < F::kDim / 8; ++c) {
        TwoFloats two{};
        if (totals[i] != 0.0F) two = {{sums[c][i * 2] * by, sums[c][i * 2 + 1] * by}};
        *reinterpret_cast<TwoFloats*>(out + std::uint64_t{c} * 8U) = two;
      }
    }
  }
};

template <class F>
SHUNT_FUNCTION void multiply_keys(const Queries<F>& queries, SharedAddress keys,
                                  float (&scores)[F::kPositions / 8][4]) {
  // Matrices: eight positions and the first eight elements of 16, the other eight elements; then the next positions.
  const SharedAddress row = keys + (lane() % 8U + lane() % kWarp / 16U * 8U) * F::kPitch + lane() / 8U % 2U * 16U;
  SHUNT_UNROLL
  for (std::uint32_t column = 0; column < F::kColumns; ++column) {
    FourWords left[F::kQueryParts];
    SHUNT_UNROLL
    for (std::uint32_t part = 0; part < F::kQueryParts; ++part) left[part] = queries.operand(column, part);
    SHUNT_UNROLL
    for (std::uint32_t n = 0; n < F::kPositions / 16; ++n) {
      const FourWords right = load_matrices(row + n * 16U * F::kPitch + column * 32U);
      SHUNT_UNROLL
      for (std::uint32_t part = 0; part < F::kQueryParts; ++part) {
        add_product<F::kOf>(scores[n * 2], left[part], right.words[0], right.words[1]);
        add_product<F::kOf>(scores[n * 2 + 1], left[part], right.words[2], right.words[3]);
      }
    }
  }
}

template <class F>
SHUNT_FUNCTION void add_values(Sums<F>& sums, SharedAddress values, const float (&weights)[F::kPositions / 8][4]) {
  // Matrices: eight positions and eight elements, the next positions; then the same with the next elements.
  const SharedAddress row = values + lane() % 16U * F::kPitch + lane() % kWarp / 16U * 16U;
  SHUNT_UNROLL
  for (std::uint32_t n = 0; n < F::kPositions / 16; ++n) {
    Pairs<F::kOf, F::kWeightParts> pairs[4];
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 4; ++i)
      pairs[i].set(weights[n * 2 + i / 2][i % 2 * 2], weights[n * 2 + i / 2][i % 2 * 2 + 1]);
    SHUNT_UNROLL
    for (std::uint32_t column = 0; column < F::kColumns; ++column) {
      const FourWords right = load_transposed_matrices(row + n * 16U * F::kPitch + column * 32U);
      SHUNT_UNROLL
      for (std::uint32_t part = 0; part < F::kWeightParts; ++part) {
        const FourWords left{pairs[0].words[part], pairs[1].words[part], pairs[2].words[part], pairs[3].words[part]};
        add_product<F::kOf>(sums.sums[column * 2], left, right.words[0], right.words[1]);
        add_product<F::kOf>(sums.sums[column * 2 + 1], left, right.words[2], right.words[3]);
      }
    }
  }
}

// The positions of a run that a thread's two rows see.
struct Rows {
  Visible visible[2];

  template <class T>
  SHUNT_FUNCTION Rows(const T& tokens, const Place& place, const Run& run) {
    SHUNT_UNROLL
    for (std::uint32_t i = 0; i < 2; ++i) {
      const std::uint32_t row = lane() / kWarp * 16U + lane() % kWarp / 4U + i * 8U;
      const std::uint32_t token = row / place.group;
      visible[i] = {0, 0};
      if (token >= run.first_token && token < run.end_token) visible[i] = tokens.visible[token];
    }
  }
};

template <class F>
SHUNT_FUNCTION void hide_unseen(const Cache<F>& cache, const Run& run, const Rows& rows, std::uint32_t step,
                                float (&scores)[F::kPositions / 8][4]) {
  SHUNT_UNROLL
  for (std::uint32_t n = 0; n < F::kPositions / 8; ++n) {
    SHUNT_UNROLL
    for (std::uint32_t e = 0; e < 2; ++e) {
      const std::uint32_t place = n * 8U + lane() % 4U * 2U + e;
      const std::uint32_t position = run.first + step * F::kPositions + place;
      const bool exists = cache.has(step, place);
      SHUNT_UNROLL
      for (std::uint32_t i = 0; i < 2; ++i)
        if (!exists || position < rows.visible[i].first || position >= rows.visible[i].end)
          scores[n][i * 2 + e] = kLeast;
    }
  }
}

// Takes in the positions of a run with which the cache was started.
template <class F>
SHUNT_FUNCTION void take_in(Cache<F>& cache, const Queries<F>& queries, const Scoring& scoring, const Run& run,
                            const Rows& rows, bool has_holes, bool next_has_hole, Sums<F>& sums) {
  const std::uint32_t steps = (run.end - run.first + F::kPositions - 1) / F::kPositions;
  for (std::uint32_t step = 0; step < steps; ++step) {
    await_copies<0>();
    const bool next_has_holes = sync_any(next_has_hole);
    if (step + 1 < steps) cache.begin_copy(step + 1);
    const std::uint32_t slot = cache.find(run, step + 2);

    float scores[F::kPositions / 8][4]{};
    multiply_keys<F>(queries, cache.keys_of(step), scores);
    scoring.set(scores, queries.factors);
    const std::uint32_t first = run.first + step * F::kPositions;
    if (has_holes || first < run.all_first || first + F::kPositions > run.all_end)
      hide_unseen<F>(cache, run, rows, step, scores);
    sums.weigh(scores);
    add_values<F>(sums, cache.values_of(step), scores);

    if (step + 1 < steps) cache.end_copy(step + 1);
    next_has_hole = cache.remember(run, step + 2, slot);
    has_holes = next_has_holes;
  }
  sync();
}

template <class F>
SHUNT_FUNCTION void attend(const CudaCall* call) {
  SHUNT_SHARED Tokens<F::kRows> tokens;
  SHUNT_SHARED std::uint32_t slots[kRing][F::kPositions];
  const auto& args = arguments_of<AttentionArgs>(call);
  const Place place(call, args, F::kRows);
  if (place.tokens == 0) return;
  tokens.read(call, args, place);
  Cache<F> cache(call, args, place.kv_head, slots);
  const Scoring scoring(args);
  Sums<F> sums;
  sums.begin(call, args, place);
  sync();

  Queries<F> queries;
  bool has_queries = false;
  for (std::uint32_t token = 0; token < place.tokens;) {
    Run run = tokens.run_at(token, place.tokens);
    token = run.end_token;
    if (run.end == 0) continue;
    if (run.first_token != 0 || run.end_token != place.tokens) run.all_end = 0;
    bool second_has_hole = false;
    const bool has_holes = cache.start(run, second_has_hole);
    // Queries are read while the first copies run.
    if (!has_queries) queries.prepare(call, args, place);
    has_queries = true;
    take_in<F>(cache, queries, scoring, run, Rows(tokens, place, run), has_holes, second_has_hole, sums);
  }
  sums.store(call, args, place);
}

}  // namespace
}  // namespace shunt

#define SHUNT_TILE(of, dim, arithmetic, query_parts, weight_parts)                                                    \
  SHUNT_BOUNDED_KERNEL(attention_tile_##dim##_##of##_##arithmetic, shunt::attention_tile(dim, query_parts).threads(), \
                       1) {                                                                                           \
    shunt::attend<shunt::Form<shunt::dtype::of, dim, query_parts, weight_parts>>(call);                               \
  }
// Two halves have 22 bits, three BF16 numbers 24. One BF16 number would have too few, also for `halves`.
#define SHUNT_FOR_HEAD(dim)           \
  SHUNT_TILE(F16, dim, halves, 1, 1)  \
  SHUNT_TILE(F16, dim, exact, 2, 2)   \
  SHUNT_TILE(BF16, dim, halves, 2, 2) \
  SHUNT_TILE(BF16, dim, exact, 3, 2)  \
  SHUNT_IN_BLOCKS(dim, SHUNT_TILE(Q8_0, dim, halves, 1, 1))
#include "ops/each_head.cuh"
