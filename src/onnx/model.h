// An ONNX model as stored in its file: plain values, and strings that view the file's bytes
// (https://github.com/onnx/onnx/blob/main/onnx/onnx.proto).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "shunt/status.h"

namespace shunt::onnx {

// Ids of TensorProto.DataType.
enum class Type : std::int32_t {
  undefined = 0,
  f32 = 1,
  u8 = 2,
  i8 = 3,
  i32 = 6,
  i64 = 7,
  boolean = 9,
  f16 = 10,
  f64 = 11,
  u32 = 12,
  bf16 = 16,
};
// "float", "int64", ..., or "type N".
[[nodiscard]] std::string name_of(Type type);

struct TensorData {
  std::string_view name;
  Type type = Type::undefined;
  std::vector<std::int64_t> dims;
  std::span<const std::byte> raw;  // little-endian; empty if one of the next two has the elements
  std::vector<float> floats;
  std::vector<std::int64_t> integers;
  // For a tensor whose elements are in another file.
  bool is_external = false;
  std::string_view file;
  std::uint64_t offset = 0;
  std::optional<std::uint64_t> length;
};

struct Attribute {
  std::string_view name;
  std::optional<float> real;
  std::optional<std::int64_t> integer;
  std::optional<std::string_view> text;
  std::shared_ptr<const TensorData> tensor;  // may be null
  std::vector<float> reals;
  std::vector<std::int64_t> integers;
};

struct Node {
  std::string_view name;
  std::string_view op;
  std::string_view domain;
  std::vector<std::string_view> inputs;  // empty if absent
  std::vector<std::string_view> outputs;
  std::vector<Attribute> attributes;
};

struct ValueInfo {
  std::string_view name;
  Type type = Type::undefined;
  std::vector<std::optional<std::int64_t>> dims;  // nullopt for an extent that has only a name
  bool has_shape = false;
};

struct Model {
  std::uint64_t bytes = 0;  // of the file
  std::int64_t opset = 0;   // of the standard operators
  std::vector<Node> nodes;
  std::vector<TensorData> initializers;
  std::vector<ValueInfo> inputs;
  std::vector<ValueInfo> outputs;
};

// `bytes` must outlive the model. Errors: invalid for bytes that are not an ONNX model; unsupported for sparse tensors,
// the model's own functions, and operator sets before 13.
[[nodiscard]] Result<Model> parse_model(std::span<const std::byte> bytes);

}  // namespace shunt::onnx
