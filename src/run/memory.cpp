#include "run/memory.h"

#include <fmt/format.h>

namespace shunt {

Result<Binding> StateStore::acquire(const TensorInfo& state, Device& device) {
  const std::uint64_t bytes = state.operand.span_bytes();
  auto place = entries_.find(state.name);
  if (place == entries_.end()) {
    auto buffer = device.allocate(bytes, BufferUse::state);
    if (!buffer)
      return fail_at(fmt::format("state \"{}\" on {}", state.name, device.info().id), std::move(buffer).error());
    place = entries_.emplace(state.name, Entry{device.info().memory_pool, std::move(*buffer)}).first;
  }
  const Entry& entry = place->second;
  if (entry.buffer->bytes() != bytes || entry.pool != device.info().memory_pool)
    return fail(Code::invalid,
                fmt::format("state \"{}\" has {} bytes in \"{}\", but {} in \"{}\" are needed", state.name,
                            entry.buffer->bytes(), entry.pool, bytes, device.info().memory_pool));
  return Binding{.buffer = entry.buffer.get(), .offset = 0, .bytes = bytes};
}

std::shared_ptr<const Buffer> StateStore::find(std::string_view name) const {
  const auto entry = entries_.find(name);
  return entry == entries_.end() ? nullptr : entry->second.buffer;
}

std::uint64_t StateStore::bytes(std::string_view pool) const {
  std::uint64_t sum = 0;
  for (const auto& [name, entry] : entries_)
    if (pool.empty() || entry.pool == pool) sum += entry.buffer->bytes();
  return sum;
}

Result<std::shared_ptr<Buffer>> ArenaStore::acquire(std::uint64_t bytes, Device& device) {
  std::shared_ptr<Buffer>& arena = arenas_[device.info().id];
  if (arena == nullptr || arena->bytes() < bytes) {
    arena = nullptr;  // its memory may be needed
    auto buffer = device.allocate(bytes, BufferUse::values);
    if (!buffer) return fail_at(fmt::format("arena on {}", device.info().id), std::move(buffer).error());
    arena = std::move(*buffer);
    all_.push_back(arena);
  }
  return arena;
}

std::uint64_t ArenaStore::bytes_on(const Device& device) const {
  const auto arena = arenas_.find(device.info().id);
  return arena == arenas_.end() || arena->second == nullptr ? 0 : arena->second->bytes();
}

std::uint64_t ArenaStore::bytes() const {
  std::uint64_t sum = 0;
  for (const auto& weak : all_)
    if (const auto arena = weak.lock()) sum += arena->bytes();
  return sum;
}

}  // namespace shunt
