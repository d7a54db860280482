// Damaged files: each mutation changes a few bytes, truncates the file, or moves a piece of it. Equal seeds give equal
// mutations.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace shunt {

inline std::vector<std::byte> bytes_of_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  std::vector<std::byte> bytes(text.size());
  std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

class Mutations {
 public:
  // Changes only the first `reach` bytes.
  Mutations(std::vector<std::byte> original, std::size_t reach, std::uint32_t seed)
      : original_(std::move(original)), reach_(std::min(reach, original_.size())), random_(seed) {}

  std::vector<std::byte> next() {
    std::vector<std::byte> bytes = original_;
    const std::uint32_t changes = 1 + random_() % 4;
    for (std::uint32_t i = 0; i < changes; ++i) {
      const std::size_t at = random_() % reach_;
      switch (random_() % 4) {
        case 0:
          bytes[at] ^= static_cast<std::byte>(1U << random_() % 8);
          break;
        case 1:
          bytes[at] = kTelling[random_() % std::size(kTelling)];
          break;
        case 2: {
          const std::size_t length = std::min<std::size_t>(random_() % 32, bytes.size() - at);
          std::memmove(bytes.data() + at, bytes.data() + random_() % (bytes.size() - length + 1), length);
          break;
        }
        default:
          if (random_() % 8 == 0) bytes.resize(at + 1);
          break;
      }
      if (bytes.size() < reach_) break;
    }
    return bytes;
  }

 private:
  static constexpr std::byte kTelling[] = {std::byte{0x00}, std::byte{0x01}, std::byte{0x7F}, std::byte{0x80},
                                           std::byte{0xFF}};

  std::vector<std::byte> original_;
  std::size_t reach_;
  std::mt19937 random_;
};

}  // namespace shunt
