#include <fmt/format.h>

#include <algorithm>

#include "shunt/weights.h"

namespace shunt {

Status MemoryWeights::add(std::string_view name, DType dtype, const Shape& shape, std::span<const std::byte> bytes) {
  if (names_.contains(name)) return fail(Code::invalid, fmt::format("two constants are named \"{}\"", name));
  SHUNT_TRY_ASSIGN(const std::uint64_t needed, bytes_of(dtype, shape));
  if (bytes.size() != needed)
    return fail(Code::invalid, fmt::format("constant \"{}\" of {}{} takes {} bytes, {} were given", name,
                                           name_of(dtype), to_string(shape), needed, bytes.size()));
  names_.emplace(name);
  infos_.push_back({.name = std::string(name), .dtype = dtype, .shape = shape, .bytes = needed});
  bytes_.push_back(bytes);
  return {};
}

Status MemoryWeights::read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) {
  const std::span<const std::byte> bytes = bytes_[index];
  if (offset > bytes.size() || out.size() > bytes.size() - offset)
    return fail(Code::invalid, fmt::format("{} bytes at {} of constant \"{}\", which has {}", out.size(), offset,
                                           infos_[index].name, bytes.size()));
  std::ranges::copy(bytes.subspan(offset, out.size()), out.begin());
  return {};
}

}  // namespace shunt
