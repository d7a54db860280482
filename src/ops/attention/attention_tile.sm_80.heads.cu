// Many rows of queries over cached positions, on tensor cores. A block computes a tile: the rows of some tokens and of
// the heads that share a key head, 16 per warp. It goes through the positions that any of them sees, some at a time,
// with an online softmax in base 2; copies of the next positions run meanwhile.
//
// Queries and weights are sums of one 16-bit number each (arithmetic `halves`) or of several (`exact`), which take as
// many products. Neighbouring tokens of one sequence form a run; a tile with several runs takes them one after the
// other.
#include "ops/attention/tile_cache.cuh"

namespace shunt {
namespace {

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
