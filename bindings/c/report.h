// What the files of this folder share: how an error leaves, and the objects that several of them open. Plain functions;
// any thread.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "shunt/kernel.h"
#include "shunt/runtime.h"
#include "shunt/shunt.h"
#include "shunt/tensor.h"

// NOLINTBEGIN(readability-identifier-naming): names of shunt.h
struct shunt_runtime {
  std::unique_ptr<shunt::Runtime> runtime;
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

// Errors: invalid for a null object, called `what`.
[[nodiscard]] Status need(const void* object, std::string_view what);
// Errors: invalid for what is no row of the table.
[[nodiscard]] Result<DType> dtype_of(shunt_dtype dtype);
// Errors: invalid for too many axes.
[[nodiscard]] Result<Shape> shape_of(const shunt_shape& from);
[[nodiscard]] shunt_shape shape_to(const Shape& from);
// Errors: invalid for what is no row of the enum.
[[nodiscard]] Result<Extent> extent_of(shunt_extent extent);

// Errors: invalid for more bytes than any memory has.
[[nodiscard]] Status fits_memory(std::size_t count, std::size_t bytes_each, std::string_view what);
// An array of the caller's. Errors: invalid where it is null and not empty, or longer than any memory.
template <class T>
Result<std::span<const T>> array_of(const T* first, std::size_t count, std::string_view what) {
  if (count != 0) SHUNT_TRY(need(static_cast<const void*>(first), what));
  SHUNT_TRY(fits_memory(count, sizeof(T), what));
  return std::span(first, count);
}

}  // namespace shunt::c
