#include "onnx/proto.h"

#include <fmt/format.h>

#include <bit>
#include <cstring>

namespace shunt::onnx {
namespace {

std::unexpected<Error> of_another_kind(const ProtoField& field, std::string_view wanted) {
  return fail(Code::invalid, fmt::format("field {} should be {}", field.number, wanted));
}

}  // namespace

Result<std::int64_t> ProtoField::integer() const {
  if (kind != Kind::number) return of_another_kind(*this, "a number");
  return static_cast<std::int64_t>(value);
}

Result<float> ProtoField::real() const {
  if (kind != Kind::bits32) return of_another_kind(*this, "a float");
  return std::bit_cast<float>(static_cast<std::uint32_t>(value));
}

Result<std::span<const std::byte>> ProtoField::message() const {
  if (kind != Kind::bytes) return of_another_kind(*this, "a message");
  return bytes;
}

Result<std::string_view> ProtoField::text() const {
  if (kind != Kind::bytes) return of_another_kind(*this, "text");
  return std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size());
}

Status ProtoField::append_to(std::vector<std::int64_t>& numbers) const {
  if (kind == Kind::number) {
    numbers.push_back(static_cast<std::int64_t>(value));
    return {};
  }
  if (kind != Kind::bytes) return of_another_kind(*this, "numbers");
  // Packed numbers are consecutive varints without separators.
  std::uint64_t item = 0;
  unsigned shift = 0;
  for (const std::byte byte : bytes) {
    if (shift > 63) return of_another_kind(*this, "numbers of at most 64 bits");
    item |= (std::to_integer<std::uint64_t>(byte) & 0x7FU) << shift;
    shift += 7;
    if ((byte & std::byte{0x80}) != std::byte{}) continue;
    numbers.push_back(static_cast<std::int64_t>(item));
    item = 0;
    shift = 0;
  }
  if (shift != 0) return of_another_kind(*this, "whole numbers");
  return {};
}

Status ProtoField::append_to(std::vector<float>& numbers) const {
  if (kind == Kind::bits32) {
    numbers.push_back(std::bit_cast<float>(static_cast<std::uint32_t>(value)));
    return {};
  }
  if (kind != Kind::bytes || bytes.size() % sizeof(float) != 0) return of_another_kind(*this, "floats");
  const std::size_t old = numbers.size();
  numbers.resize(old + bytes.size() / sizeof(float));
  if (!bytes.empty()) std::memcpy(numbers.data() + old, bytes.data(), bytes.size());
  return {};
}

Result<std::uint64_t> ProtoReader::take_number() {
  std::uint64_t number = 0;
  for (unsigned shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
    const std::byte byte = rest_.front();
    rest_ = rest_.subspan(1);
    number |= (std::to_integer<std::uint64_t>(byte) & 0x7FU) << shift;
    if ((byte & std::byte{0x80}) == std::byte{}) return number;
  }
  return fail(Code::invalid, "a number is cut off or longer than 64 bits");
}

Result<std::uint64_t> ProtoReader::take_bits(std::size_t bytes) {
  if (rest_.size() < bytes) return fail(Code::invalid, fmt::format("{} bytes are left of {}", rest_.size(), bytes));
  std::uint64_t value = 0;
  std::memcpy(&value, rest_.data(), bytes);
  rest_ = rest_.subspan(bytes);
  return value;
}

Result<ProtoField> ProtoReader::next() {
  SHUNT_TRY_ASSIGN(const std::uint64_t tag, take_number());
  ProtoField field;
  field.number = static_cast<std::uint32_t>(tag >> 3U);
  switch (tag & 7U) {
    case 0: {
      SHUNT_TRY_ASSIGN(field.value, take_number());
      return field;
    }
    case 1: {
      field.kind = ProtoField::Kind::bits64;
      SHUNT_TRY_ASSIGN(field.value, take_bits(8));
      return field;
    }
    case 2: {
      field.kind = ProtoField::Kind::bytes;
      SHUNT_TRY_ASSIGN(const std::uint64_t length, take_number());
      if (length > rest_.size())
        return fail(Code::invalid,
                    fmt::format("field {} has {} bytes, {} are left", field.number, length, rest_.size()));
      field.bytes = rest_.first(length);
      rest_ = rest_.subspan(length);
      return field;
    }
    case 5: {
      field.kind = ProtoField::Kind::bits32;
      SHUNT_TRY_ASSIGN(field.value, take_bits(4));
      return field;
    }
    default:
      return fail(Code::invalid, fmt::format("field {} has wire type {}", field.number, tag & 7U));
  }
}

}  // namespace shunt::onnx
