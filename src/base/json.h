// The one type of JSON values. Copies and parses may throw std::bad_alloc as containers do; its destructor needs no
// memory that might be missing. A null that becomes an array by push_back() or an object by [] is left broken where
// memory runs out in it: begin with Json::array() or json_object().
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace shunt {

// What sets our values apart from nlohmann's own, so that nobody else's code meets the allocator below.
template <class T>
class JsonAllocator : public std::allocator<T> {
 public:
  JsonAllocator() = default;
  template <class Other>
  explicit(false) JsonAllocator(const JsonAllocator<Other>& /*other*/) {}
  template <class Other>
  struct rebind {  // NOLINT(readability-identifier-naming): its name in the standard
    using other = JsonAllocator<Other>;
  };
};

using Json = nlohmann::basic_json<nlohmann::ordered_map, std::vector, std::string, bool, std::int64_t, std::uint64_t,
                                  double, JsonAllocator>;

// An object of these. nlohmann's own constructor from a list loses what it has made where memory runs out in the
// middle.
[[nodiscard]] Json json_object(std::initializer_list<std::pair<const char*, Json>> fields);

#if defined(__cpp_exceptions)
// Memory for the destructors of values where the system has none left: 16 MiB that nobody touches before, enough for a
// document of 250,000 values. Throws std::bad_alloc beyond. Any thread.
[[nodiscard]] void* allocate_for_destructor(std::size_t bytes);
void deallocate_from_destructor(void* memory) noexcept;
#endif

}  // namespace shunt

#if defined(__cpp_exceptions)
// nlohmann's destructor moves the values inside an array or object to a std::vector first, so as not to recurse, and is
// noexcept: without memory for that vector the process ends. Arrays themselves have JsonAllocator.
template <>
class std::allocator<shunt::Json> {  // NOLINT(cert-dcl58-cpp): the standard allows it for a program's own type
 public:
  using value_type = shunt::Json;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using propagate_on_container_move_assignment = std::true_type;
  using is_always_equal = std::true_type;

  allocator() = default;
  template <class Other>
  explicit(false) allocator(const std::allocator<Other>& /*other*/) noexcept {}

  [[nodiscard]] shunt::Json* allocate(std::size_t count) {
    return static_cast<shunt::Json*>(shunt::allocate_for_destructor(count * sizeof(shunt::Json)));
  }
  void deallocate(shunt::Json* memory, std::size_t /*count*/) noexcept { shunt::deallocate_from_destructor(memory); }
  bool operator==(const allocator& /*other*/) const noexcept { return true; }
};
#endif
