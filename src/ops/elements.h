// Reads and writes single elements as doubles, for the scalar reference kernels.
//
// Pure functions of their arguments; safe from any thread. Indices count elements.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "ops/quantize/blocks.h"
#include "shunt/tensor.h"

namespace shunt {

template <class T>
inline T load_as(const std::byte* data, std::uint64_t index) {
  T value;
  std::memcpy(&value, data + index * sizeof(T), sizeof(T));
  return value;
}

template <class T>
inline void store_as(std::byte* data, std::uint64_t index, T value) {
  std::memcpy(data + index * sizeof(T), &value, sizeof(T));
}

// REQUIRES: dtype is not quantized.
inline double load_element(DType dtype, const std::byte* data, std::uint64_t index) {
  switch (dtype) {
    case DType::F16:
      return static_cast<double>(f16_to_f32(load_as<std::uint16_t>(data, index)));
    case DType::BF16:
      return static_cast<double>(bf16_to_f32(load_as<std::uint16_t>(data, index)));
    case DType::I32:
      return load_as<std::int32_t>(data, index);
    case DType::I8:
      return load_as<std::int8_t>(data, index);
    case DType::U32:
      return load_as<std::uint32_t>(data, index);
    default:
      return static_cast<double>(load_as<float>(data, index));
  }
}

// Truncates towards zero and clamps to the range of Integer; NaN becomes 0.
template <class Integer>
inline Integer whole_of(double value) {
  using Limits = std::numeric_limits<Integer>;
  if (std::isnan(value)) return 0;
  if (value >= static_cast<double>(Limits::max())) return Limits::max();
  if (value <= static_cast<double>(Limits::min())) return Limits::min();
  return static_cast<Integer>(value);
}

// Rounds to F32 before 16-bit types. REQUIRES: dtype is not quantized.
inline void store_element(DType dtype, std::byte* data, std::uint64_t index, double value) {
  switch (dtype) {
    case DType::F16:
      return store_as(data, index, f32_to_f16(static_cast<float>(value)));
    case DType::BF16:
      return store_as(data, index, f32_to_bf16(static_cast<float>(value)));
    case DType::I32:
      return store_as(data, index, whole_of<std::int32_t>(value));
    case DType::I8:
      return store_as(data, index, whole_of<std::int8_t>(value));
    case DType::U32:
      return store_as(data, index, whole_of<std::uint32_t>(value));
    default:
      return store_as(data, index, static_cast<float>(value));
  }
}

}  // namespace shunt
