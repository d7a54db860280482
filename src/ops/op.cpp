#include "ops/op.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/expand.h"

namespace shunt {

#define SHUNT_OP(name, inputs, required, attributes, rule, tolerance, family) extern const OpRule rule##_rule;
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) extern const OpRule elementwise_rule;
#define SHUNT_LAYOUT_OP(name, inputs, attributes, rule) extern const OpRule rule##_rule;
#include "ops/ops.def"

namespace {

using enum Attr;

// The lists of each row, as constants that the table points to.
#define SHUNT_ROW_LISTS(name, input_list, attribute_list)                                            \
  namespace row_##name {                                                                             \
    constexpr std::array<std::string_view, SHUNT_COUNT input_list> inputs{SHUNT_STRINGS input_list}; \
    constexpr std::array<Attr, SHUNT_COUNT attribute_list> attributes{SHUNT_SAME attribute_list};    \
  }
#define SHUNT_SAME(...) __VA_ARGS__
#define SHUNT_OP(name, inputs, required, attributes, rule, tolerance, family) SHUNT_ROW_LISTS(name, inputs, attributes)
#define SHUNT_ELEMENTWISE(name, inputs, attributes, tolerance, expression) SHUNT_ROW_LISTS(name, inputs, attributes)
#define SHUNT_LAYOUT_OP(name, inputs, attributes, rule) SHUNT_ROW_LISTS(name, inputs, attributes)
#include "ops/ops.def"

// Makes a row of any kind: with a family it computes, with an expression it is elementwise, with an expansion fused.
constexpr OpInfo row_of(std::string_view name, std::span<const std::string_view> inputs, std::size_t required,
                        std::span<const Attr> attributes, const OpRule& rule, double tolerance, std::string_view family,
                        std::string_view expansion = "", std::string_view expression = "") {
  return {.name = name,
          .op_class = !expression.empty() ? OpClass::elementwise
                      : family.empty()    ? OpClass::layout
                                          : OpClass::kernel,
          .inputs = inputs,
          .required_inputs = static_cast<std::uint32_t>(required),
          .attributes = attributes,
          .rule = &rule,
          .tolerance = tolerance,
          .family = family,
          .expression = expression,
          .expansion = expansion};
}

constexpr OpInfo kOps[] = {
#define SHUNT_ROW(name, required, rule, ...) \
  row_of(#name, row_##name::inputs, required, row_##name::attributes, rule##_rule, __VA_ARGS__),
#define SHUNT_OP(name, in, required, attr, rule, tolerance, family) SHUNT_ROW(name, required, rule, tolerance, #family)
#define SHUNT_FUSED(name, in, required, attr, rule, tolerance, family, expansion) \
  SHUNT_ROW(name, required, rule, tolerance, #family, expansion)
#define SHUNT_ELEMENTWISE(name, in, attr, tolerance, expression) \
  SHUNT_ROW(name, row_##name::inputs.size(), elementwise, tolerance, "elementwise", "", #expression)
#define SHUNT_FUSED_ELEMENTWISE(name, in, attr, tolerance, expression, expansion) \
  SHUNT_ROW(name, row_##name::inputs.size(), elementwise, tolerance, "elementwise", expansion, #expression)
#define SHUNT_LAYOUT_OP(name, in, attr, rule) SHUNT_ROW(name, row_##name::inputs.size(), rule, 0, "")
#include "ops/ops.def"
};

constexpr std::size_t kAttributeCount = 0
#define SHUNT_ATTRIBUTE(name, type, default_value, meaning) +1
#include "ops/attributes.def"
    ;

// Checks that an attribute and its dtype are in the tables, because callers can cast any number to these enums.
Status check_attribute(const OpInfo& info, Attr attr, const AttributeValue& value) {
  if (static_cast<std::size_t>(attr) >= kAttributeCount)
    return fail(Code::invalid,
                fmt::format("{} is no attribute; there are {}", static_cast<unsigned>(attr), kAttributeCount));
  if (std::ranges::find(info.attributes, attr) == info.attributes.end())
    return fail(Code::invalid, fmt::format("takes no attribute {}", info_of(attr).name));
  if (value.index() != info_of(attr).default_value.index())
    return fail(Code::invalid, fmt::format("attribute {} is of type {}", info_of(attr).name, info_of(attr).type));
  const auto* dtype = std::get_if<DType>(&value);
  if (dtype != nullptr && static_cast<std::size_t>(*dtype) >= dtypes().size())
    return fail(Code::invalid, fmt::format("attribute {} is {}, which is no dtype; there are {}", info_of(attr).name,
                                           static_cast<unsigned>(*dtype), dtypes().size()));
  return {};
}

Status check_operands(const OpInfo& info, InputOperands inputs, const Attributes& attributes) {
  if (inputs.size() < info.required_inputs || inputs.size() > info.inputs.size())
    return fail(Code::invalid,
                fmt::format("takes {} to {} inputs, got {}", info.required_inputs, info.inputs.size(), inputs.size()));
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i] == nullptr) {
      if (i < info.required_inputs) return fail(Code::invalid, fmt::format("input {} is missing", info.inputs[i]));
      continue;
    }
    if (auto bytes = bytes_of(inputs[i]->dtype, inputs[i]->shape); !bytes)
      return fail_at(info.inputs[i], std::move(bytes).error());
  }
  for (const auto& [attr, value] : attributes.set_values()) SHUNT_TRY(check_attribute(info, attr, value));
  return {};
}

}  // namespace

const AttributeInfo& info_of(Attr attr) {
  using f32 = float;
  using u32 = std::uint32_t;
  using dtype = DType;
  using shape = Shape;
  using user_kernel = std::shared_ptr<const UserKernel>;
  using bytes = std::vector<std::byte>;
  static const AttributeInfo kAttributes[] = {
#define SHUNT_ATTRIBUTE(name, type, default_value, meaning) \
  {#name, #type, AttributeValue(type{default_value}), meaning},
#include "ops/attributes.def"
  };
  return kAttributes[static_cast<std::size_t>(attr)];
}

Attributes::Attributes(std::initializer_list<std::pair<Attr, AttributeValue>> values) {
  for (const auto& [attr, value] : values) set(attr, value);
}

void Attributes::set(Attr attr, AttributeValue value) {
  const auto place = std::ranges::lower_bound(values_, attr, {}, &std::pair<Attr, AttributeValue>::first);
  if (place != values_.end() && place->first == attr)
    place->second = std::move(value);
  else
    values_.emplace(place, attr, std::move(value));
}

const AttributeValue& Attributes::get(Attr attr) const {
  const auto place = std::ranges::find(values_, attr, &std::pair<Attr, AttributeValue>::first);
  return place != values_.end() ? place->second : info_of(attr).default_value;
}

Operand Operand::contiguous(DType dtype, const Shape& shape, TensorKind kind, Extent extent) {
  return {.dtype = dtype, .kind = kind, .extent = extent, .shape = shape, .strides = contiguous_strides(shape)};
}

std::uint64_t Operand::span_bytes() const {
  const DTypeInfo& info = info_of(dtype);
  std::uint64_t last = 0;
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) {
    if (shape[axis] == 0) return 0;
    last += (shape[axis] - 1) * strides[axis];
  }
  return (last / info.block_elements + 1) * info.block_bytes;
}

std::span<const OpInfo> ops() { return kOps; }
const OpInfo& info_of(Op op) { return kOps[static_cast<std::size_t>(op)]; }
std::string_view name_of(Op op) { return info_of(op).name; }

Result<Op> op_from_name(std::string_view name) {
  std::string known;
  for (std::size_t i = 0; i < std::size(kOps); ++i) {
    if (kOps[i].name == name) return static_cast<Op>(i);
    known += (known.empty() ? "" : " ") + std::string(kOps[i].name);
  }
  return fail(Code::invalid, fmt::format("unknown op \"{}\"; known: {}", name, known));
}

Result<ResultShape> infer(Op op, InputOperands inputs, const Attributes& attributes) {
  const OpInfo& info = info_of(op);
  if (auto checked = check_operands(info, inputs, attributes); !checked)
    return fail_at(info.name, std::move(checked).error());
  auto result = info.rule->shape(inputs, attributes);
  if (!result) return fail_at(info.name, std::move(result).error());
  if (auto bytes = bytes_of(result->operand.dtype, result->operand.shape); !bytes)
    return fail_at(info.name, std::move(bytes).error());
  return result;
}

std::string to_string(const OpCall& call) {
  std::string text(call.op == Op::custom ? custom_name(*call.attributes) : name_of(call.op));
  text += '(';
  for (std::size_t i = 0; i < call.inputs.size(); ++i) {
    if (i != 0) text += ", ";
    text += call.has_input(i) ? std::string(name_of(call.input(i).dtype)) + to_string(call.input(i).shape) : "-";
  }
  return text + ")";
}

}  // namespace shunt
