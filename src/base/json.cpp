#include "base/json.h"

#include <array>
#include <functional>
#include <mutex>
#include <new>

namespace shunt {

Json json_object(std::initializer_list<std::pair<const char*, Json>> fields) {
  Json json = Json::object();
  for (const auto& [key, value] : fields) json[key] = value;
  return json;
}

#if defined(__cpp_exceptions)
namespace {

constexpr std::size_t kReserve = std::size_t{16} << 20U;
constexpr std::size_t kAlignment = alignof(std::max_align_t);

// Allocates from the front; resets when everything was freed.
struct Reserve {
  std::mutex mutex;
  std::size_t used = 0;
  std::size_t pieces = 0;
  alignas(kAlignment) std::array<std::byte, kReserve> memory;
};

constinit Reserve reserve{};

bool is_from_reserve(const void* memory) {
  const auto* first = reserve.memory.data();
  return std::less_equal<>()(first, memory) && std::less<>()(memory, first + kReserve);
}

}  // namespace

void* allocate_for_destructor(std::size_t bytes) {
  if (void* memory = ::operator new(bytes, std::nothrow)) return memory;
  const std::scoped_lock lock(reserve.mutex);
  const std::size_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (rounded > kReserve - reserve.used) throw std::bad_alloc();
  void* memory = reserve.memory.data() + reserve.used;
  reserve.used += rounded;
  ++reserve.pieces;
  return memory;
}

void deallocate_from_destructor(void* memory) noexcept {
  if (!is_from_reserve(memory)) return ::operator delete(memory);
  const std::scoped_lock lock(reserve.mutex);
  if (--reserve.pieces == 0) reserve.used = 0;
}

#endif

}  // namespace shunt
