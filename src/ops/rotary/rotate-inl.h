// SIMD rotation of heads, shared by rotary and cache; compiled once per instruction set.
//
// Frequencies are computed in double, as turns per position, once per call and thread. A position's fraction of a turn
// is then exact enough for any context length. Sines and cosines are computed once per position, for all its heads.
// Included by x_simd.cpp files after hwy/highway.h, within foreach_target.
#if defined(SHUNT_OPS_ROTARY_ROTATE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_ROTARY_ROTATE_INL_H_
#undef SHUNT_OPS_ROTARY_ROTATE_INL_H_
#else
#define SHUNT_OPS_ROTARY_ROTATE_INL_H_
#endif

#include "ops/float_rows-inl.h"
#include "ops/math_simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

class Rotation {
 public:
  // REQUIRES: `scratch` has rotation_scratch_bytes(head_dim) bytes, aligned to 64. `factors` may be null.
  Rotation(const RotaryArgs& args, const std::byte* factors, std::byte* scratch)
      : args_(args),
        pairs_(args.dims / 2),
        padded_(padded_pairs(args.dims)),
        turns_(reinterpret_cast<double*>(scratch)),
        sines_(reinterpret_cast<float*>(turns_ + padded_)),
        cosines_(sines_ + padded_) {
    const double step = args.dims == 0 ? 1 : std::pow(static_cast<double>(args.base), -2.0 / args.dims);
    double frequency = 1 / (2 * std::numbers::pi);
    for (std::size_t i = 0; i < pairs_; ++i, frequency *= step)
      turns_[i] = factors == nullptr
                      ? frequency
                      : frequency / load_element(DType::F32, factors, i * std::uint64_t{args.factor_stride});
    for (std::size_t i = pairs_; i < padded_; ++i) turns_[i] = 0;
  }

  void set_position(std::int32_t position) {
#if HWY_HAVE_FLOAT64
    const hn::ScalableTag<double> dd;
    const hn::Rebind<float, hn::ScalableTag<double>> dh;
    const auto positions = hn::Set(dd, static_cast<double>(position));
    for (std::size_t i = 0; i < padded_; i += hn::Lanes(dd)) {
      const auto turns = hn::Mul(positions, hn::Load(dd, turns_ + i));
      hn::Store(hn::DemoteTo(dh, hn::Sub(turns, hn::Round(turns))), dh, sines_ + i);
    }
#else
    for (std::size_t i = 0; i < padded_; ++i) {
      const double turns = static_cast<double>(position) * turns_[i];
      sines_[i] = static_cast<float>(turns - std::nearbyint(turns));
    }
#endif
    const Floats d;
    for (std::size_t i = 0; i < padded_; i += hn::Lanes(d)) {
      hn::Vec<Floats> sine;
      hn::Vec<Floats> cosine;
      math::sine_and_cosine_of_turns(d, hn::Load(d, sines_ + i), sine, cosine);
      hn::Store(sine, d, sines_ + i);
      hn::Store(cosine, d, cosines_ + i);
    }
  }

  // x [head_dim] -> out [head_dim], which may be the same memory.
  void apply(const float* x, float* out) const {
    if (args_.halves != 0)
      apply_halves(x, out);
    else
      apply_neighbours(x, out);
    if (x != out) std::memcpy(out + args_.dims, x + args_.dims, (args_.x.extents[3] - args_.dims) * sizeof(float));
  }

 private:
  void apply_halves(const float* x, float* out) const {
    const Floats d;
    std::size_t i = 0;
    for (; i < whole_vectors(pairs_); i += hn::Lanes(d)) {
      const auto a = hn::LoadU(d, x + i);
      const auto b = hn::LoadU(d, x + pairs_ + i);
      const auto sine = hn::Load(d, sines_ + i);
      const auto cosine = hn::Load(d, cosines_ + i);
      hn::StoreU(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), d, out + i);
      hn::StoreU(hn::MulAdd(a, sine, hn::Mul(b, cosine)), d, out + pairs_ + i);
    }
    for (; i < pairs_; ++i) turn(x[i], x[pairs_ + i], i, out[i], out[pairs_ + i]);
  }

  void apply_neighbours(const float* x, float* out) const {
    const Floats d;
    std::size_t i = 0;
    for (; i < whole_vectors(pairs_); i += hn::Lanes(d)) {
      hn::Vec<Floats> a;
      hn::Vec<Floats> b;
      hn::LoadInterleaved2(d, x + 2 * i, a, b);
      const auto sine = hn::Load(d, sines_ + i);
      const auto cosine = hn::Load(d, cosines_ + i);
      hn::StoreInterleaved2(hn::NegMulAdd(b, sine, hn::Mul(a, cosine)), hn::MulAdd(a, sine, hn::Mul(b, cosine)), d,
                            out + 2 * i);
    }
    for (; i < pairs_; ++i) turn(x[2 * i], x[2 * i + 1], i, out[2 * i], out[2 * i + 1]);
  }

  void turn(float a, float b, std::size_t i, float& out_a, float& out_b) const {
    out_a = a * cosines_[i] - b * sines_[i];
    out_b = a * sines_[i] + b * cosines_[i];
  }

  const RotaryArgs& args_;
  std::size_t pairs_;
  std::size_t padded_;
  double* turns_;
  float* sines_;  // at first the fractions of a turn
  float* cosines_;
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();
#endif
