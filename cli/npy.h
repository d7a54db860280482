// NumPy array files (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). One thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "onnx/import.h"

namespace shunt::cli {

// An array for a graph: F32, F16 or I32, contiguous.
struct Array {
  DType dtype = DType::F32;
  Shape shape;
  std::vector<std::byte> bytes;
};

// Parses the bytes of a file, which are not trusted. Errors: those of read_npy() except io.
[[nodiscard]] Result<Array> array_from_npy(std::span<const std::byte> bytes);

// Reads an array. 64-bit floats become F32; 64-bit integers and booleans become I32. Errors: io; invalid for files that
// are not arrays, and for integers that do not fit; unsupported for other types, Fortran order and more than four axes.
[[nodiscard]] Result<Array> read_npy(const std::string& path);
// Writes float32, float16 or int32, or int64 if `type` is i64. Errors: those of write_text_file().
[[nodiscard]] Status write_npy(const std::string& path, const Array& array, onnx::Type type);

}  // namespace shunt::cli
