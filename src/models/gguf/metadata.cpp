#include "models/gguf/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>

namespace shunt::models {
namespace {

template <class T>
constexpr bool kIsInteger = std::is_integral_v<T> && !std::is_same_v<T, bool>;

template <class T>
constexpr std::string_view name_of_type() {
#define SHUNT_NAME(name, id, type) \
  if (std::is_same_v<T, type>) return #name;
  SHUNT_METADATA_TYPES(SHUNT_NAME)
#undef SHUNT_NAME
  return "nothing";
}

template <class T>
struct Element {
  using type = void;
};
template <class T>
struct Element<std::vector<T>> {
  using type = T;
};

std::unexpected<Error> wrong_type(std::string_view key, const MetadataValue& value, std::string_view wanted) {
  return fail(Code::invalid,
              fmt::format("metadata key \"{}\" is not {} (its type is {})", key, wanted, type_name(value)));
}

// Returns the value as a T, or nullopt if it is not an integer or does not fit.
template <class T>
std::optional<T> integer_of(const MetadataValue& value) {
  return std::visit(
      [](const auto& number) -> std::optional<T> {
        if constexpr (kIsInteger<std::decay_t<decltype(number)>>)
          if (std::in_range<T>(number)) return static_cast<T>(number);
        return std::nullopt;
      },
      value);
}

}  // namespace

std::string type_name(const MetadataValue& value) {
  return std::visit(
      [](const auto& alternative) -> std::string {
        using T = std::decay_t<decltype(alternative)>;
        using E = typename Element<T>::type;
        if constexpr (std::is_void_v<E>)
          return std::string(name_of_type<T>());
        else
          return fmt::format("array of {}", name_of_type<E>());
      },
      value);
}

std::vector<std::uint32_t>::const_iterator Metadata::place_of(std::string_view key) const {
  return std::ranges::lower_bound(order_, key, {},
                                  [this](std::uint32_t index) { return std::string_view(entries_[index].first); });
}

Status Metadata::insert(std::string key, MetadataValue value) {
  const auto place = place_of(key);
  if (place != order_.end() && entries_[*place].first == key)
    return fail(Code::invalid, fmt::format("metadata key \"{}\" occurs twice", key));
  order_.insert(place, static_cast<std::uint32_t>(entries_.size()));
  entries_.emplace_back(std::move(key), std::move(value));
  return {};
}

void Metadata::set(std::string key, MetadataValue value) {
  const auto place = place_of(key);
  if (place != order_.end() && entries_[*place].first == key) {
    entries_[*place].second = std::move(value);
    return;
  }
  order_.insert(place, static_cast<std::uint32_t>(entries_.size()));
  entries_.emplace_back(std::move(key), std::move(value));
}

void Metadata::erase(std::string_view key) {
  const auto place = place_of(key);
  if (place == order_.end() || entries_[*place].first != key) return;
  const std::uint32_t index = *place;
  order_.erase(place);
  entries_.erase(entries_.begin() + static_cast<std::ptrdiff_t>(index));
  for (std::uint32_t& other : order_)
    if (other > index) --other;
}

const MetadataValue* Metadata::find(std::string_view key) const {
  const auto place = place_of(key);
  return place == order_.end() || entries_[*place].first != key ? nullptr : &entries_[*place].second;
}

#define SHUNT_FIND(value, key)            \
  const MetadataValue* value = find(key); \
  if (value == nullptr) return fail(Code::invalid, fmt::format("metadata key \"{}\" is missing", key))

Result<std::uint32_t> Metadata::u32(std::string_view key) const {
  SHUNT_FIND(value, key);
  const auto number = integer_of<std::uint32_t>(*value);
  if (!number) return wrong_type(key, *value, "a 32-bit count");
  return *number;
}

Result<float> Metadata::f32(std::string_view key) const {
  SHUNT_FIND(value, key);
  double number = std::numeric_limits<double>::quiet_NaN();
  if (const auto* narrow = std::get_if<float>(value)) number = static_cast<double>(*narrow);
  if (const auto* wide = std::get_if<double>(value)) number = *wide;
  if (!(std::abs(number) <= static_cast<double>(std::numeric_limits<float>::max())))
    return wrong_type(key, *value, "a finite 32-bit float");
  return static_cast<float>(number);
}

Result<bool> Metadata::boolean(std::string_view key) const {
  SHUNT_FIND(value, key);
  const auto* flag = std::get_if<bool>(value);
  if (flag == nullptr) return wrong_type(key, *value, "a boolean");
  return *flag;
}

Result<std::string_view> Metadata::string(std::string_view key) const {
  SHUNT_FIND(value, key);
  const auto* text = std::get_if<std::string>(value);
  if (text == nullptr) return wrong_type(key, *value, "a string");
  return std::string_view(*text);
}

Result<const std::vector<std::string>*> Metadata::strings(std::string_view key) const {
  SHUNT_FIND(value, key);
  const auto* list = std::get_if<std::vector<std::string>>(value);
  if (list == nullptr) return wrong_type(key, *value, "an array of strings");
  return list;
}

Result<std::vector<float>> Metadata::f32s(std::string_view key) const {
  SHUNT_FIND(value, key);
  if (const auto* narrow = std::get_if<std::vector<float>>(value)) return *narrow;
  const auto* wide = std::get_if<std::vector<double>>(value);
  if (wide == nullptr) return wrong_type(key, *value, "an array of floats");
  std::vector<float> floats;
  floats.reserve(wide->size());
  for (const double number : *wide) {
    if (std::abs(number) > static_cast<double>(std::numeric_limits<float>::max()))
      return wrong_type(key, *value, "an array of 32-bit floats");
    floats.push_back(static_cast<float>(number));
  }
  return floats;
}

Result<std::vector<std::int32_t>> Metadata::i32s(std::string_view key) const {
  SHUNT_FIND(value, key);
  std::vector<std::int32_t> numbers;
  const bool fits = std::visit(
      [&](const auto& list) {
        if constexpr (kIsInteger<typename Element<std::decay_t<decltype(list)>>::type>) {
          numbers.reserve(list.size());
          for (const auto number : list) {
            if (!std::in_range<std::int32_t>(number)) return false;
            numbers.push_back(static_cast<std::int32_t>(number));
          }
          return true;
        } else {
          return false;
        }
      },
      *value);
  if (!fits) return wrong_type(key, *value, "an array of 32-bit integers");
  return numbers;
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
