#include "report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <new>
#include <stdexcept>
#include <system_error>

#include "base/checked.h"

namespace shunt::c {

static_assert(SHUNT_INVALID == static_cast<int>(Code::invalid) + 1, "code_of() counts on SHUNT_OK alone before it");

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

shunt_code report_thrown(shunt_error* error) noexcept {
  const auto tell = [error](Code code, const char* words) {
    if (error == nullptr) return code_of(code);
    error->code = code_of(code);
    const std::string_view message = std::string_view(words).substr(0, sizeof error->message - 1);
    std::ranges::copy(message, error->message);
    error->message[message.size()] = '\0';
    return error->code;
  };
  try {
    throw;
  } catch (const std::bad_alloc&) {
    return tell(Code::out_of_memory, "out of memory");
  } catch (const std::length_error&) {
    return tell(Code::out_of_memory, "more elements than memory can hold");
  } catch (const std::system_error& refused) {
    return tell(refused.code() == std::errc::resource_unavailable_try_again ? Code::out_of_memory : Code::internal,
                refused.what());
  } catch (const std::exception& thrown) {
    return tell(Code::internal, thrown.what());
  } catch (...) {
    return tell(Code::internal, "a function of the caller's has thrown something");
  }
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

Result<Extent> extent_of(shunt_extent extent) {
  if (static_cast<unsigned>(extent) > SHUNT_OUTPUTS)
    return fail(Code::invalid, fmt::format("{} is no extent; 0 to {} are", static_cast<unsigned>(extent),
                                           static_cast<unsigned>(SHUNT_OUTPUTS)));
  return static_cast<Extent>(extent);
}

Status fits_memory(std::size_t count, std::size_t bytes_each, std::string_view what) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::ptrdiff_t>::max();
  if (checked_product(count, bytes_each).value_or(kMost + 1) <= kMost) return {};
  return fail(Code::invalid,
              fmt::format("{} has {} elements of {} bytes, more than any memory", what, count, bytes_each));
}

shunt_shape shape_to(const Shape& from) {
  shunt_shape shape{};
  shape.rank = from.rank();
  for (std::uint32_t axis = 0; axis < from.rank(); ++axis) shape.extents[axis] = from[axis];
  return shape;
}

}  // namespace shunt::c
