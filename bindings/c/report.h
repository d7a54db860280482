// Shared by the files of this folder: how errors are reported, and the objects that several of them open. Plain
// functions; any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/kernel.h"
#include "shunt/runtime.h"
#include "shunt/shunt.h"
#include "shunt/tensor.h"

namespace shunt::c {
struct DeviceRecord;
}

// NOLINTBEGIN(readability-identifier-naming): names of shunt.h
struct shunt_runtime {
  explicit shunt_runtime(std::unique_ptr<shunt::Runtime> opened);
  ~shunt_runtime();

  std::unique_ptr<shunt::Runtime> runtime;
  std::vector<std::unique_ptr<shunt::c::DeviceRecord>> records;  // one per device
  std::string summary = {};
  std::string summary_json = {};
  std::string lines = {};
};

struct shunt_kernel {
  std::shared_ptr<const shunt::UserKernel> kernel;
};
// NOLINTEND(readability-identifier-naming)

namespace shunt::c {

// Writes the outcome to `error`, which may be null.
shunt_code report(const Status& status, shunt_error* error);

template <class T>
std::nullptr_t refuse(const Result<T>& result, shunt_error* error) {
  static_cast<void>(report(std::unexpected(result.error()), error));
  return nullptr;
}

// For a function's catch-all: writes what was thrown to `error`, which may be null.
shunt_code report_thrown(shunt_error* error) noexcept;

// The result of a function that caught an exception: the error code, or NULL.
struct Thrown {
  shunt_code code;
  operator shunt_code() const { return code; }  // NOLINT(google-explicit-constructor)
  template <class T>
  operator T*() const {  // NOLINT(google-explicit-constructor)
    return nullptr;
  }
};
// Does the same for a function that changes `object`, and marks it unusable because it may be half changed.
template <class Object>
Thrown break_off(Object* object, shunt_error* error) noexcept {
  if (object != nullptr) object->is_broken = true;
  return {report_thrown(error)};
}

// Returns an empty string for null.
[[nodiscard]] std::string text_or_empty(const char* text);
// Errors: invalid if `object`, called `what` in the message, is null.
[[nodiscard]] Status need(const void* object, std::string_view what);
// Errors: invalid for a value that is not in the table.
[[nodiscard]] Result<DType> dtype_of(shunt_dtype dtype);
// Errors: invalid for too many axes.
[[nodiscard]] Result<Shape> shape_of(const shunt_shape& from);
[[nodiscard]] shunt_shape shape_to(const Shape& from);
// Errors: invalid for a value that is not in the enum.
[[nodiscard]] Result<Extent> extent_of(shunt_extent extent);

// Errors: invalid for more bytes than any memory has.
[[nodiscard]] Status fits_memory(std::size_t count, std::size_t bytes_each, std::string_view what);
// Views the caller's array. Errors: invalid if it is null and not empty, or larger than any memory.
template <class T>
Result<std::span<const T>> array_of(const T* first, std::size_t count, std::string_view what) {
  if (count != 0) SHUNT_TRY(need(static_cast<const void*>(first), what));
  SHUNT_TRY(fits_memory(count, sizeof(T), what));
  return std::span(first, count);
}

}  // namespace shunt::c

// Ends each exported function that can run out of memory: `shunt_code f(..., shunt_error* error) try { ... }`, then one
// of these. No exception may reach a C caller.
#define SHUNT_C_END(error)                                   \
  catch (...) {                                              \
    return shunt::c::Thrown{shunt::c::report_thrown(error)}; \
  }
#define SHUNT_C_END_OF(object, error)          \
  catch (...) {                                \
    return shunt::c::break_off(object, error); \
  }
