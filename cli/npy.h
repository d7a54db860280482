// Arrays in files of NumPy (https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html). One thread.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "onnx/import.h"

namespace shunt::cli {

// An array as a graph takes it: F32, F16 or I32, contiguous.
struct Array {
  DType dtype = DType::F32;
  Shape shape;
  std::vector<std::byte> bytes;
};

// From the bytes of a file, which are never trusted. Errors: those of read_npy() but for io.
[[nodiscard]] Result<Array> array_from_npy(std::span<const std::byte> bytes);

// 64-bit floats become F32; 64-bit integers and truth values I32. Errors: io; invalid for files that are no arrays, and
// integers that do not fit; unsupported for other types, Fortran's order and more than four axes.
[[nodiscard]] Result<Array> read_npy(const std::string& path);
// As float32, float16, int32, or int64 where `type` says so. Errors: those of write_text_file().
[[nodiscard]] Status write_npy(const std::string& path, const Array& array, onnx::Type type);

}  // namespace shunt::cli
