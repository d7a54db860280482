// What the files of this folder share: how an error leaves, and the objects that several of them open. Plain functions;
// any thread.
#pragma once

#include <cstddef>
#include <memory>
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

// Empty for a null one.
[[nodiscard]] std::string text_or_empty(const char* text);
// Errors: invalid for a null object, called `what`.
[[nodiscard]] Status need(const void* object, std::string_view what);
// Errors: invalid for what is no row of the table.
[[nodiscard]] Result<DType> dtype_of(shunt_dtype dtype);
// Errors: invalid for too many axes.
[[nodiscard]] Result<Shape> shape_of(const shunt_shape& from);
[[nodiscard]] shunt_shape shape_to(const Shape& from);

}  // namespace shunt::c
