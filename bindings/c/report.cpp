#include "report.h"

#include <fmt/format.h>

#include <algorithm>

namespace shunt::c {

static_assert(SHUNT_INVALID == static_cast<int>(Code::invalid) + 1);
static_assert(SHUNT_INTERNAL == static_cast<int>(Code::internal) + 1);
static_assert(SHUNT_INTERRUPTED == static_cast<int>(Code::interrupted) + 1);

namespace {

shunt_code code_of(Code code) { return static_cast<shunt_code>(static_cast<int>(code) + 1); }

}  // namespace

shunt_code report(const Status& status, shunt_error* error) {
  const shunt_code code = status ? SHUNT_OK : code_of(status.error().code);
  if (error == nullptr) return code;
  error->code = code;
  const std::string_view message = status ? std::string_view() : std::string_view(status.error().message);
  const std::size_t length = std::min(message.size(), sizeof error->message - 1);
  std::ranges::copy(message.substr(0, length), error->message);
  error->message[length] = '\0';
  return code;
}

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

Status need(const void* object, std::string_view what) {
  if (object == nullptr) return fail(Code::invalid, fmt::format("{} is NULL", what));
  return {};
}

Result<DType> dtype_of(shunt_dtype dtype) {
  if (static_cast<unsigned>(dtype) >= SHUNT_DTYPE_COUNT)
    return fail(Code::invalid, fmt::format("{} is no dtype; there are {}", static_cast<unsigned>(dtype),
                                           static_cast<unsigned>(SHUNT_DTYPE_COUNT)));
  return static_cast<DType>(dtype);
}

Result<Shape> shape_of(const shunt_shape& from) {
  if (from.rank > kMaxRank)
    return fail(Code::invalid, fmt::format("a shape of {} axes; at most {}", from.rank, kMaxRank));
  Shape shape;
  for (std::uint32_t axis = 0; axis < from.rank; ++axis) shape.append(from.extents[axis]);
  return shape;
}

shunt_shape shape_to(const Shape& from) {
  shunt_shape shape{};
  shape.rank = from.rank();
  for (std::uint32_t axis = 0; axis < from.rank(); ++axis) shape.extents[axis] = from[axis];
  return shape;
}

}  // namespace shunt::c
