// The array functions of shunt/shunt.h over shunt/arrays.h.
#include "shunt/arrays.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <optional>
#include <string>

#include "base/checked.h"
#include "report.h"

// NOLINTBEGIN(readability-identifier-naming): a name of shunt.h
struct shunt_arrays {
  std::unique_ptr<shunt::Arrays> arrays;
  std::string device;  // about the last call, like the next two
  std::string reason;
  std::string failures;
  std::string text;
  bool is_broken = false;  // by a call that ran out of memory
};
// NOLINTEND(readability-identifier-naming)

namespace {

using shunt::ArrayCall;
using shunt::ArrayRun;
using shunt::Arrays;
using shunt::Result;
using shunt::Status;
using shunt::c::need;
using shunt::c::report;

// Errors: invalid for null; out_of_memory if an earlier call left the object half changed.
Status need(const shunt_arrays* arrays, std::string_view what) {
  SHUNT_TRY(need(static_cast<const void*>(arrays), what));
  if (!arrays->is_broken) return {};
  return shunt::fail(shunt::Code::out_of_memory, fmt::format("{} ran out of memory in an earlier call; free it", what));
}

// Sizes that overflow are refused as what they are: far too many.
std::size_t elements_of(std::size_t rows, std::size_t columns) {
  return shunt::checked_product<std::size_t>(rows, columns).value_or(std::numeric_limits<std::size_t>::max());
}

ArrayCall call_of(const shunt_array_call* from) {
  ArrayCall call;
  if (from == nullptr) return call;
  if (from->devices != nullptr) call.devices = from->devices;
  constexpr std::uint64_t kMost = std::uint64_t{std::numeric_limits<std::int64_t>::max()} / 1000;
  if (from->timeout_us != 0)
    call.timeout = std::chrono::microseconds(static_cast<std::int64_t>(std::min(from->timeout_us, kMost)));
  return call;
}

struct Memory {
  const void* data;
  std::size_t elements;
  const char* name;
};

// Runs `work` on the arrays; returns its result and how it ran, or the error.
template <class Work>
shunt_code run_on(shunt_arrays* arrays, std::initializer_list<Memory> memories, const shunt_array_call* call,
                  shunt_array_run* run, shunt_error* error, const Work& work) {
  Status status = need(arrays, "the arrays object");
  for (const Memory& memory : memories)
    if (status && memory.elements != 0) status = need(memory.data, memory.name);
  if (!status) return report(status, error);
  Result<ArrayRun> done = work(*arrays->arrays, call_of(call));
  if (!done) return report(std::unexpected(std::move(done).error()), error);
  arrays->failures = std::move(done->failures);
  arrays->device = done->device;
  arrays->reason = name_of(done->reason);
  if (run != nullptr)
    *run = {.device = arrays->device.c_str(),
            .reason = arrays->reason.c_str(),
            .failures = arrays->failures.c_str(),
            .us = done->us};
  return report({}, error);
}

}  // namespace

shunt_arrays* shunt_arrays_new(const shunt_runtime* runtime, shunt_error* error) try {
  if (const Status there = need(runtime, "the runtime"); !there) {
    static_cast<void>(report(there, error));
    return nullptr;
  }
  auto arrays = Arrays::create(*runtime->runtime);
  if (!arrays) return shunt::c::refuse(arrays, error);
  static_cast<void>(report({}, error));
  auto made = std::make_unique<shunt_arrays>();
  made->arrays = std::move(*arrays);
  return made.release();
}
SHUNT_C_END(error)

void shunt_arrays_free(shunt_arrays* arrays) { const std::unique_ptr<shunt_arrays> ended(arrays); }

shunt_code shunt_arrays_add(shunt_arrays* arrays, const float* a, const float* b, float* out, size_t count,
                            const shunt_array_call* call, shunt_array_run* run, shunt_error* error) try {
  return run_on(arrays, {{a, count, "a"}, {b, count, "b"}, {out, count, "out"}}, call, run, error,
                [&](Arrays& on, const ArrayCall& how) { return on.add({a, count}, {b, count}, {out, count}, how); });
}
SHUNT_C_END_OF(arrays, error)

shunt_code shunt_arrays_multiply(shunt_arrays* arrays, const float* a, const float* b, float* out, size_t count,
                                 const shunt_array_call* call, shunt_array_run* run, shunt_error* error) try {
  return run_on(
      arrays, {{a, count, "a"}, {b, count, "b"}, {out, count, "out"}}, call, run, error,
      [&](Arrays& on, const ArrayCall& how) { return on.multiply({a, count}, {b, count}, {out, count}, how); });
}
SHUNT_C_END_OF(arrays, error)

shunt_code shunt_arrays_matmul(shunt_arrays* arrays, const float* a, const float* b, float* out, size_t rows,
                               size_t inner, size_t columns, const shunt_array_call* call, shunt_array_run* run,
                               shunt_error* error) try {
  const std::size_t of_a = elements_of(rows, inner);
  const std::size_t of_b = elements_of(inner, columns);
  const std::size_t of_out = elements_of(rows, columns);
  return run_on(arrays, {{a, of_a, "a"}, {b, of_b, "b"}, {out, of_out, "out"}}, call, run, error,
                [&](Arrays& on, const ArrayCall& how) {
                  return on.matmul({a, of_a}, {b, of_b}, {rows, inner, columns}, {out, of_out}, how);
                });
}
SHUNT_C_END_OF(arrays, error)

shunt_code shunt_arrays_dot(shunt_arrays* arrays, const float* a, const float* b, float* out, size_t count,
                            const shunt_array_call* call, shunt_array_run* run, shunt_error* error) try {
  return run_on(arrays, {{a, count, "a"}, {b, count, "b"}, {out, 1, "out"}}, call, run, error,
                [&](Arrays& on, const ArrayCall& how) { return on.dot({a, count}, {b, count}, *out, how); });
}
SHUNT_C_END_OF(arrays, error)

shunt_code shunt_arrays_sum(shunt_arrays* arrays, const float* x, float* out, size_t count,
                            const shunt_array_call* call, shunt_array_run* run, shunt_error* error) try {
  return run_on(arrays, {{x, count, "x"}, {out, 1, "out"}}, call, run, error,
                [&](Arrays& on, const ArrayCall& how) { return on.sum({x, count}, *out, how); });
}
SHUNT_C_END_OF(arrays, error)

shunt_code shunt_arrays_softmax(shunt_arrays* arrays, const float* x, float* out, size_t rows, size_t columns,
                                const shunt_array_call* call, shunt_array_run* run, shunt_error* error) try {
  const std::size_t count = elements_of(rows, columns);
  return run_on(arrays, {{x, count, "x"}, {out, count, "out"}}, call, run, error,
                [&](Arrays& on, const ArrayCall& how) { return on.softmax({x, count}, columns, {out, count}, how); });
}
SHUNT_C_END_OF(arrays, error)

const char* shunt_arrays_explain(shunt_arrays* arrays) try {
  if (arrays == nullptr) return nullptr;
  arrays->text = arrays->arrays->explain();
  return arrays->text.c_str();
}
SHUNT_C_END(nullptr)
