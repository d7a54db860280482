// What a tensor is: its element type, its extents and its role in a graph. Plain values without ownership; any thread.
//
// Shapes are written outermost first. A tensor has at most kMaxRank axes. The innermost axis is contiguous in memory
// unless strides say otherwise. Strides and offsets count elements.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>

#include "shunt/status.h"

namespace shunt {

enum class DType : std::uint8_t {
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) name,
#include "ops/dtypes.def"
};

enum class DTypeKind : std::uint8_t { floating, integer, quantized };

struct DTypeInfo {
  std::string_view name;
  std::int32_t gguf_id;
  std::uint32_t block_elements;
  std::uint32_t block_bytes;
  DTypeKind kind;
};

// Returns one row per DType, in the order of the enum.
[[nodiscard]] std::span<const DTypeInfo> dtypes();
[[nodiscard]] const DTypeInfo& info_of(DType dtype);
[[nodiscard]] std::string_view name_of(DType dtype);
// Errors: unsupported, with a list of the names.
[[nodiscard]] Result<DType> dtype_from_name(std::string_view name);
// Errors: unsupported, with a list of the supported types.
[[nodiscard]] Result<DType> dtype_from_gguf_id(std::uint32_t id);
// Returns the dtypes that a KV cache may have. A row of a quantized one, a head, is a whole number of blocks.
[[nodiscard]] std::span<const DType> cache_dtypes();

inline constexpr std::size_t kMaxRank = 4;

class Shape {
 public:
  constexpr Shape() = default;
  constexpr Shape(std::initializer_list<std::uint32_t> extents) {
    for (const std::uint32_t extent : extents)
      if (rank_ < kMaxRank) extents_[rank_++] = extent;
  }

  [[nodiscard]] constexpr std::uint32_t rank() const { return rank_; }
  // REQUIRES: axis < rank().
  [[nodiscard]] constexpr std::uint32_t operator[](std::size_t axis) const { return extents_[axis]; }
  constexpr void set(std::size_t axis, std::uint32_t extent) { extents_[axis] = extent; }
  // REQUIRES: rank() < kMaxRank.
  constexpr void append(std::uint32_t extent) { extents_[rank_++] = extent; }
  // The innermost extent; 1 for a scalar.
  [[nodiscard]] constexpr std::uint32_t columns() const { return rank_ == 0 ? 1 : extents_[rank_ - 1]; }
  // The product of all extents except the innermost. It does not overflow for validated shapes.
  [[nodiscard]] constexpr std::uint64_t rows() const {
    std::uint64_t product = 1;
    for (std::size_t axis = 0; axis + 1 < rank_; ++axis) product *= extents_[axis];
    return product;
  }
  [[nodiscard]] constexpr std::uint64_t elements() const { return rows() * columns(); }
  friend constexpr bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<std::uint32_t, kMaxRank> extents_{};
  std::uint32_t rank_ = 0;
};

// "[2, 3, 4]"
[[nodiscard]] std::string to_string(const Shape& shape);

// Elements between neighbours on each axis. In a contiguous tensor an axis steps over all inner axes.
using Strides = std::array<std::uint64_t, kMaxRank>;
[[nodiscard]] Strides contiguous_strides(const Shape& shape);

// Returns the bytes of a contiguous tensor. Errors: invalid if a row is not a whole number of blocks, or if the product
// does not fit 63 bits.
[[nodiscard]] Result<std::uint64_t> bytes_of(DType dtype, const Shape& shape);

enum class TensorKind : std::uint8_t {
  weight,  // constant, owned by a WeightStore, loaded from a WeightSource
  input,   // written by the caller before each submission
  state,   // lives from one submission to the next, changed by ops
  value,   // computed within a submission
};

}  // namespace shunt
