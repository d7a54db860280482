// A thread copies one element or, if x is copied unchanged, four words: in one access if both buffers are 16-byte
// aligned.
#include "ops/copy/copy_args.h"

#include "ops/kernel.cuh"

namespace shunt {
namespace {

SHUNT_FUNCTION bool is_integer(std::uint32_t of) { return of == dtype::I32 || of == dtype::I8 || of == dtype::U32; }

// Truncates towards zero and clamps to +-2^32, which no integer dtype holds; NaN becomes 0.
SHUNT_FUNCTION std::int64_t whole(float value) {
  if (value != value) return 0;
  if (value >= 4294967296.0F) return 4294967296;
  if (value <= -4294967296.0F) return -4294967296;
  return static_cast<std::int64_t>(value);
}

SHUNT_FUNCTION std::int64_t load_integer(std::uint32_t of, const void* data, std::uint64_t at) {
  if (of == dtype::I8) return static_cast<const std::int8_t*>(data)[at];
  if (of == dtype::U32) return static_cast<const std::uint32_t*>(data)[at];
  return static_cast<const std::int32_t*>(data)[at];
}

SHUNT_FUNCTION std::int64_t between(std::int64_t least, std::int64_t value, std::int64_t most) {
  return value < least ? least : value > most ? most : value;
}

// Stores the nearest value that the dtype holds.
SHUNT_FUNCTION void store_integer(std::uint32_t of, void* data, std::uint64_t at, std::int64_t value) {
  if (of == dtype::I8)
    static_cast<std::int8_t*>(data)[at] = static_cast<std::int8_t>(between(-128, value, 127));
  else if (of == dtype::U32)
    static_cast<std::uint32_t*>(data)[at] = static_cast<std::uint32_t>(between(0, value, 4294967295));
  else
    static_cast<std::int32_t*>(data)[at] = static_cast<std::int32_t>(between(-2147483648LL, value, 2147483647));
}

struct alignas(16) Four {
  std::uint32_t words[4];
};

// Copies those of words `first` to first + 3 that are below `words`.
SHUNT_FUNCTION void copy_words(std::uint32_t* to, const std::uint32_t* from, std::uint64_t first, std::uint64_t words) {
  if (first >= words) return;
  const auto places = reinterpret_cast<std::uintptr_t>(to) | reinterpret_cast<std::uintptr_t>(from);
  if (places % sizeof(Four) == 0 && first + 4 <= words) {
    *reinterpret_cast<Four*>(to + first) = *reinterpret_cast<const Four*>(from + first);
    return;
  }
  for (std::uint64_t word = first; word < first + 4 && word < words; ++word) to[word] = from[word];
}

}  // namespace
}  // namespace shunt

SHUNT_KERNEL(copy) {
  using namespace shunt;
  const auto& args = arguments_of<CopyArgs>(call);
  if (args.words_of_row != 0) {
    copy_words(output_of<std::uint32_t>(call), input_of<std::uint32_t>(call, 0), 4 * thread_index(),
               std::uint64_t{args.words_of_row} * valid_row_count(args.x, parameters_of(call)));
    return;
  }
  const std::uint64_t index = thread_index();
  const std::uint64_t row = index / args.x.extents[3];
  if (row >= valid_row_count(args.x, parameters_of(call))) return;
  const std::uint64_t at = row_offset(args.x, row) + index % args.x.extents[3] * args.x.strides[3];
  if (args.x.dtype == args.to) {
    copy_element(args.to, output_of<void>(call), index, input_of<void>(call, 0), at);
    return;
  }
  const void* const x = input_of<void>(call, 0);
  if (is_integer(args.x.dtype)) {
    const std::int64_t value = load_integer(args.x.dtype, x, at);
    if (is_integer(args.to))
      store_integer(args.to, output_of<void>(call), index, value);
    else
      store(args.to, output_of<void>(call), index, static_cast<float>(value));
    return;
  }
  const float value = load(args.x.dtype, x, at);
  if (is_integer(args.to))
    store_integer(args.to, output_of<void>(call), index, whole(value));
  else
    store(args.to, output_of<void>(call), index, value);
}
