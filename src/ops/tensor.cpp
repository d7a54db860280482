#include "shunt/tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/checked.h"

namespace shunt {
namespace {

constexpr DTypeInfo kDTypes[] = {
#define SHUNT_DTYPE(name, gguf_id, block_elements, block_bytes, kind) \
  {#name, gguf_id, block_elements, block_bytes, DTypeKind::kind},
#include "ops/dtypes.def"
};

std::string supported_names() {
  std::string names;
  for (const DTypeInfo& row : kDTypes) names += (names.empty() ? "" : " ") + std::string(row.name);
  return names;
}

}  // namespace

std::span<const DTypeInfo> dtypes() { return kDTypes; }
const DTypeInfo& info_of(DType dtype) { return kDTypes[static_cast<std::size_t>(dtype)]; }
std::string_view name_of(DType dtype) { return info_of(dtype).name; }

Result<DType> dtype_from_name(std::string_view name) {
  for (std::size_t i = 0; i < std::size(kDTypes); ++i)
    if (kDTypes[i].name == name) return static_cast<DType>(i);
  return fail(Code::unsupported, fmt::format("unknown dtype \"{}\"; supported: {}", name, supported_names()));
}

Result<DType> dtype_from_gguf_id(std::uint32_t id) {
  for (std::size_t i = 0; i < std::size(kDTypes); ++i)
    if (kDTypes[i].gguf_id >= 0 && static_cast<std::uint32_t>(kDTypes[i].gguf_id) == id) return static_cast<DType>(i);
  return fail(Code::unsupported, fmt::format("tensor type id {}; supported: {}", id, supported_names()));
}

std::span<const DType> cache_dtypes() {
  static constexpr DType kCaches[] = {DType::F32, DType::F16, DType::BF16, DType::Q8_0};
  return kCaches;
}

std::string to_string(const Shape& shape) {
  std::string text = "[";
  for (std::size_t axis = 0; axis < shape.rank(); ++axis)
    text += fmt::format("{}{}", axis == 0 ? "" : ", ", shape[axis]);
  return text + "]";
}

Strides contiguous_strides(const Shape& shape) {
  Strides strides{};
  std::uint64_t step = 1;
  for (std::size_t axis = shape.rank(); axis-- > 0;) {
    strides[axis] = step;
    step *= shape[axis];
  }
  return strides;
}

Result<std::uint64_t> bytes_of(DType dtype, const Shape& shape) {
  const DTypeInfo& info = info_of(dtype);
  if (shape.columns() % info.block_elements != 0)
    return fail(Code::invalid, fmt::format("{}{}: a row of {} elements is not a whole number of blocks of {}",
                                           info.name, to_string(shape), shape.columns(), info.block_elements));
  // Counts an extent of 0 as 1, so that no product of some extents, such as a stride, overflows either.
  std::optional<std::uint64_t> most = info.block_bytes;
  for (std::size_t axis = 0; most && axis < shape.rank(); ++axis)
    most = checked_product(*most, std::max(shape[axis], 1U));
  if (!most || *most > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
    return fail(Code::invalid, fmt::format("{}{}: the size does not fit 63 bits", info.name, to_string(shape)));
  return shape.rows() * (shape.columns() / info.block_elements) * info.block_bytes;
}

}  // namespace shunt
