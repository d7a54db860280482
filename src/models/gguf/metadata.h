// The typed key-value pairs of a model file, in the order of the file. A plain value; reading is safe from many
// threads.
//
// A value keeps the exact type it has in the file, so writing it again changes nothing. Getters accept every type of
// the requested kind that holds the number, and check ranges. Callers therefore need not trust a file.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "shunt/status.h"

namespace shunt::models {

// X(name, type id in a GGUF file, C++ type); ids of https://github.com/ggml-org/ggml/blob/master/docs/gguf.md.
// Id 9 is the array: its values are vectors of these types.
#define SHUNT_METADATA_TYPES(X) \
  X(u8, 0, std::uint8_t)        \
  X(i8, 1, std::int8_t)         \
  X(u16, 2, std::uint16_t)      \
  X(i16, 3, std::int16_t)       \
  X(u32, 4, std::uint32_t)      \
  X(i32, 5, std::int32_t)       \
  X(f32, 6, float)              \
  X(boolean, 7, bool)           \
  X(string, 8, std::string)     \
  X(u64, 10, std::uint64_t)     \
  X(i64, 11, std::int64_t)      \
  X(f64, 12, double)

#define SHUNT_METADATA_SCALAR(name, id, type) , type
#define SHUNT_METADATA_ARRAY(name, id, type) , std::vector<type>
using MetadataValue =
    std::variant<std::monostate SHUNT_METADATA_TYPES(SHUNT_METADATA_SCALAR) SHUNT_METADATA_TYPES(SHUNT_METADATA_ARRAY)>;
#undef SHUNT_METADATA_SCALAR
#undef SHUNT_METADATA_ARRAY

// "u32", "array of string", ...
[[nodiscard]] std::string type_name(const MetadataValue& value);

class Metadata {
 public:
  using Entry = std::pair<std::string, MetadataValue>;

  // Errors: invalid if the key already exists.
  [[nodiscard]] Status insert(std::string key, MetadataValue value);
  // Replaces the value in place, or appends it.
  void set(std::string key, MetadataValue value);
  // Does nothing if the key is missing.
  void erase(std::string_view key);

  // Returns null if the key is missing.
  [[nodiscard]] const MetadataValue* find(std::string_view key) const;
  // All entries, in the order in which the keys came.
  [[nodiscard]] std::span<const Entry> all() const { return entries_; }

  // Errors: invalid if the key is missing, of another type or out of range; the message names the key.
  [[nodiscard]] Result<std::uint32_t> u32(std::string_view key) const;
  [[nodiscard]] Result<float> f32(std::string_view key) const;
  [[nodiscard]] Result<bool> boolean(std::string_view key) const;
  [[nodiscard]] Result<std::string_view> string(std::string_view key) const;
  // Returns a pointer into this object.
  [[nodiscard]] Result<const std::vector<std::string>*> strings(std::string_view key) const;
  [[nodiscard]] Result<std::vector<float>> f32s(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::int32_t>> i32s(std::string_view key) const;

  // Return the fallback if the key is missing. A value of another type is still an error.
  [[nodiscard]] Result<std::uint32_t> u32_or(std::string_view key, std::uint32_t fallback) const;
  [[nodiscard]] Result<float> f32_or(std::string_view key, float fallback) const;
  [[nodiscard]] Result<bool> boolean_or(std::string_view key, bool fallback) const;
  [[nodiscard]] Result<std::string_view> string_or(std::string_view key, std::string_view fallback) const;

 private:
  // The position of `key` in `order_`, or where it would be inserted.
  [[nodiscard]] std::vector<std::uint32_t>::const_iterator place_of(std::string_view key) const;

  std::vector<Entry> entries_;
  std::vector<std::uint32_t> order_;  // indices of entries_, sorted by key
};

}  // namespace shunt::models
