#include "onnx/model.h"

#include <fmt/format.h>

#include <charconv>

#include "onnx/proto.h"

namespace shunt::onnx {
namespace {

constexpr std::int64_t kLeastOpset = 13;

// Calls `take(field)` for each field of a message.
template <class Take>
Status each_field(std::span<const std::byte> bytes, const Take& take) {
  for (ProtoReader reader(bytes); !reader.at_end();) {
    SHUNT_TRY_ASSIGN(const ProtoField field, reader.next());
    SHUNT_TRY(take(field));
  }
  return {};
}

// The same for the fields of a field that is a message.
template <class Take>
Status each_field_of(const ProtoField& parent, const Take& take) {
  SHUNT_TRY_ASSIGN(const std::span<const std::byte> bytes, parent.message());
  return each_field(bytes, take);
}

template <class T>
Status assign(T& to, Result<T> from) {
  SHUNT_TRY_ASSIGN(to, std::move(from));
  return {};
}

template <class T, class From>
Status assign(std::optional<T>& to, Result<From> from) {
  SHUNT_TRY_ASSIGN(to, std::move(from));
  return {};
}

Status assign_type(Type& to, const ProtoField& field) {
  SHUNT_TRY_ASSIGN(const std::int64_t number, field.integer());
  to = static_cast<Type>(number);
  return {};
}

Result<std::uint64_t> number_in(std::string_view text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size())
    return fail(Code::invalid, fmt::format("\"{}\" is not an offset or length", text));
  return number;
}

Status take_external(const ProtoField& entry, TensorData& tensor) {
  std::string_view key;
  std::string_view value;
  SHUNT_TRY(each_field_of(entry, [&](const ProtoField& field) -> Status {
    if (field.number == 1) return assign(key, field.text());
    if (field.number == 2) return assign(value, field.text());
    return {};
  }));
  if (key == "location") tensor.file = value;
  if (key == "offset") return assign(tensor.offset, number_in(value));
  if (key == "length") return assign(tensor.length, number_in(value));
  return {};
}

Result<TensorData> tensor_of(const ProtoField& parent) {
  TensorData tensor;
  SHUNT_TRY(each_field_of(parent, [&](const ProtoField& field) -> Status {
    switch (field.number) {
      case 1:
        return field.append_to(tensor.dims);
      case 2:
        return assign_type(tensor.type, field);
      case 4:
        return field.append_to(tensor.floats);
      case 5:
      case 7:
        return field.append_to(tensor.integers);
      case 8:
        return assign(tensor.name, field.text());
      case 9:
        return assign(tensor.raw, field.message());
      case 13:
        return take_external(field, tensor);
      case 14: {
        SHUNT_TRY_ASSIGN(const std::int64_t place, field.integer());
        tensor.is_external = place == 1;
        return {};
      }
      default:
        return {};
    }
  }));
  return tensor;
}

Result<Attribute> attribute_of(const ProtoField& parent) {
  Attribute attribute;
  SHUNT_TRY(each_field_of(parent, [&](const ProtoField& field) -> Status {
    switch (field.number) {
      case 1:
        return assign(attribute.name, field.text());
      case 2:
        return assign(attribute.real, field.real());
      case 3:
        return assign(attribute.integer, field.integer());
      case 4:
        return assign(attribute.text, field.text());
      case 5: {
        SHUNT_TRY_ASSIGN(TensorData tensor, tensor_of(field));
        attribute.tensor = std::make_shared<const TensorData>(std::move(tensor));
        return {};
      }
      case 7:
        return field.append_to(attribute.reals);
      case 8:
        return field.append_to(attribute.integers);
      default:
        return {};
    }
  }));
  return attribute;
}

Result<Node> node_of(const ProtoField& parent) {
  Node node;
  SHUNT_TRY(each_field_of(parent, [&](const ProtoField& field) -> Status {
    switch (field.number) {
      case 1:
      case 2: {
        SHUNT_TRY_ASSIGN(const std::string_view name, field.text());
        (field.number == 1 ? node.inputs : node.outputs).push_back(name);
        return {};
      }
      case 3:
        return assign(node.name, field.text());
      case 4:
        return assign(node.op, field.text());
      case 5: {
        SHUNT_TRY_ASSIGN(Attribute attribute, attribute_of(field));
        node.attributes.push_back(std::move(attribute));
        return {};
      }
      case 7:
        return assign(node.domain, field.text());
      default:
        return {};
    }
  }));
  return node;
}

Status take_dimension(const ProtoField& parent, ValueInfo& value) {
  std::optional<std::int64_t> extent;
  SHUNT_TRY(each_field_of(parent, [&](const ProtoField& field) -> Status {
    return field.number == 1 ? assign(extent, field.integer()) : Status{};
  }));
  value.dims.push_back(extent);
  return {};
}

Status take_tensor_type(const ProtoField& parent, ValueInfo& value) {
  return each_field_of(parent, [&](const ProtoField& field) -> Status {
    if (field.number == 1) return assign_type(value.type, field);
    if (field.number != 2) return {};
    value.has_shape = true;
    return each_field_of(field, [&](const ProtoField& dimension) -> Status {
      return dimension.number == 1 ? take_dimension(dimension, value) : Status{};
    });
  });
}

Result<ValueInfo> value_of(const ProtoField& parent) {
  ValueInfo value;
  SHUNT_TRY(each_field_of(parent, [&](const ProtoField& field) -> Status {
    if (field.number == 1) return assign(value.name, field.text());
    if (field.number != 2) return {};
    return each_field_of(field, [&](const ProtoField& type) -> Status {
      return type.number == 1 ? take_tensor_type(type, value) : Status{};
    });
  }));
  return value;
}

template <class T>
Status append(std::vector<T>& list, Result<T> item) {
  if (!item) return std::unexpected(std::move(item).error());
  list.push_back(*std::move(item));
  return {};
}

Status take_graph(const ProtoField& parent, Model& model) {
  return each_field_of(parent, [&](const ProtoField& field) -> Status {
    switch (field.number) {
      case 1:
        return append(model.nodes, node_of(field));
      case 5:
        return append(model.initializers, tensor_of(field));
      case 11:
        return append(model.inputs, value_of(field));
      case 12:
        return append(model.outputs, value_of(field));
      case 15:
        return fail(Code::unsupported, "sparse tensors in an ONNX model are not supported");
      default:
        return {};
    }
  });
}

Status take_opset(const ProtoField& parent, Model& model) {
  std::string_view domain;
  std::int64_t version = 0;
  SHUNT_TRY(each_field_of(parent, [&](const ProtoField& field) -> Status {
    if (field.number == 1) return assign(domain, field.text());
    if (field.number == 2) return assign(version, field.integer());
    return {};
  }));
  if (domain.empty() || domain == "ai.onnx") model.opset = version;
  return {};
}

}  // namespace

std::string name_of(Type type) {
  switch (type) {
    case Type::f32:
      return "float";
    case Type::u8:
      return "uint8";
    case Type::i8:
      return "int8";
    case Type::i32:
      return "int32";
    case Type::i64:
      return "int64";
    case Type::boolean:
      return "bool";
    case Type::f16:
      return "float16";
    case Type::f64:
      return "double";
    case Type::u32:
      return "uint32";
    case Type::bf16:
      return "bfloat16";
    case Type::undefined:
      break;
  }
  return fmt::format("type {}", static_cast<std::int32_t>(type));
}

Result<Model> parse_model(std::span<const std::byte> bytes) {
  Model model;
  model.bytes = bytes.size();
  const Status parsed = each_field(bytes, [&](const ProtoField& field) -> Status {
    if (field.number == 7) return take_graph(field, model);
    if (field.number == 8) return take_opset(field, model);
    if (field.number == 25)
      return fail(Code::unsupported, "functions defined in an ONNX model are not supported; inline them first");
    return {};
  });
  if (!parsed && parsed.error().code == Code::invalid)
    return fail_at("not an ONNX model, or a damaged one", parsed.error());
  SHUNT_TRY(parsed);
  if (model.nodes.empty() || model.outputs.empty())
    return fail(Code::invalid, "not an ONNX model, or one without nodes or outputs");
  if (model.opset < kLeastOpset)
    return fail(Code::unsupported, fmt::format("operator set {}; {} and up are supported: convert the model with "
                                               "onnx.version_converter",
                                               model.opset, kLeastOpset));
  return model;
}

}  // namespace shunt::onnx
