// The structs of DLPack (https://dmlc.github.io/dlpack/latest/c_api.html) that CPU tensors need, laid out as there, and
// how they map to tensors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "shunt/tensor.h"

namespace shunt::dlpack {

struct DataType {
  std::uint8_t code;
  std::uint8_t bits;
  std::uint16_t lanes;
};

struct Tensor {
  void* data;
  std::int32_t device_type;
  std::int32_t device_id;
  std::int32_t rank;
  DataType dtype;
  std::int64_t* shape;
  std::int64_t* strides;  // elements; null: contiguous
  std::uint64_t byte_offset;
};

struct ManagedTensor {
  Tensor tensor;
  void* context;
  void (*deleter)(ManagedTensor* self);
};

struct End {
  void operator()(ManagedTensor* tensor) const {
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  }
};
using Owned = std::unique_ptr<ManagedTensor, End>;

struct Content {
  DType dtype = DType::F32;
  Shape shape;
  std::span<const std::byte> bytes;
};

// Errors: unsupported for memory of a device other than the CPU, dtypes that Shunt lacks, more than 4 axes, and tensors
// that are not contiguous.
[[nodiscard]] Result<Content> content_of(const Tensor& tensor);
// Makes a tensor with uninitialized memory of its own. Returns null for block dtypes, which DLPack lacks. REQUIRES:
// `bytes` are those of a contiguous tensor of that dtype and shape.
[[nodiscard]] Owned make_empty(DType dtype, const Shape& shape, std::uint64_t bytes);

}  // namespace shunt::dlpack
