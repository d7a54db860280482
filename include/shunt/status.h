// Errors as values: every fallible call of Shunt returns a Result<T>.
//
// A Result owns either the value or an Error, which is one of a few codes with a readable message. The message names
// the op, tensor, device and numbers involved. Nothing here throws; a broken invariant inside Shunt aborts. All types
// are plain values and may be used from any thread.
#pragma once

#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "shunt/tables.h"

namespace shunt {

enum class Code : std::uint8_t {
#define SHUNT_CODE(name, c_name, meaning) name,
  SHUNT_ERROR_CODES(SHUNT_CODE)
#undef SHUNT_CODE
};

[[nodiscard]] std::string_view name_of(Code code);

struct Error {
  Code code = Code::internal;
  std::string message;
  std::string device = {};  // the id of the device that failed; empty: no device failed
};

template <class T>
using Result = std::expected<T, Error>;
using Status = Result<void>;

[[nodiscard]] inline std::unexpected<Error> fail(Code code, std::string message) {
  return std::unexpected(Error{code, std::move(message)});
}

// Prefixes the message with the place that an error passed through: "what: message".
[[nodiscard]] std::unexpected<Error> fail_at(std::string_view what, Error error);

}  // namespace shunt

// Returns the error of `expression` to the caller, if it has one.
#define SHUNT_TRY(expression)                                      \
  do {                                                             \
    if (auto shunt_try_result = (expression); !shunt_try_result)   \
      return std::unexpected(std::move(shunt_try_result).error()); \
  } while (false)

// Declares `variable` (with its type, such as `auto x`) from a Result, or returns the error.
#define SHUNT_TRY_ASSIGN(variable, expression) \
  SHUNT_TRY_ASSIGN_AS(SHUNT_JOIN(shunt_result_, __LINE__), variable, expression)
#define SHUNT_TRY_ASSIGN_AS(result, variable, expression)         \
  auto result = (expression);                                     \
  if (!result) return std::unexpected(std::move(result).error()); \
  variable = std::move(*result)
#define SHUNT_JOIN(a, b) SHUNT_JOIN_AGAIN(a, b)
#define SHUNT_JOIN_AGAIN(a, b) a##b
