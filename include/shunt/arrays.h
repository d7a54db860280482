// Functions of arrays in the caller's memory. Each call runs on the device measured to be fastest for its size: a GPU,
// the CPU's vector units or its scalar code.
//
// Arrays are contiguous F32. A result may overlap inputs. It is written only when it is complete, so it is unchanged
// after an error. Empty arrays are valid; the sum of an empty array is 0.
// An Arrays owns its prepared programs and its measurements. It shares ownership of what it uses of the runtime, so
// both may be destroyed in any order. Nothing is kept on disk. One thread at a time; nothing else may use the runtime's
// devices during a call.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shunt/numerics.h"
#include "shunt/runtime.h"

namespace shunt {

struct ArraysOptions {
  // Another device takes over the calls of a size if it is faster by this factor. Until both are measured, it must be
  // predicted to be twice as fast.
  double margin = 1.2;
  // The largest share of all calls' time spent on trying devices other than the one predicted to be fastest.
  double exploring_share = 0.05;
  // The largest number of programs that stay prepared. Beyond it the least recently used one is dropped.
  std::size_t most_prepared = 64;
  // How exactly products must be computed.
  Numerics numerics = Numerics::exact;
  // The clock for measurements and timeouts. Null: the machine's monotonic clock.
  std::function<std::chrono::nanoseconds()> now;
};

struct ArrayCall {
  // Comma-separated ids or API names of the only devices to use. A single device never falls back. Empty: all devices
  // of the runtime.
  std::string_view devices;
  // The timeout of the whole call. A device that may hang gets half of the time left, so the next one can still finish.
  std::optional<std::chrono::nanoseconds> timeout;
};

// X(name, description)
#define SHUNT_ARRAY_REASONS(X)                                       \
  X(nothing_to_compute, "there is nothing to compute")               \
  X(only_candidate, "no other device may or can")                    \
  X(predicted, "predicted to be fastest, and not measured yet")      \
  X(measured, "measured to be fastest")                              \
  X(kept, "another is faster, but by less than the margin")          \
  X(explored, "measured to see whether it is faster than predicted") \
  X(fallback, "the next in the chain after one that failed")

enum class ArrayReason : std::uint8_t {
#define SHUNT_ARRAY_REASON(name, words) name,
  SHUNT_ARRAY_REASONS(SHUNT_ARRAY_REASON)
#undef SHUNT_ARRAY_REASON
};
[[nodiscard]] std::string_view name_of(ArrayReason reason);
[[nodiscard]] std::string_view words_of(ArrayReason reason);

// How a call was computed.
struct ArrayRun {
  std::string_view device;  // the device's id, valid as long as the runtime; empty if there was nothing to compute
  ArrayReason reason = ArrayReason::nothing_to_compute;
  double us = 0;         // time from inputs to result, both in the caller's memory
  std::string failures;  // failures of the devices that were tried before; empty: none
};

// a [rows, inner], b [inner, columns] -> [rows, columns]
struct ProductExtents {
  std::size_t rows = 0;
  std::size_t inner = 0;
  std::size_t columns = 0;
};

class Arrays {
 public:
  // If a device fails, the next one of runtime.devices() takes over, and the first one after the last. Errors: invalid
  // for a margin below 1, a share outside 0 to 1, most_prepared of 0, or a runtime without devices.
  [[nodiscard]] static Result<std::unique_ptr<Arrays>> create(const Runtime& runtime, ArraysOptions options = {});
  ~Arrays();
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;

  // Errors of all functions: invalid for sizes that do not match, arrays of over 2^31 elements and unknown devices;
  // unsupported for absent devices, or if no device can compute it; timed_out; else the last tried device's error.
  [[nodiscard]] Result<ArrayRun> add(std::span<const float> a, std::span<const float> b, std::span<float> out,
                                     const ArrayCall& call = {});
  [[nodiscard]] Result<ArrayRun> multiply(std::span<const float> a, std::span<const float> b, std::span<float> out,
                                          const ArrayCall& call = {});
  [[nodiscard]] Result<ArrayRun> matmul(std::span<const float> a, std::span<const float> b,
                                        const ProductExtents& extents, std::span<float> out,
                                        const ArrayCall& call = {});
  // dot() and sum() accumulate with more precision than F32.
  [[nodiscard]] Result<ArrayRun> dot(std::span<const float> a, std::span<const float> b, float& out,
                                     const ArrayCall& call = {});
  [[nodiscard]] Result<ArrayRun> sum(std::span<const float> x, float& out, const ArrayCall& call = {});
  // Computes the softmax of each row of `columns` elements.
  [[nodiscard]] Result<ArrayRun> softmax(std::span<const float> x, std::size_t columns, std::span<float> out,
                                         const ArrayCall& call = {});

  // The number of prepared programs.
  [[nodiscard]] std::size_t prepared() const;
  // Explains what is known so far: each device's time by function and size, and which devices are quarantined and why.
  [[nodiscard]] std::string explain() const;

 private:
  struct Parts;
  explicit Arrays(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace shunt
