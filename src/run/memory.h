// Memory that several executables share: state, which lives from submission to submission, and arenas, of
// which only one executable at a time is using its tensors. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "devices/device.h"
#include "shunt/graph.h"

namespace shunt {

// The state tensors of a session, by name, each in one memory pool; zeroed at first.
class StateStore {
 public:
  // Errors: invalid where the name was acquired with another size or in another pool; out_of_memory.
  [[nodiscard]] Result<Binding> acquire(const TensorInfo& state, Device& device);
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  struct Entry {
    std::string pool;
    std::unique_ptr<Buffer> buffer;
  };
  std::map<std::string, Entry, std::less<>> entries_;
};

// One arena per device, as large as the largest that was asked for. A larger one replaces it; whoever holds
// the old one keeps it.
class ArenaStore {
 public:
  [[nodiscard]] Result<std::shared_ptr<Buffer>> acquire(std::uint64_t bytes, Device& device);
  // Of all arenas that are alive, the replaced ones that somebody holds included.
  [[nodiscard]] std::uint64_t bytes() const;

 private:
  std::map<std::string, std::shared_ptr<Buffer>, std::less<>> arenas_;
  std::vector<std::weak_ptr<Buffer>> all_;
};

}  // namespace shunt
