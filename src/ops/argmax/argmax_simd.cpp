#include <algorithm>
#include <limits>

#include "ops/argmax/argmax.h"
#include "ops/elements.h"
#include "ops/kernel_arguments.h"
#include "ops/simd_targets.h"

#ifndef SHUNT_OPS_ARGMAX_ONCE
#define SHUNT_OPS_ARGMAX_ONCE
namespace shunt {
namespace {

// Columns converted to F32 at a time.
constexpr std::size_t kPiece = 4096;

// The first place of the largest number among some columns of a row.
struct Largest {
  float value = -std::numeric_limits<float>::infinity();
  std::uint32_t place = 0;
  std::uint32_t found = 0;  // 0: only NaN so far

  // REQUIRES: `later` is of columns further right.
  void join(const Largest& later) {
    if (later.found != 0 && (found == 0 || later.value > value)) *this = later;
  }
};

// If there are few rows, each share has some columns of each, and the second phase joins the parts.
bool cuts_columns(std::uint64_t rows, std::uint64_t columns, std::uint32_t shares) {
  return rows < shares && columns >= 4096;
}

}  // namespace
}  // namespace shunt
#endif

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "ops/argmax/argmax_simd.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "ops/float_rows-inl.h"
#include "ops/math_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {
namespace {

// Returns the largest number, or -infinity if there is none.
float largest_number(const float* x, std::size_t elements) {
  const Floats d;
  auto largest = hn::Set(d, -std::numeric_limits<float>::infinity());
  std::size_t i = 0;
  for (; i < whole_vectors(elements); i += hn::Lanes(d)) {
    const auto value = hn::LoadU(d, x + i);
    largest = hn::IfThenElse(hn::Gt(value, largest), value, largest);
  }
  float result = math::largest_lane(d, largest);
  for (; i < elements; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

Largest largest_of_piece(const float* x, std::size_t elements) {
  const Floats d;
  const float value = largest_number(x, elements);
  std::size_t i = 0;
  while (i < whole_vectors(elements) && hn::AllFalse(d, hn::Eq(hn::LoadU(d, x + i), hn::Set(d, value))))
    i += hn::Lanes(d);
  for (; i < elements; ++i)
    if (x[i] == value) return {.value = value, .place = static_cast<std::uint32_t>(i), .found = 1};
  return {};
}

Largest largest_of(const ArgmaxArgs& args, const CpuCall& call, std::uint64_t row, Range columns) {
  Largest result;
  for (std::uint64_t begin = columns.begin; begin < columns.end; begin += kPiece) {
    const std::size_t elements = std::min<std::uint64_t>(kPiece, columns.end - begin);
    const float* x =
        floats_of(static_cast<DType>(args.x.dtype), call.inputs[0], row_offset(args.x, row) + begin * args.x.strides[3],
                  args.x.strides[3], elements, reinterpret_cast<float*>(call.thread_scratch));
    Largest piece = largest_of_piece(x, elements);
    piece.place += static_cast<std::uint32_t>(begin);
    result.join(piece);
  }
  return result;
}

int run(const CpuCall& call) {
  const auto& args = call.args<ArgmaxArgs>();
  const std::uint64_t columns = args.x.extents[3];
  const std::uint64_t valid = valid_row_count(args.x, *call.parameters);
  if (!cuts_columns(row_count(args.x), columns, call.shares)) {
    const Range rows = share_of(valid, call.share, call.shares);
    for (std::uint64_t row = rows.begin; row < rows.end; ++row)
      call.out<std::uint32_t>()[row] = largest_of(args, call, row, {0, columns}).place;
    return 0;
  }
  auto* const parts = reinterpret_cast<Largest*>(call.shared_scratch);
  for (std::uint64_t row = 0; row < valid; ++row) {
    if (call.phase == 0) {
      parts[row * call.shares + call.share] =
          largest_of(args, call, row, share_of(columns, call.share, call.shares, 64));
    } else if (call.share == 0) {
      Largest whole;
      for (std::uint32_t i = 0; i < call.shares; ++i) whole.join(parts[row * call.shares + i]);
      call.out<std::uint32_t>()[row] = whole.place;
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
  CpuWork work{.phases = 1, .shared_scratch_bytes = 0, .thread_scratch_bytes = kPiece * sizeof(float)};
  if (cuts_columns(shape.rows(), shape.columns(), shares)) {
    work.phases = 2;
    work.shared_scratch_bytes = shape.rows() * shares * sizeof(Largest);
  }
  return work;
}

}  // namespace

extern const CpuKernel argmax_simd{fits_row_arguments, work, write_arguments<argmax_arguments>,
                                   [](const CpuCall& call) { return HWY_DYNAMIC_DISPATCH(run)(call); }};

}  // namespace shunt
#endif
