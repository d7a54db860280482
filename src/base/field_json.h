// Structs to and from JSON, with one key per field. A struct lists its fields once, in a function visit_fields(value,
// visit) beside it that calls visit(key, field) for each field. Plain functions; any thread.
#pragma once

#include <concepts>
#include <string>
#include <type_traits>

#include "base/json.h"
#include "shunt/devices.h"

namespace shunt::field_json {

// The parameter type of a struct's visit_fields(), constant or not: FieldsOf<Struct> auto&.
template <class T, class Struct>
concept FieldsOf = std::same_as<std::remove_const_t<T>, Struct>;

// The number of values of an enumeration that name_of() names.
template <class Enum>
struct Count;

template <class Enum>
bool enum_from_json(const Json& json, Enum& value) {
  if (!json.is_string()) return false;
  for (int number = 0; number < Count<Enum>::value; ++number) {
    value = static_cast<Enum>(number);
    if (name_of(value) == json.template get_ref<const std::string&>()) return true;
  }
  return false;
}

template <class T>
Json json_of(const T& value) {
  if constexpr (requires { visit_fields(value, [](const char*, const auto&) {}); }) {
    Json json = Json::object();
    visit_fields(value, [&](const char* key, const auto& field) { json[key] = json_of(field); });
    return json;
  } else if constexpr (requires { typename T::mapped_type; }) {
    Json json = Json::object();
    for (const auto& [key, each] : value) json[key] = json_of(each);
    return json;
  } else if constexpr (std::is_enum_v<T>) {
    return name_of(value);
  } else if constexpr (std::same_as<T, DeviceFeatures>) {
    return json_of(value.list());
  } else if constexpr (requires { value.has_value(); }) {
    return value ? json_of(*value) : Json(nullptr);
  } else if constexpr (requires { typename T::value_type; } && !std::same_as<T, std::string>) {
    Json json = Json::array();
    for (const auto& each : value) json.push_back(json_of(each));
    return json;
  } else {
    return value;
  }
}

template <class T>
bool from_json(const Json& json, T& value) {
  if constexpr (requires { visit_fields(value, [](const char*, auto&) {}); }) {
    bool is_whole = json.is_object();
    visit_fields(value, [&](const char* key, auto& field) {
      const auto found = is_whole ? json.find(key) : json.end();
      is_whole = is_whole && found != json.end() && from_json(*found, field);
    });
    return is_whole;
  } else if constexpr (requires { typename T::mapped_type; }) {
    if (!json.is_object()) return false;
    for (const auto& item : json.items())
      if (!from_json(item.value(), value[item.key()])) return false;
    return true;
  } else if constexpr (std::same_as<T, DeviceFeatures>) {
    if (!json.is_array()) return false;
    for (const Json& name : json) {
      const auto feature = device_feature_from_name(name.is_string() ? name.get<std::string>() : std::string());
      if (!feature) return false;
      value.insert(*feature);
    }
    return true;
  } else if constexpr (std::is_enum_v<T>) {
    return enum_from_json(json, value);
  } else if constexpr (requires { value.has_value(); }) {
    value.reset();
    return json.is_null() || from_json(json, value.emplace());
  } else if constexpr (requires { typename T::value_type; } && !std::same_as<T, std::string>) {
    if (!json.is_array()) return false;
    for (const Json& each : json)
      if (!from_json(each, value.emplace_back())) return false;
    return true;
  } else {
    const bool fits = std::same_as<T, bool>          ? json.is_boolean()
                      : std::same_as<T, std::string> ? json.is_string()
                      : std::floating_point<T>       ? json.is_number()
                                                     : json.is_number_unsigned();
    if (fits) value = json.get<T>();
    return fits;
  }
}

}  // namespace shunt::field_json
