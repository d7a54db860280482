#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <span>

#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"
#include "ops/top_k/top_k.h"

#ifndef SHUNT_OPS_TOP_K_ONCE
#define SHUNT_OPS_TOP_K_ONCE
namespace shunt {
namespace {

// Columns converted to F32 at a time.
constexpr std::size_t kPiece = 4096;

// A number that is greater for the column that comes first; 0: none.
using Key = std::uint64_t;
Key key_of(float value, std::uint32_t column, bool nan_first) {
  std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (value == 0) bits = 0;
  std::uint32_t order = (bits >> 31U) != 0 ? ~bits : bits | 0x80000000U;
  if (value != value) order = nan_first ? ~0U : 0U;  // no number has these
  return Key{order} << 32U | ~column;
}
std::uint32_t column_of(Key key) { return ~static_cast<std::uint32_t>(key); }
// Undoes key_of() but for NaN and the sign of zeros.
float value_of(Key key) {
  const auto order = static_cast<std::uint32_t>(key >> 32U);
  return std::bit_cast<float>((order >> 31U) != 0 ? order & 0x7FFFFFFFU : ~order);
}

// The greatest keys so far, a heap with the least in front once there are `most`.
class Greatest {
 public:
  Greatest(Key* keys, std::size_t most) : keys_(keys), most_(most) {}

  [[nodiscard]] bool is_full() const { return size_ == most_; }
  [[nodiscard]] Key least() const { return keys_[0]; }
  [[nodiscard]] std::span<Key> keys() const { return {keys_, size_}; }
  [[nodiscard]] std::span<Key> missing() const { return {keys_ + size_, most_ - size_}; }

  void add(Key key) {
    if (is_full()) {
      if (key <= least()) return;
      std::ranges::pop_heap(keys(), std::greater());
      keys_[size_ - 1] = key;
      std::ranges::push_heap(keys(), std::greater());
      return;
    }
    keys_[size_++] = key;
    if (is_full()) std::ranges::make_heap(keys(), std::greater());
  }

 private:
  Key* keys_;
  std::size_t most_;
  std::size_t size_ = 0;
};

// If there are few rows, each share has some columns of each, and the second phase joins what they found.
bool cuts_columns(std::uint64_t rows, std::uint64_t columns, std::uint64_t k, std::uint32_t shares) {
  return rows < shares && k * shares * 16 <= columns;
}

}  // namespace
}  // namespace shunt
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/top_k/top_k_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

constexpr std::size_t kStretch = 64;

// Returns whether any of kStretch elements may come before the least of the greatest.
bool has_greater(const float* x, float least, bool nan_first) {
  const Floats d;
  const auto bound = hn::Set(d, least);
  auto found = hn::FirstN(d, 0);
  for (std::size_t i = 0; i < kStretch; i += hn::Lanes(d)) {
    const auto values = hn::LoadU(d, x + i);
    found = hn::Or(found, nan_first ? hn::Not(hn::Le(values, bound)) : hn::Gt(values, bound));
  }
  return !hn::AllFalse(d, found);
}

// Few elements are among the greatest so far, so most stretches are only compared.
void add_piece(const float* x, std::size_t elements, std::uint32_t first, bool nan_first, Greatest& greatest) {
  for (std::size_t i = 0; i < elements;) {
    const std::size_t end = std::min(i + kStretch, elements);
    const float least = greatest.is_full() ? value_of(greatest.least()) : std::nanf("");
    if (end - i < kStretch || std::isnan(least) || has_greater(x + i, least, nan_first))
      for (std::size_t j = i; j < end; ++j)
        greatest.add(key_of(x[j], first + static_cast<std::uint32_t>(j), nan_first));
    i = end;
  }
}

void add_columns(const TopKArgs& args, const CpuCall& call, std::uint64_t row, Range columns, Greatest& greatest) {
  float* const buffer = reinterpret_cast<float*>(call.thread_scratch);
  for (std::uint64_t begin = columns.begin; begin < columns.end; begin += kPiece) {
    const std::size_t elements = std::min<std::uint64_t>(kPiece, columns.end - begin);
    const float* x =
        floats_of(static_cast<DType>(args.x.dtype), call.inputs[0], row_offset(args.x, row) + begin * args.x.strides[3],
                  args.x.strides[3], elements, buffer);
    add_piece(x, elements, static_cast<std::uint32_t>(begin), args.with_values != 0, greatest);
  }
}

void write_row(const TopKArgs& args, const CpuCall& call, std::uint64_t row, std::span<Key> keys) {
  std::ranges::sort(keys, std::greater());
  for (std::size_t j = 0; j < keys.size(); ++j) {
    const std::uint32_t column = column_of(keys[j]);
    const std::uint64_t place = row * args.k + j;
    if (args.with_values == 0) {
      call.out<std::int32_t>()[place] = static_cast<std::int32_t>(column);
      continue;
    }
    const std::uint64_t element = row_offset(args.x, row) + std::uint64_t{column} * args.x.strides[3];
    call.out<float>()[2 * place] =
        static_cast<float>(load_element(static_cast<DType>(args.x.dtype), call.inputs[0], element));
    call.out<float>()[2 * place + 1] = static_cast<float>(column);
  }
}

int run(const CpuCall& call) {
  const auto& args = call.args<TopKArgs>();
  const std::uint64_t columns = args.x.extents[3];
  const std::uint64_t valid = valid_row_count(args.x, *call.parameters);
  auto* const mine = reinterpret_cast<Key*>(call.thread_scratch + kPiece * sizeof(float));
  if (!cuts_columns(row_count(args.x), columns, args.k, call.shares)) {
    const Range rows = share_of(valid, call.share, call.shares);
    for (std::uint64_t row = rows.begin; row < rows.end; ++row) {
      Greatest greatest(mine, args.k);
      add_columns(args, call, row, {0, columns}, greatest);
      write_row(args, call, row, greatest.keys());
    }
    return 0;
  }
  auto* const parts = reinterpret_cast<Key*>(call.shared_scratch);  // [rows, shares, k]
  for (std::uint64_t row = 0; row < valid; ++row) {
    Key* const of_row = parts + row * call.shares * args.k;
    if (call.phase == 0) {
      Greatest greatest(of_row + std::uint64_t{call.share} * args.k, args.k);
      add_columns(args, call, row, share_of(columns, call.share, call.shares, kStretch), greatest);
      std::ranges::fill(greatest.missing(), Key{0});
    } else if (call.share == 0) {
      Greatest greatest(mine, args.k);
      for (std::uint64_t i = 0; i < std::uint64_t{call.shares} * args.k; ++i) greatest.add(of_row[i]);
      write_row(args, call, row, greatest.keys());
    }
  }
  return 0;
}

}  // namespace
}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace shunt {
namespace {

HWY_EXPORT(run);

CpuWork work(const OpCall& call, std::uint32_t shares) {
  const Shape& shape = call.input(0).shape;
  const std::uint64_t k = call.attributes->u32(Attr::k);
  CpuWork work{
      .phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = kPiece * sizeof(float) + k * sizeof(Key)};
  if (cuts_columns(shape.rows(), shape.columns(), k, shares)) {
    work.phases = 2;
    work.shared_scratch_bytes = shape.rows() * shares * k * sizeof(Key);
  }
  return work;
}

}  // namespace

extern const CpuKernel top_k_simd{fits_row_arguments, work, write_arguments<top_k_arguments>,
                                  [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
