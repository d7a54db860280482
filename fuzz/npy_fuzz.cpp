// Any bytes as a file of NumPy: an error that says something, or an array with all of its elements.
#include <cstddef>
#include <cstdint>
#include <span>

#include "npy.h"
#include "require.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto array = shunt::cli::array_from_npy(std::as_bytes(std::span(data, size)));
  if (!shunt::answered(array)) return 0;
  const std::uint64_t element_bytes = array->dtype == shunt::DType::F16 ? 2 : 4;
  shunt::require(array->bytes.size() == array->shape.elements() * element_bytes);
  // Truth values take one byte in the file and four here.
  shunt::require(array->bytes.size() <= 4 * size);
  return 0;
}
