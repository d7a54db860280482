// Builds GGUF bytes number by number, valid or not, for tests of the reader.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace shunt::models {

class GgufBytes {
 public:
  GgufBytes(std::uint32_t version, std::uint64_t tensors, std::uint64_t keys) {
    raw("GGUF").number(version).number(tensors).number(keys);
  }

  template <class T>
  GgufBytes& number(T value) {
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof value);
    std::memcpy(bytes_.data() + at, &value, sizeof value);
    return *this;
  }
  GgufBytes& raw(std::string_view text) {
    for (const char character : text) bytes_.push_back(static_cast<std::byte>(character));
    return *this;
  }
  GgufBytes& text(std::string_view value) { return number(std::uint64_t{value.size()}).raw(value); }
  GgufBytes& key(std::string_view name, std::uint32_t type) { return text(name).number(type); }
  GgufBytes& tensor(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
                    std::uint64_t offset) {
    text(name).number(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t dim : dims) number(dim);
    return number(type).number(offset);
  }
  GgufBytes& pad(std::size_t alignment) {
    while (bytes_.size() % alignment != 0) bytes_.push_back(std::byte{0});
    return *this;
  }
  GgufBytes& zeros(std::size_t count) {
    bytes_.resize(bytes_.size() + count);
    return *this;
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  std::vector<std::byte> bytes_;
};

// A folder for one test, removed with it.
class TestFolder {
 public:
  TestFolder() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    std::string name =
        "shunt-" + std::string(test->test_suite_name()) + "-" + test->name() + "-" + std::to_string(::getpid());
    std::ranges::replace(name, '/', '-');  // from a parameterized test
    path_ = std::filesystem::temp_directory_path() / name;
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
    std::filesystem::create_directories(path_);
  }
  TestFolder(const TestFolder&) = delete;
  TestFolder& operator=(const TestFolder&) = delete;
  ~TestFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  [[nodiscard]] std::string file(std::string_view name) const { return (path_ / name).string(); }
  [[nodiscard]] std::size_t file_count() const {
    std::size_t count = 0;
    for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path_)) ++count;
    return count;
  }

 private:
  std::filesystem::path path_;
};

inline void write_bytes(const std::string& path, std::span<const std::byte> bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  ASSERT_TRUE(file.good()) << path;
}

inline std::vector<std::byte> read_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<char> text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  std::vector<std::byte> bytes(text.size());
  if (!text.empty()) std::memcpy(bytes.data(), text.data(), text.size());
  return bytes;
}

}  // namespace shunt::models
