// Reads the wire format of protocol buffers (https://protobuf.dev/programming-guides/encoding) field by field.
//
// Plain values over the caller's bytes, which are never trusted: a length beyond the end is an error.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "shunt/status.h"

namespace shunt::onnx {

class ProtoField {
 public:
  enum class Kind : std::uint8_t { number, bytes, bits32, bits64 };

  std::uint32_t number = 0;  // of the field
  Kind kind = Kind::number;
  std::uint64_t value = 0;           // for a number or bits
  std::span<const std::byte> bytes;  // for bytes: text, a message, or packed numbers

  // Errors: invalid for a field of another kind.
  [[nodiscard]] Result<std::int64_t> integer() const;
  [[nodiscard]] Result<float> real() const;
  [[nodiscard]] Result<std::string_view> text() const;
  [[nodiscard]] Result<std::span<const std::byte>> message() const;
  // Appends one number, or all numbers of a packed field.
  [[nodiscard]] Status append_to(std::vector<std::int64_t>& numbers) const;
  [[nodiscard]] Status append_to(std::vector<float>& numbers) const;
};

class ProtoReader {
 public:
  explicit ProtoReader(std::span<const std::byte> bytes) : rest_(bytes) {}

  [[nodiscard]] bool at_end() const { return rest_.empty(); }
  // REQUIRES: !at_end(). Errors: invalid if the bytes end within the field.
  [[nodiscard]] Result<ProtoField> next();

 private:
  [[nodiscard]] Result<std::uint64_t> take_number();
  [[nodiscard]] Result<std::uint64_t> take_bits(std::size_t bytes);

  std::span<const std::byte> rest_;
};

}  // namespace shunt::onnx
