#include "dlpack.h"

#include <fmt/format.h>

#include <array>
#include <limits>
#include <vector>

namespace shunt::dlpack {
namespace {

constexpr std::int32_t kCpu = 1;

struct Row {
  std::uint8_t code;  // 0: signed, 1: unsigned, 2: float, 4: bfloat
  std::uint8_t bits;
  DType dtype;
};
constexpr Row kRows[] = {{2, 32, DType::F32}, {2, 16, DType::F16}, {4, 16, DType::BF16},
                         {0, 32, DType::I32}, {0, 8, DType::I8},   {1, 32, DType::U32}};

Result<DType> dtype_of(const DataType& type) {
  for (const Row& row : kRows)
    if (row.code == type.code && row.bits == type.bits && type.lanes == 1) return row.dtype;
  return fail(Code::unsupported,
              fmt::format("a DLPack tensor of type code {} with {} bits and {} lanes; supported: F32, "
                          "F16, BF16, I32, I8, U32",
                          type.code, type.bits, type.lanes));
}

Result<Shape> shape_of(const Tensor& tensor) {
  if (tensor.rank < 0 || static_cast<std::size_t>(tensor.rank) > kMaxRank)
    return fail(Code::unsupported, fmt::format("a DLPack tensor of {} axes; at most {}", tensor.rank, kMaxRank));
  if (tensor.rank > 0 && tensor.shape == nullptr)
    return fail(Code::invalid, fmt::format("a DLPack tensor of {} axes whose shape is NULL", tensor.rank));
  Shape shape;
  for (std::int32_t axis = 0; axis < tensor.rank; ++axis) {
    const std::int64_t extent = tensor.shape[axis];
    if (extent < 0 || extent > std::numeric_limits<std::uint32_t>::max())
      return fail(Code::unsupported, fmt::format("a DLPack tensor with an axis of {}; 0 to 2^32 - 1", extent));
    shape.append(static_cast<std::uint32_t>(extent));
  }
  return shape;
}

struct Storage {
  ManagedTensor managed{};
  std::array<std::int64_t, kMaxRank> shape{};
  std::vector<std::byte> bytes;
};

}  // namespace

Result<Content> content_of(const Tensor& tensor) {
  if (tensor.device_type != kCpu)
    return fail(
        Code::unsupported,
        fmt::format("a DLPack tensor of device type {}; only memory of the CPU (1) can be read", tensor.device_type));
  Content content;
  SHUNT_TRY_ASSIGN(content.dtype, dtype_of(tensor.dtype));
  SHUNT_TRY_ASSIGN(content.shape, shape_of(tensor));
  const Strides contiguous = contiguous_strides(content.shape);
  for (std::size_t axis = 0; tensor.strides != nullptr && axis < content.shape.rank(); ++axis)
    if (content.shape[axis] > 1 && tensor.strides[axis] != static_cast<std::int64_t>(contiguous[axis]))
      return fail(Code::unsupported,
                  fmt::format("a DLPack tensor {} whose axis {} has stride {}, not {}: make it "
                              "contiguous first",
                              to_string(content.shape), axis, tensor.strides[axis], contiguous[axis]));
  SHUNT_TRY_ASSIGN(const std::uint64_t bytes, bytes_of(content.dtype, content.shape));
  if (tensor.data == nullptr && bytes != 0)
    return fail(Code::invalid, fmt::format("a DLPack tensor {} whose data is NULL", to_string(content.shape)));
  if (tensor.data == nullptr) return content;
  content.bytes = {static_cast<const std::byte*>(tensor.data) + tensor.byte_offset, bytes};
  return content;
}

Owned make_empty(DType dtype, const Shape& shape, std::uint64_t bytes) {
  for (const Row& row : kRows) {
    if (row.dtype != dtype) continue;
    auto storage = std::make_unique<Storage>();
    storage->bytes.resize(bytes);
    for (std::size_t axis = 0; axis < shape.rank(); ++axis) storage->shape[axis] = shape[axis];
    storage->managed.tensor = {.data = storage->bytes.data(),
                               .device_type = kCpu,
                               .device_id = 0,
                               .rank = static_cast<std::int32_t>(shape.rank()),
                               .dtype = {.code = row.code, .bits = row.bits, .lanes = 1},
                               .shape = storage->shape.data(),
                               .strides = nullptr,
                               .byte_offset = 0};
    storage->managed.deleter = [](ManagedTensor* self) {
      const std::unique_ptr<Storage> ended(static_cast<Storage*>(self->context));
    };
    storage->managed.context = storage.get();
    return Owned(&storage.release()->managed);
  }
  return nullptr;
}

}  // namespace shunt::dlpack
