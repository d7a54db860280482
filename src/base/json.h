// The one type of JSON values. Copies and parses may throw std::bad_alloc as containers do; its destructor needs no
// memory that may be missing. If memory runs out while push_back() turns a null into an array, or [] into an object,
// the value is broken: begin with Json::array() or json_object().
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

namespace shunt {

// Makes our JSON type distinct from nlohmann's default, so that nobody else's code gets the allocator below.
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

// Makes an object of these. If memory runs out midway, nlohmann's constructor from a list leaks what it has made.
[[nodiscard]] Json json_object(std::initializer_list<std::pair<const char*, Json>> fields);

#if defined(__cpp_exceptions)
// Memory for values' destructors when the system has none left: 16 MiB, untouched until then, enough for a document of
// 250,000 values. Throws std::bad_alloc beyond. Any thread.
[[nodiscard]] void* allocate_for_destructor(std::size_t bytes);
void deallocate_from_destructor(void* memory) noexcept;
#endif

}  // namespace shunt

#if defined(__cpp_exceptions)
// nlohmann's destructor is noexcept and moves the values inside an array or object to a std::vector to avoid recursion:
// without memory for that vector the process would end. Arrays themselves use JsonAllocator.
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
