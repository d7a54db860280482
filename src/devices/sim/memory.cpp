#include "devices/sim/memory.h"

#include <fmt/format.h>

#include "base/units.h"

namespace shunt::sim {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

Status Budget::take(std::uint64_t bytes) {
  std::uint64_t used = *used_;
  do {
    if (bytes > bytes_ - used)
      return fail(Code::out_of_memory, fmt::format("{} of {} wanted, {} of {} are free", in_units(bytes), device_,
                                                   in_units(bytes_ - used), in_units(bytes_)));
  } while (!used_->compare_exchange_weak(used, used + bytes));
  return {};
}

Result<std::unique_ptr<SimBuffer>> SimBuffer::create(std::shared_ptr<Budget> budget, std::uint64_t bytes, bool real) {
  SHUNT_TRY(budget->take(bytes));
  std::unique_ptr<SimBuffer> buffer(new SimBuffer(std::move(budget), bytes));
  if (!real || bytes == 0) return buffer;
  // Untouched pages cost nothing, as state buffers require.
  std::size_t room = bytes + kAlignment;
  buffer->owned_.reset(std::calloc(room, 1));
  void* begin = buffer->owned_.get();
  if (begin == nullptr)
    return fail(Code::out_of_memory, fmt::format("the host refused {} for a simulated device", in_units(bytes)));
  buffer->begin_ = static_cast<std::byte*>(std::align(kAlignment, bytes, begin, room));
  return buffer;
}

std::byte* address_of(const Binding& binding) {
  if (binding.buffer == nullptr) return nullptr;
  const std::span<std::byte> memory = static_cast<SimBuffer&>(*binding.buffer).memory();
  return memory.empty() ? nullptr : memory.data() + binding.offset;
}

}  // namespace shunt::sim
