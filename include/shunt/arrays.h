// Functions of arrays in the caller's memory, each call on the device that measures fastest for its size: a GPU, the
// CPU's vector units or its scalar code, whichever the runtime has.
//
// Arrays are F32, rows one after the other. A result may lie where inputs lie, or overlap them; it is written only when
// it is whole, so after an error it is as it was. Empty arrays are right: sums of nothing are 0.
// An Arrays owns what it has prepared on the devices and what it has measured, and keeps what it uses of the runtime,
// so that the two may end in any order. Nothing is kept on disk. One thread at a time, and nobody else on the runtime's
// devices meanwhile.
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

#include "shunt/runtime.h"

namespace shunt {

struct ArraysOptions {
  // Another device takes over the calls of a size where it is faster by this factor. While one of the two was not
  // measured yet, it must be predicted to be twice as fast.
  double margin = 1.2;
  // The largest share of the time of all calls that goes to trying other devices than the one predicted to be fastest.
  double exploring_share = 0.05;
  // Programs that stay prepared; beyond that the one not used for longest goes.
  std::size_t most_prepared = 64;
  // By which calls are measured and time out; null: the machine's monotonic clock.
  std::function<std::chrono::nanoseconds()> now;
};

struct ArrayCall {
  // Device ids or API names with commas: only these compute, and one alone never falls back. Empty: all devices of the
  // runtime.
  std::string_view devices;
  // Of the whole call. A device that may hang gets half of what is left, so that the next one can still answer.
  std::optional<std::chrono::nanoseconds> timeout;
};

// X(name, in words)
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
  std::string_view device;  // its id, which lives as long as the runtime; empty where there was nothing to compute
  ArrayReason reason = ArrayReason::nothing_to_compute;
  double us = 0;         // from the inputs in the caller's memory to the result there
  std::string failures;  // of the devices that were tried before; empty: none
};

// a [rows, inner], b [inner, columns] -> [rows, columns]
struct ProductExtents {
  std::size_t rows = 0;
  std::size_t inner = 0;
  std::size_t columns = 0;
};

class Arrays {
 public:
  // The chain in which devices follow one that fails is runtime.devices(), from its end on to its beginning.
  // Errors: invalid for a margin below 1, a share outside of 0 to 1, no room for a program, a runtime without devices.
  [[nodiscard]] static Result<std::unique_ptr<Arrays>> create(const Runtime& runtime, ArraysOptions options = {});
  ~Arrays();
  Arrays(const Arrays&) = delete;
  Arrays& operator=(const Arrays&) = delete;

  // Errors of all: invalid for sizes that do not go together, more than 2^31 elements in an array, and unknown devices;
  // unsupported for absent devices and where none can compute it; timed_out; else that of the last device tried.
  [[nodiscard]] Result<ArrayRun> add(std::span<const float> a, std::span<const float> b, std::span<float> out,
                                     const ArrayCall& call = {});
  [[nodiscard]] Result<ArrayRun> multiply(std::span<const float> a, std::span<const float> b, std::span<float> out,
                                          const ArrayCall& call = {});
  [[nodiscard]] Result<ArrayRun> matmul(std::span<const float> a, std::span<const float> b,
                                        const ProductExtents& extents, std::span<float> out,
                                        const ArrayCall& call = {});
  // Sums are made of more bits than F32 has.
  [[nodiscard]] Result<ArrayRun> dot(std::span<const float> a, std::span<const float> b, float& out,
                                     const ArrayCall& call = {});
  [[nodiscard]] Result<ArrayRun> sum(std::span<const float> x, float& out, const ArrayCall& call = {});
  // Of each row of so many columns.
  [[nodiscard]] Result<ArrayRun> softmax(std::span<const float> x, std::size_t columns, std::span<float> out,
                                         const ArrayCall& call = {});

  // Programs that are prepared now.
  [[nodiscard]] std::size_t prepared() const;
  // What is known so far: per function and size the time of each device, and which devices are set aside, and why.
  [[nodiscard]] std::string explain() const;

 private:
  struct Parts;
  explicit Arrays(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace shunt
