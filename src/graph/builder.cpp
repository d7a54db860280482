#include <fmt/format.h>

#include "base/checked.h"
#include "ops/expansion.h"
#include "ops/op.h"
#include "shunt/graph.h"

namespace shunt {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 56U;

// A caller may have cast any number to an enum; only the rows of the tables are valid.
Status check_leaf(const Operand& operand) {
  if (static_cast<std::size_t>(operand.dtype) >= dtypes().size())
    return fail(Code::invalid,
                fmt::format("{} is no dtype; there are {}", static_cast<unsigned>(operand.dtype), dtypes().size()));
  if (operand.extent > Extent::outputs)
    return fail(Code::invalid, fmt::format("{} is no extent; 0 to {} are", static_cast<unsigned>(operand.extent),
                                           static_cast<unsigned>(Extent::outputs)));
  SHUNT_TRY(bytes_of(operand.dtype, operand.shape));
  return {};
}

}  // namespace

Tensor GraphBuilder::refuse(Error error) {
  if (!error_) error_ = std::move(error);
  return {};
}

Tensor GraphBuilder::add_tensor(TensorInfo info) {
  const auto id = static_cast<TensorId>(graph_.tensors_.size());
  if (info.base == kNone) {
    info.base = id;
    const auto together = checked_sum(bytes_, bytes_of(info.operand.dtype, info.operand.shape).value_or(kMostBytes));
    if (!together || *together > kMostBytes)
      return refuse(
          {Code::invalid, fmt::format("\"{}\" {}{}: the graph's tensors take more than {} bytes together", info.name,
                                      name_of(info.operand.dtype), to_string(info.operand.shape), kMostBytes)});
    bytes_ = *together;
  }
  ids_.emplace(info.name, id);
  graph_.tensors_.push_back(std::move(info));
  return {id};
}

Tensor GraphBuilder::add_leaf(std::string_view name, const Operand& operand) {
  if (error_) return {};
  if (ids_.contains(name)) return refuse({Code::invalid, fmt::format("two tensors are named \"{}\"", name)});
  if (Status checked = check_leaf(operand); !checked) return refuse(fail_at(name, std::move(checked).error()).error());
  return add_tensor({.name = std::string(name), .operand = operand});
}

Tensor GraphBuilder::weight(std::string_view name, DType dtype, const Shape& shape) {
  return add_weight(name, Operand::contiguous(dtype, shape, TensorKind::weight));
}

Tensor GraphBuilder::weight_rows(std::string_view name, DType dtype, std::uint32_t first, std::uint32_t count,
                                 std::uint32_t columns) {
  const Tensor part = add_weight(fmt::format("{}[{}:{}]", name, first, std::uint64_t{first} + count),
                                 Operand::contiguous(dtype, {count, columns}, TensorKind::weight));
  if (error_) return part;
  graph_.tensors_[part.id].rows_of = name;
  graph_.tensors_[part.id].first_row = first;
  return part;
}

Tensor GraphBuilder::add_weight(std::string_view name, const Operand& operand) {
  const auto known = ids_.find(name);
  if (known == ids_.end() || graph_.tensor(known->second).operand.kind != TensorKind::weight)
    return add_leaf(name, operand);
  if (Status checked = check_leaf(operand); !checked) return refuse(fail_at(name, std::move(checked).error()).error());
  const Operand& other = graph_.tensor(known->second).operand;
  if (other.dtype == operand.dtype && other.shape == operand.shape) return {known->second};
  return refuse({Code::invalid, fmt::format("weight \"{}\" is used as {}{} and as {}{}", name, name_of(other.dtype),
                                            to_string(other.shape), name_of(operand.dtype), to_string(operand.shape))});
}

Tensor GraphBuilder::input(std::string_view name, DType dtype, const Shape& shape, Extent extent) {
  return add_leaf(name, Operand::contiguous(dtype, shape, TensorKind::input, extent));
}

Tensor GraphBuilder::state(std::string_view name, DType dtype, const Shape& shape) {
  return add_leaf(name, Operand::contiguous(dtype, shape, TensorKind::state));
}

Tensor GraphBuilder::add_node(Op op, std::span<const Tensor> inputs, const Attributes& attributes) {
  if (static_cast<std::size_t>(op) >= ops().size())
    return refuse({Code::invalid, fmt::format("{} is no op; there are {}", static_cast<unsigned>(op), ops().size())});
  if (op == Op::custom) return add_custom(inputs, attributes);
  if (!info_of(op).is_fused()) return add_primitive(op, inputs, attributes);
  if (inputs.size() != info_of(op).inputs.size())
    return refuse({Code::invalid,
                   fmt::format("{}: takes {} inputs, got {}", name_of(op), info_of(op).inputs.size(), inputs.size())});
  const auto expand = [&](const auto& self, const Expansion& part) -> Tensor {
    if (part.is_input()) return inputs[part.input];
    std::vector<Tensor> arguments;
    for (const Expansion& argument : part.arguments) arguments.push_back(self(self, argument));
    return add_primitive(part.op, arguments, attributes_for(part.op, attributes));
  };
  return expand(expand, expansion_of(op));
}

Tensor GraphBuilder::custom(std::shared_ptr<const UserKernel> kernel, std::span<const Tensor> inputs,
                            std::span<const std::byte> arguments) {
  Attributes attributes{{Attr::code, std::move(kernel)}};
  if (!arguments.empty()) attributes.set(Attr::arguments, std::vector<std::byte>(arguments.begin(), arguments.end()));
  return add_node(Op::custom, inputs, attributes);
}

Tensor GraphBuilder::add_custom(std::span<const Tensor> inputs, const Attributes& attributes) {
  std::vector<Tensor> contiguous(inputs.begin(), inputs.end());
  for (Tensor& input : contiguous)
    if (!error_ && input.id < graph_.tensors_.size() && !graph_.tensors_[input.id].operand.is_contiguous())
      input = copy(input, {{Attr::to, graph_.tensors_[input.id].operand.dtype}});
  return add_primitive(Op::custom, contiguous, attributes);
}

bool GraphBuilder::is_outdated(TensorId id) const {
  const auto newest = newest_.find(graph_.tensors_[id].base);
  return newest != newest_.end() && graph_.version_of(id) != newest->second;
}

Tensor GraphBuilder::add_primitive(Op op, std::span<const Tensor> inputs, const Attributes& attributes) {
  if (error_) return {};
  Node node{.op = op,
            .attributes = attributes,
            .inputs = {},
            .output = kNone,
            .name = unused_name(fmt::format(
                "{}{}.{}", prefix_, op == Op::custom ? custom_name(attributes) : name_of(op), graph_.nodes_.size()))};
  std::vector<const Operand*> operands;
  for (const Tensor input : inputs) {
    if (input.id != kNone && input.id >= graph_.tensors_.size())
      return refuse({Code::invalid, fmt::format("{}: tensor {} is not of this graph", node.name, input.id)});
    if (input.id != kNone && is_outdated(input.id))
      return refuse({Code::invalid, fmt::format("{}: \"{}\" is no longer the newest version of state \"{}\"; use what "
                                                "the op that changed it returned",
                                                node.name, graph_.tensors_[input.id].name,
                                                graph_.tensors_[graph_.tensors_[input.id].base].name)});
    node.inputs.push_back(input.id);
    operands.push_back(input.id == kNone ? nullptr : &graph_.tensors_[input.id].operand);
  }
  auto result = infer(op, operands, attributes);
  if (!result) return refuse({result.error().code, fmt::format("{} (node \"{}\")", result.error().message, node.name)});

  const bool shares_storage = info_of(op).op_class == OpClass::layout || result->operand.kind == TensorKind::state;
  TensorInfo info{.name = node.name, .operand = result->operand, .producer = static_cast<NodeId>(graph_.nodes_.size())};
  if (shares_storage) {
    info.base = graph_.tensors_[node.inputs[0]].base;
    info.offset = graph_.tensors_[node.inputs[0]].offset + result->offset;
  }
  const TensorId changed =
      info_of(op).op_class != OpClass::layout && result->operand.kind == TensorKind::state ? info.base : kNone;
  const Tensor output = add_tensor(std::move(info));
  if (output.id == kNone) return {};
  if (changed != kNone) newest_[changed] = output.id;
  node.output = output.id;
  graph_.nodes_.push_back(std::move(node));
  return output;
}

void GraphBuilder::output(Tensor tensor) {
  if (error_) return;
  if (tensor.id >= graph_.tensors_.size()) {
    refuse({Code::invalid, "output: not a tensor of this graph"});
    return;
  }
  const TensorInfo& info = graph_.tensors_[tensor.id];
  if (info.operand.kind != TensorKind::value || !info.operand.is_contiguous()) {
    refuse({Code::invalid, fmt::format("output \"{}\" must be a contiguous computed value; copy it", info.name)});
    return;
  }
  graph_.outputs_.push_back(tensor.id);
}

void GraphBuilder::name(Tensor tensor, std::string_view name) {
  if (error_) return;
  const auto [known, is_new] = ids_.try_emplace(std::string(name), tensor.id);
  if (tensor.id >= graph_.tensors_.size() || known->second != tensor.id) {
    refuse({Code::invalid, fmt::format("two tensors are named \"{}\"", name)});
    return;
  }
  TensorInfo& info = graph_.tensors_[tensor.id];
  if (is_new) ids_.erase(info.name);
  info.name = name;
  if (info.producer != kNone) graph_.nodes_[info.producer].name = name;
}

std::string GraphBuilder::unused_name(std::string name) const {
  while (ids_.contains(name)) name += '\'';
  return name;
}

Shape GraphBuilder::shape_of(Tensor tensor) const {
  return tensor.id < graph_.tensors_.size() ? graph_.tensors_[tensor.id].operand.shape : Shape{};
}

Result<Graph> GraphBuilder::finish() && {
  if (error_) return std::unexpected(std::move(*error_));
  if (graph_.outputs_.empty()) return fail(Code::invalid, "the graph has no outputs");
  return std::move(graph_);
}

std::optional<TensorId> Graph::find(std::string_view name) const {
  for (std::size_t id = 0; id < tensors_.size(); ++id)
    if (tensors_[id].name == name) return static_cast<TensorId>(id);
  return std::nullopt;
}

TensorId Graph::version_of(TensorId id) const {
  while (tensors_[id].producer != kNone && info_of(nodes_[tensors_[id].producer].op).op_class == OpClass::layout)
    id = nodes_[tensors_[id].producer].inputs[0];
  return id;
}

}  // namespace shunt
