// The planes of x that a tiled convolution reads. Included by conv2d_simd.cpp, once per instruction set.
//
// The planes that a batch of pixels reads (ConvBatch) are copied into the thread's scratch with their padding, and
// serve all filters that the thread computes for the batch. A tap reads them at a shift of its own, so that nothing is
// copied once per tap.
#if defined(SHUNT_OPS_CONV2D_PLANES_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef SHUNT_OPS_CONV2D_PLANES_INL_H_
#undef SHUNT_OPS_CONV2D_PLANES_INL_H_
#else
#define SHUNT_OPS_CONV2D_PLANES_INL_H_
#endif

#include "ops/conv2d/conv2d_operands-inl.h"
#include "ops/quantize/block_vectors-inl.h"

HWY_BEFORE_NAMESPACE();
namespace shunt {
namespace HWY_NAMESPACE {

// Asks for a line, to the second-level cache where processors distinguish it.
HWY_INLINE void ask_second_level(const std::byte* line) {
#if HWY_COMPILER_GCC || HWY_COMPILER_CLANG
  __builtin_prefetch(line, 0, 2);
#else
  hwy::Prefetch(line);
#endif
}

class ConvPlanes {
 public:
  // The pixels of a batch, of one image and group.
  struct Part {
    std::uint64_t image;
    std::uint64_t group;
    Range rows;
    Range columns;

    [[nodiscard]] std::uint64_t pixels() const { return (rows.end - rows.begin) * (columns.end - columns.begin); }
  };

  // `shifts` [products] and `planes` [conv_plane_floats] are scratch. `most_pixels`: the most that are multiplied at a
  // time, by which pixels may be packed; 0 if they are not.
  ConvPlanes(const ConvOperands& operands, std::uint32_t* shifts, float* planes, std::uint64_t most_pixels)
      : operands_(operands), args_(operands.args), batch_(conv_batch(args_)), shifts_(shifts), planes_(planes) {
    if (most_pixels != 0 && is_one_row(args_)) packed_ = equal_part(batch_.columns, most_pixels);
    packed_pitch_ = (packed_ + kBlockLanes - 1) / kBlockLanes * kBlockLanes;
    find_shifts();
  }

  [[nodiscard]] const ConvBatch& batch() const { return batch_; }
  // Returns the elements of x under the first product, for pixels from `column` on of a row of the part.
  // REQUIRES: if pixels are packed, `column` is a multiple of their number.
  [[nodiscard]] const float* at(std::uint64_t row, std::uint64_t column) const {
    if (packed_ != 0) return planes_ + column / packed_ * packed_floats();
    return planes_ + row * batch_.pitch + column;
  }
  // Pixels that are packed together, or 0.
  [[nodiscard]] std::uint64_t packed() const { return packed_; }
  // Where in the planes the elements of x are that each product reads.
  [[nodiscard]] const std::uint32_t* shifts() const { return shifts_; }

  // Calls compute(part, columns, next) for what this thread computes of batches times `columns`: a range of columns
  // (of filters) of a part. `next` is the part after it, if there is one.
  template <class Compute>
  void for_each_part(std::uint64_t columns, const Compute& compute) {
    const CpuCall& call = operands_.call;
    const std::uint64_t images = valid_rows(args_.x.entries, static_cast<Extent>(args_.x.extent), *call.parameters);
    const std::uint64_t down = (args_.places[0] + batch_.rows - 1) / batch_.rows;
    const std::uint64_t across = (args_.places[1] + batch_.columns - 1) / batch_.columns;
    const auto part_of = [&](std::uint64_t at) {
      const std::uint64_t y = at / across % down * batch_.rows;
      const std::uint64_t x = at % across * batch_.columns;
      return Part{.image = at / (down * across) / args_.groups,
                  .group = at / (down * across) % args_.groups,
                  .rows = {y, std::min<std::uint64_t>(y + batch_.rows, args_.places[0])},
                  .columns = {x, std::min<std::uint64_t>(x + batch_.columns, args_.places[1])}};
    };
    const Range units = share_of(images * args_.groups * down * across * columns, call.share, call.shares);
    for (std::uint64_t unit = units.begin; unit < units.end;) {
      const std::uint64_t begin = unit % columns;
      const std::uint64_t end = std::min(columns, begin + (units.end - unit));
      const Part part = part_of(unit / columns);
      unit += end - begin;
      compute(part, Range{begin, end}, unit < units.end ? std::optional(part_of(unit / columns)) : std::nullopt);
    }
  }

  // Calls visit(address, bytes) for each row of x that a part reads.
  template <class Visit>
  void for_each_row(const Part& part, std::uint64_t channel, const Visit& visit) const {
    if (!operands_.plain_x) return;
    const std::uint64_t rows = (part.rows.end - part.rows.begin - 1) * args_.stride[0] +
                               std::uint64_t{args_.kernel[0] - 1} * args_.dilation[0] + 1;
    const auto in_x = [&](std::uint64_t column) { return column - std::min<std::uint64_t>(column, args_.padding[1]); };
    const std::uint64_t begin = in_x(part.columns.begin * args_.stride[1]);
    const std::uint64_t last =
        (part.columns.end - 1) * args_.stride[1] + std::uint64_t{args_.kernel[1] - 1} * args_.dilation[1];
    const std::uint64_t end = std::min<std::uint64_t>(args_.x.extents[3], in_x(last + 1));
    if (begin >= end) return;
    for (std::uint64_t i = 0; i < rows; ++i)
      if (const auto row = operands_.row_of(first_of(part, channel), part.rows.begin * args_.stride[0] + i))
        visit(operands_.call.inputs[0] + (*row + begin) * sizeof(float), (end - begin) * sizeof(float));
  }

  // Fills the planes with a part's.
  void copy(const Part& part) {
    if (packed_ != 0) return pack(part);
    const std::uint64_t step_y = batch_.shared ? 1 : args_.dilation[0];
    for (std::uint64_t channel = 0; channel < args_.channels; ++channel) {
      const std::uint64_t from = first_of(part, channel);
      float* out = planes_ + channel * batch_.channel_floats();
      for (std::uint64_t i = 0; i < batch_.planes[0]; ++i, out += batch_.planes[1] * batch_.plane_floats())
        copy_planes(from, part, i * step_y, out);
    }
  }

  // Returns where in x the first pixel of a part is, of a channel of the part's group.
  [[nodiscard]] std::uint64_t first_of(const Part& part, std::uint64_t channel) const {
    return part.image * args_.x.strides[0] + (part.group * args_.channels + channel) * args_.x.strides[1];
  }

 private:
  static constexpr std::uint64_t kChannelsAhead = 2;

  // Copies the elements of a channel of which the first row begins `i` after the first pixel's, a stride apart.
  void copy_planes(std::uint64_t from, const Part& part, std::uint64_t i, float* out) {
    const std::uint64_t beyond = batch_.plane_rows - batch_.rows;
    const std::uint64_t step = batch_.shared ? 1 : args_.dilation[1];
    const std::uint64_t column = part.columns.begin * args_.stride[1];
    for (std::uint64_t y = part.rows.begin; y < part.rows.end + beyond; ++y, out += batch_.pitch) {
      const std::optional<std::uint64_t> row = operands_.row_of(from, y * args_.stride[0] + i);
      if (!row) {
        for (std::uint64_t j = 0; j < batch_.planes[1]; ++j) zero_floats(batch_.pitch, out + j * batch_.plane_floats());
        continue;
      }
      // Rows of channels are far apart, where the processor does not look ahead.
      operands_.prefetch_x(*row + kChannelsAhead * args_.x.strides[1] + column, batch_.columns);
      operands_.read_planes(*row, column, step, batch_.planes[1], batch_.pitch, batch_.plane_floats(), out);
    }
  }

  // A tile of pixels of all channels is contiguous: it fits the first-level cache beside a panel of weights.
  [[nodiscard]] std::uint64_t packed_floats() const { return args_.channels * packed_pitch_ + kRowSlack; }

  void pack(const Part& part) {
    const std::uint64_t columns = part.columns.end - part.columns.begin;
    for (std::uint64_t channel = 0; channel < args_.channels; ++channel) {
      const std::uint64_t from = first_of(part, channel) + part.columns.begin * args_.x.strides[3];
      operands_.prefetch_x(from + kChannelsAhead * args_.x.strides[1], columns);
      float* out = planes_ + channel * packed_pitch_;
      for (std::uint64_t column = 0; column < columns; column += packed_, out += packed_floats())
        pack_pixels(from + column * args_.x.strides[3], columns - column, out);
    }
  }

  // Packs as many pixels of a channel as belong together, of `left`.
  HWY_INLINE void pack_pixels(std::uint64_t at, std::uint64_t left, float* out) const {
    const BlockTag d;
    if (operands_.plain_x && packed_pitch_ == kBlockLanes && left >= kBlockLanes)
      return hn::Store(hn::LoadU(d, reinterpret_cast<const float*>(operands_.call.inputs[0]) + at), d, out);
    operands_.read_x(at, 1, std::min(left, packed_), out);
  }

  void find_shifts() {
    const std::uint64_t taps = std::uint64_t{args_.kernel[0]} * args_.kernel[1];
    const std::uint64_t products = conv_products(args_);
    if (packed_ != 0) {
      for (std::uint64_t i = 0; i < products; ++i) shifts_[i] = static_cast<std::uint32_t>(i * packed_pitch_);
      return;
    }
    for (std::uint64_t i = 0; i < products; ++i)
      shifts_[i] = static_cast<std::uint32_t>(i < taps ? shift_of(i / args_.kernel[1], i % args_.kernel[1])
                                                       : shifts_[i - taps] + batch_.channel_floats());
  }

  [[nodiscard]] std::uint64_t shift_of(std::uint64_t row, std::uint64_t column) const {
    if (!batch_.shared) return (row * args_.kernel[1] + column) * batch_.plane_floats();
    const std::uint64_t y = row * args_.dilation[0];
    const std::uint64_t x = column * args_.dilation[1];
    const std::uint64_t plane = y % args_.stride[0] * batch_.planes[1] + x % args_.stride[1];
    return plane * batch_.plane_floats() + y / args_.stride[0] * batch_.pitch + x / args_.stride[1];
  }

  const ConvOperands& operands_;
  const Conv2dArgs& args_;
  ConvBatch batch_;
  std::uint32_t* shifts_;  // [products]
  float* planes_;          // [channels][planes][plane_rows][pitch], or packed as [tiles][channels][packed_pitch_]
  std::uint64_t packed_ = 0;
  std::uint64_t packed_pitch_ = 0;
};

}  // namespace HWY_NAMESPACE
}  // namespace shunt
HWY_AFTER_NAMESPACE();

#endif  // per-target include guard
