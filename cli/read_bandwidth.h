// How fast this machine's memory can be read: the bound of token generation. Owns a large buffer.
#pragma once

#include <cstdint>
#include <vector>

namespace shunt::cli {

class ReadBandwidth {
 public:
  // REQUIRES: threads > 0.
  explicit ReadBandwidth(std::uint32_t threads);
  // Bytes per second, all threads together reading the whole buffer once. One call at a time.
  [[nodiscard]] double measure();

 private:
  std::uint32_t threads_;
  std::vector<std::uint64_t> words_;
  std::uint64_t sum_ = 0;  // of what was read, so that reading cannot be left out
};

}  // namespace shunt::cli
