// Memory that several executables share: state, which lives from submission to submission, and arenas, which one
// executable at a time may use. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "devices/device.h"
#include "shunt/graph.h"

namespace shunt {

// The state tensors of a session, by name, each in one memory pool; initially zero.
class StateStore {
 public:
  // Errors: invalid if the name was acquired with another size or in another pool; out_of_memory.
  [[nodiscard]] Result<Binding> acquire(const TensorInfo& state, Device& device);
  // Returns the memory of that name, or null.
  [[nodiscard]] std::shared_ptr<const Buffer> find(std::string_view name) const;
  // The bytes in a pool; in all pools if it is empty.
  [[nodiscard]] std::uint64_t bytes(std::string_view pool = {}) const;

 private:
  struct Entry {
    std::string pool;
    std::shared_ptr<Buffer> buffer;
  };
  std::map<std::string, Entry, std::less<>> entries_;
};

// One arena per device, as large as the largest request. A larger one replaces it; holders keep the old one. So they
// release it first, to have the memory of one.
class ArenaStore {
 public:
  [[nodiscard]] Result<std::shared_ptr<Buffer>> acquire(std::uint64_t bytes, Device& device);
  // Forgets the arena of a device, which ends with its last holder.
  void release(const Device& device) { arenas_.erase(device.info().id); }
  // Returns the bytes of the arena that acquire() returns; 0: there is none.
  [[nodiscard]] std::uint64_t bytes_on(const Device& device) const;
  // Returns whether `user` was the last to call this, so that the arenas hold what it left there.
  [[nodiscard]] bool claim(const void* user) { return std::exchange(user_, user) == user; }
  // The bytes of all live arenas, including replaced ones that are still held.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  std::map<std::string, std::shared_ptr<Buffer>, std::less<>> arenas_;
  std::vector<std::weak_ptr<Buffer>> all_;
  const void* user_ = nullptr;
};

}  // namespace shunt
