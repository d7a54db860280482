// The structs of DLPack (https://dmlc.github.io/dlpack/latest/c_api.html), as far as tensors of the CPU need them, laid
// out as there; and what of them becomes which tensor.
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

// Errors: unsupported for memory of another device than the CPU, dtypes that Shunt does not have, more than 4 axes and
// tensors that are not contiguous.
[[nodiscard]] Result<Content> content_of(const Tensor& tensor);
// A tensor with memory of its own, to be filled. Null for blocks, which DLPack does not know. REQUIRES: `bytes` are
// those of a contiguous tensor of that dtype and shape.
[[nodiscard]] Owned make_empty(DType dtype, const Shape& shape, std::uint64_t bytes);

}  // namespace shunt::dlpack
