// An ONNX model as its file has it: plain values, and texts that view into the file's bytes
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
  std::span<const std::byte> raw;  // little-endian; empty where the elements stand in one of the next two
  std::vector<float> floats;
  std::vector<std::int64_t> integers;
  // Of a tensor whose elements lie in another file.
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
  std::vector<std::string_view> inputs;  // empty for one that is absent
  std::vector<std::string_view> outputs;
  std::vector<Attribute> attributes;
};

struct ValueInfo {
  std::string_view name;
  Type type = Type::undefined;
  std::vector<std::optional<std::int64_t>> dims;  // nothing for one that has only a name
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

// `bytes` must outlive the model. Errors: invalid for bytes that are no ONNX model, unsupported for sparse tensors,
// functions of the model's own, and operator sets before 13.
[[nodiscard]] Result<Model> parse_model(std::span<const std::byte> bytes);

}  // namespace shunt::onnx
