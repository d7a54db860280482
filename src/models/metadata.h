// The key-value pairs of a model file, typed. A plain value; reading is safe from many threads.
//
// Numbers keep their file type's class: any integer type is read through u64 or i64, any float through
// f64. Getters check type and range, so callers never trust a file.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "shunt/status.h"

namespace shunt::models {

using MetadataValue =
    std::variant<std::uint64_t, std::int64_t, double, bool, std::string, std::vector<std::uint64_t>,
                 std::vector<std::int64_t>, std::vector<double>, std::vector<bool>, std::vector<std::string>>;

class Metadata {
 public:
  // Errors: invalid where the key is there already.
  [[nodiscard]] Status insert(std::string key, MetadataValue value);
  void set(std::string key, MetadataValue value) { values_.insert_or_assign(std::move(key), std::move(value)); }

  // Null where the key is missing.
  [[nodiscard]] const MetadataValue* find(std::string_view key) const;
  [[nodiscard]] const std::map<std::string, MetadataValue, std::less<>>& all() const { return values_; }

  // Errors: invalid where the key is missing, of another type or out of range; the message names the key.
  [[nodiscard]] Result<std::uint32_t> u32(std::string_view key) const;
  [[nodiscard]] Result<float> f32(std::string_view key) const;
  [[nodiscard]] Result<bool> boolean(std::string_view key) const;
  [[nodiscard]] Result<std::string_view> string(std::string_view key) const;
  // A pointer into this object.
  [[nodiscard]] Result<const std::vector<std::string>*> strings(std::string_view key) const;
  [[nodiscard]] Result<std::vector<float>> f32s(std::string_view key) const;
  [[nodiscard]] Result<std::vector<std::int32_t>> i32s(std::string_view key) const;

  // The fallback where the key is missing; still an error where it has another type.
  [[nodiscard]] Result<std::uint32_t> u32_or(std::string_view key, std::uint32_t fallback) const;
  [[nodiscard]] Result<float> f32_or(std::string_view key, float fallback) const;
  [[nodiscard]] Result<bool> boolean_or(std::string_view key, bool fallback) const;
  [[nodiscard]] Result<std::string_view> string_or(std::string_view key, std::string_view fallback) const;

 private:
  std::map<std::string, MetadataValue, std::less<>> values_;
};

}  // namespace shunt::models
