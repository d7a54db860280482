// What the files of this folder share: how an error leaves, and the objects that several of them open. Plain functions;
// any thread.
#pragma once

#include <cstddef>
#include <memory>
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

// For the catch-all of a function: writes what was thrown to `error`, which may be null.
shunt_code report_thrown(shunt_error* error) noexcept;

// What a function answers that has caught something: the code, or NULL.
struct Thrown {
  shunt_code code;
  operator shunt_code() const { return code; }  // NOLINT(google-explicit-constructor)
  template <class T>
  operator T*() const {  // NOLINT(google-explicit-constructor)
    return nullptr;
  }
};
// The same for a function that changes `object`, which may have been left half changed: it is not to be used again.
template <class Object>
Thrown break_off(Object* object, shunt_error* error) noexcept {
  if (object != nullptr) object->is_broken = true;
  return {report_thrown(error)};
}

// Errors: invalid for a null object, called `what`.
[[nodiscard]] Status need(const void* object, std::string_view what);
// Errors: invalid for what is no row of the table.
[[nodiscard]] Result<DType> dtype_of(shunt_dtype dtype);
// Errors: invalid for too many axes.
[[nodiscard]] Result<Shape> shape_of(const shunt_shape& from);
[[nodiscard]] shunt_shape shape_to(const Shape& from);

}  // namespace shunt::c

// Ends each function of the interface that can run out of memory: `shunt_code f(..., shunt_error* error) try { ... }`,
// then one of these. Nothing may be thrown into a caller in C.
#define SHUNT_C_END(error)                                   \
  catch (...) {                                              \
    return shunt::c::Thrown{shunt::c::report_thrown(error)}; \
  }
#define SHUNT_C_END_OF(object, error)          \
  catch (...) {                                \
    return shunt::c::break_off(object, error); \
  }
