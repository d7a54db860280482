#include "devices/sim/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include "base/units.h"

namespace shunt::sim {
namespace {

constexpr std::size_t kAlignment = 64;

}  // namespace

void Use::follow(const std::vector<Taken>& taken, std::shared_ptr<const VirtualClock> clock) {
  if (taken.empty()) return;
  start_ = clock->now();
  clock_ = std::move(clock);
  over_time_.push_back(taken);
}

std::uint64_t Use::others() const {
  std::uint64_t bytes = others_;
  if (clock_ == nullptr) return bytes;
  const double now_us = std::chrono::duration<double, std::micro>(clock_->now() - start_).count();
  for (const std::vector<Taken>& taken : over_time_) {
    const auto next = std::ranges::find_if(taken, [now_us](const Taken& each) { return each.at_us > now_us; });
    if (next != taken.begin()) bytes += std::prev(next)->bytes;
  }
  return bytes;
}

Status Budget::take(std::uint64_t bytes) {
  std::uint64_t used = use_->bytes;
  do {
    if (bytes > left_of(used))
      return fail(Code::out_of_memory, fmt::format("{} of {} wanted, {} of {} are free", in_units(bytes), device_,
                                                   in_units(left_of(used)), in_units(bytes_)));
  } while (!use_->bytes.compare_exchange_weak(used, used + bytes));
  return {};
}

Status Scratch::grow_to(std::uint64_t bytes) {
  if (bytes <= bytes_) return {};
  SHUNT_TRY(budget_->take(bytes - bytes_));
  bytes_ = bytes;
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
