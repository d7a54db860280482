#include "models/metadata.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <utility>

namespace shunt::models {
namespace {

std::unexpected<Error> wrong_type(std::string_view key, std::string_view wanted) {
  return fail(Code::invalid, fmt::format("metadata key \"{}\" is not {}", key, wanted));
}

std::optional<std::int64_t> integer_of(const MetadataValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) return *number;
  if (const auto* number = std::get_if<std::uint64_t>(&value);
      number != nullptr && *number <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return static_cast<std::int64_t>(*number);
  return std::nullopt;
}

}  // namespace

Status Metadata::insert(std::string key, MetadataValue value) {
  const auto [place, inserted] = values_.try_emplace(std::move(key), std::move(value));
  if (!inserted) return fail(Code::invalid, fmt::format("metadata key \"{}\" stands twice", place->first));
  return {};
}

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto place = values_.find(key);
  return place == values_.end() ? nullptr : &place->second;
}

#define SHUNT_FIND(value, key)            \
  const MetadataValue* value = find(key); \
  if (value == nullptr) return fail(Code::invalid, fmt::format("metadata key \"{}\" is missing", key))

Result<std::uint32_t> Metadata::u32(std::string_view key) const {
  SHUNT_FIND(value, key);
  const auto number = integer_of(*value);
  if (!number || *number < 0 || *number > std::numeric_limits<std::uint32_t>::max())
    return wrong_type(key, "a 32-bit count");
  return static_cast<std::uint32_t>(*number);
}

Result<float> Metadata::f32(std::string_view key) const {
  SHUNT_FIND(value, key);
  const auto* number = std::get_if<double>(value);
  if (number == nullptr || !std::isfinite(*number)) return wrong_type(key, "a finite float");
  return static_cast<float>(*number);
}

Result<bool> Metadata::boolean(std::string_view key) const {
  SHUNT_FIND(value, key);
  const auto* flag = std::get_if<bool>(value);
  if (flag == nullptr) return wrong_type(key, "a bool");
  return *flag;
}

Result<std::string_view> Metadata::string(std::string_view key) const {
  SHUNT_FIND(value, key);
  const auto* text = std::get_if<std::string>(value);
  if (text == nullptr) return wrong_type(key, "a string");
  return std::string_view(*text);
}

Result<const std::vector<std::string>*> Metadata::strings(std::string_view key) const {
  SHUNT_FIND(value, key);
  const auto* list = std::get_if<std::vector<std::string>>(value);
  if (list == nullptr) return wrong_type(key, "an array of strings");
  return list;
}

Result<std::vector<float>> Metadata::f32s(std::string_view key) const {
  SHUNT_FIND(value, key);
  const auto* list = std::get_if<std::vector<double>>(value);
  if (list == nullptr) return wrong_type(key, "an array of floats");
  std::vector<float> floats;
  floats.reserve(list->size());
  for (const double number : *list) floats.push_back(static_cast<float>(number));
  return floats;
}

Result<std::vector<std::int32_t>> Metadata::i32s(std::string_view key) const {
  SHUNT_FIND(value, key);
  std::vector<std::int32_t> numbers;
  const auto narrow = [&](const auto& list) {
    numbers.reserve(list.size());
    for (const auto number : list) {
      if (!std::in_range<std::int32_t>(number)) return false;
      numbers.push_back(static_cast<std::int32_t>(number));
    }
    return true;
  };
  const auto* unsigned_list = std::get_if<std::vector<std::uint64_t>>(value);
  const auto* signed_list = std::get_if<std::vector<std::int64_t>>(value);
  if (unsigned_list != nullptr ? narrow(*unsigned_list) : signed_list != nullptr && narrow(*signed_list))
    return numbers;
  return wrong_type(key, "an array of 32-bit integers");
}

Result<std::uint32_t> Metadata::u32_or(std::string_view key, std::uint32_t fallback) const {
  return find(key) == nullptr ? Result<std::uint32_t>(fallback) : u32(key);
}
Result<float> Metadata::f32_or(std::string_view key, float fallback) const {
  return find(key) == nullptr ? Result<float>(fallback) : f32(key);
}
Result<bool> Metadata::boolean_or(std::string_view key, bool fallback) const {
  return find(key) == nullptr ? Result<bool>(fallback) : boolean(key);
}
Result<std::string_view> Metadata::string_or(std::string_view key, std::string_view fallback) const {
  return find(key) == nullptr ? Result<std::string_view>(fallback) : string(key);
}

}  // namespace shunt::models
