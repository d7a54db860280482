#include "onnx/builder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <numeric>

#include "base/checked.h"
#include "base/system/mapped_file.h"
#include "onnx/translators.h"

namespace shunt::onnx {

namespace {

using Translate = Outputs (*)(const Call& call);
struct Row {
  std::string_view name;
  Translate translate;
};
constexpr Row kRows[] = {
#define SHUNT_ONNX_OP(name, function) {#name, function},
#include "onnx/ops.def"
};

std::string describe(const Node& node) {
  return fmt::format("node \"{}\" ({})", node.name.empty() ? (node.outputs.empty() ? "" : node.outputs[0]) : node.name,
                     node.op);
}

DType dtype_of(Type type) {
  switch (type) {
    case Type::f16:
      return DType::F16;
    case Type::bf16:
      return DType::BF16;
    case Type::i32:
    case Type::i64:
    case Type::boolean:
      return DType::I32;
    default:
      return DType::F32;
  }
}

// Weights and the memory that holds them.
class OwnedWeights final : public WeightSource {
 public:
  OwnedWeights(MemoryWeights weights, std::vector<std::unique_ptr<std::vector<std::byte>>> memory)
      : weights_(std::move(weights)), memory_(std::move(memory)) {}

  [[nodiscard]] std::span<const WeightInfo> weights() const override { return weights_.weights(); }
  [[nodiscard]] Status read(std::size_t index, std::uint64_t offset, std::span<std::byte> out) override {
    return weights_.read(index, offset, out);
  }
  [[nodiscard]] std::span<const std::byte> mapped(std::size_t index) override { return weights_.mapped(index); }
  void release(std::size_t, std::uint64_t, std::uint64_t) override {}
  [[nodiscard]] Status health() const override { return {}; }

 private:
  MemoryWeights weights_;
  std::vector<std::unique_ptr<std::vector<std::byte>>> memory_;
};

// Opens a file of external data, which must be inside the model's folder.
Result<std::unique_ptr<MappedFile>> open_beside(const std::string& folder, std::string_view name) {
  const std::filesystem::path path(name);
  const bool leaves = path.is_absolute() || std::ranges::find(path, std::filesystem::path("..")) != path.end();
  if (name.empty() || leaves)
    return fail(Code::invalid,
                fmt::format("external data in \"{}\" is not in the model's folder; put it beside the model", name));
  return MappedFile::open((std::filesystem::path(folder) / path).string());
}

Result<std::span<const std::byte>> part_of(const TensorData& data, std::span<const std::byte> file) {
  if (data.offset > file.size() || data.length.value_or(0) > file.size() - data.offset)
    return fail(Code::invalid, fmt::format("tensor \"{}\" runs past the end of \"{}\"", data.name, data.file));
  return file.subspan(data.offset, data.length.value_or(file.size() - data.offset));
}

Result<Shape> shape_of_input(const ValueInfo& input, const std::map<std::string, Shape>& given) {
  const auto asked = given.find(std::string(input.name));
  std::vector<std::int64_t> dims;
  for (std::size_t axis = 0; axis < input.dims.size(); ++axis) {
    if (asked == given.end() && !input.dims[axis])
      return fail(Code::invalid,
                  fmt::format("input \"{}\" has no fixed extent on axis {}; give its shape", input.name, axis));
    dims.push_back(input.dims[axis].value_or(-1));
  }
  if (asked == given.end()) {
    if (!input.has_shape)
      return fail(Code::invalid, fmt::format("input \"{}\" has no shape in the model; give one", input.name));
    return shape_from(dims);
  }
  const Shape& shape = asked->second;
  for (std::size_t axis = 0; input.has_shape && axis < dims.size(); ++axis)
    if (dims.size() != shape.rank() || (dims[axis] >= 0 && dims[axis] != shape[axis]))
      return fail(Code::invalid, fmt::format("input \"{}\" is given as {}, but the model has axis {} of {}", input.name,
                                             to_string(shape), axis, dims[axis]));
  return shape;
}

}  // namespace

Result<const Value*> Call::input(std::size_t index) const {
  if (!has(index)) return invalid(fmt::format("input {} is missing", index));
  return inputs_[index];
}

Result<std::span<const std::int64_t>> Call::known_integers(std::size_t index) const {
  SHUNT_TRY_ASSIGN(const Value* value, input(index));
  if (!value->is_known() || !value->constant->is_integer)
    return unsupported(fmt::format("input {} (\"{}\") is not known before the graph runs", index, value->name));
  return std::span<const std::int64_t>(value->constant->integers);
}

Result<std::span<const float>> Call::known_floats(std::size_t index) const {
  SHUNT_TRY_ASSIGN(const Value* value, input(index));
  if (!value->is_known() || value->constant->is_integer)
    return unsupported(fmt::format("input {} (\"{}\") is not known before the graph runs", index, value->name));
  return std::span<const float>(value->constant->floats);
}

const Attribute* Call::attribute(std::string_view name) const {
  const auto place = std::ranges::find(node_.attributes, name, &Attribute::name);
  return place == node_.attributes.end() ? nullptr : &*place;
}

std::int64_t Call::integer(std::string_view name, std::int64_t fallback) const {
  const Attribute* found = attribute(name);
  return found == nullptr ? fallback : found->integer.value_or(fallback);
}
float Call::real(std::string_view name, float fallback) const {
  const Attribute* found = attribute(name);
  return found == nullptr ? fallback : found->real.value_or(fallback);
}
std::string_view Call::text(std::string_view name, std::string_view fallback) const {
  const Attribute* found = attribute(name);
  return found == nullptr ? fallback : found->text.value_or(fallback);
}
std::span<const std::int64_t> Call::integers(std::string_view name) const {
  const Attribute* found = attribute(name);
  return found == nullptr ? std::span<const std::int64_t>() : found->integers;
}

Result<std::uint32_t> Call::axis_in(std::int64_t axis, std::uint32_t rank) const {
  const std::int64_t counted = axis < 0 ? axis + rank : axis;
  if (counted < 0 || counted >= rank) return invalid(fmt::format("axis {} of a tensor with {} axes", axis, rank));
  return static_cast<std::uint32_t>(counted);
}

Result<std::uint32_t> Call::extents(const Shape& shape, std::size_t begin, std::size_t end) const {
  std::optional<std::uint32_t> product = 1;
  for (std::size_t axis = begin; product && axis < end; ++axis)
    product = checked_product<std::uint32_t>(*product, shape[axis]);
  if (!product)
    return unsupported(
        fmt::format("axes {} to {} of {} together have more than 2^32 - 1 entries", begin, end - 1, to_string(shape)));
  return *product;
}

Result<Constant> Call::zeros(bool is_integer, std::uint64_t elements) const {
  auto made = onnx::zeros(builder_.budget(), is_integer, elements);
  if (!made) return here(std::move(made).error());
  return made;
}

Result<Constant> Call::repeated(const Constant& constant, const Shape& from, const Shape& to) const {
  auto made = onnx::repeated(builder_.budget(), constant, from, to);
  if (!made) return here(std::move(made).error());
  return made;
}

Result<Constant> Call::transposed(const Constant& constant, const Shape& shape,
                                  std::span<const std::uint32_t> axes) const {
  auto made = onnx::transposed(builder_.budget(), constant, shape, axes);
  if (!made) return here(std::move(made).error());
  return made;
}

std::unexpected<Error> Call::unsupported(std::string why) const {
  return fail_at(describe(node_), {Code::unsupported, std::move(why)});
}
std::unexpected<Error> Call::invalid(std::string why) const {
  return fail_at(describe(node_), {Code::invalid, std::move(why)});
}
std::unexpected<Error> Call::here(Error error) const { return fail_at(describe(node_), std::move(error)); }

Value Builder::computed(Tensor tensor, Type type, const Shape& shape) {
  return {.name = {}, .type = type, .shape = shape, .tensor = tensor, .constant = nullptr};
}

Value Builder::known(Constant constant, Type type, const Shape& shape) {
  return {.name = {},
          .type = type,
          .shape = shape,
          .tensor = {},
          .constant = std::make_shared<const Constant>(std::move(constant))};
}

Result<Tensor> Builder::weight(std::string name, const Constant& constant, const Shape& shape) {
  name = fmt::format("{}#{}", name, made_++);
  constexpr std::size_t kBytes = 4;  // per element, F32 or I32
  if (Status room = budget_.take(constant.size(), kBytes); !room) return fail_at(name, std::move(room).error());
  auto memory = std::make_unique<std::vector<std::byte>>(constant.size() * kBytes);
  for (std::size_t i = 0; i < constant.size(); ++i) {
    if (constant.is_integer) {
      if (constant.integers[i] < std::numeric_limits<std::int32_t>::min() ||
          constant.integers[i] > std::numeric_limits<std::int32_t>::max())
        return fail(Code::unsupported,
                    fmt::format("\"{}\" has {}, which does not fit a 32-bit integer", name, constant.integers[i]));
      const auto number = static_cast<std::int32_t>(constant.integers[i]);
      std::memcpy(memory->data() + i * kBytes, &number, kBytes);
    } else {
      std::memcpy(memory->data() + i * kBytes, &constant.floats[i], kBytes);
    }
  }
  const DType dtype = constant.is_integer ? DType::I32 : DType::F32;
  SHUNT_TRY(weights_.add(name, dtype, shape, *memory));
  memory_.push_back(std::move(memory));
  return graph_.weight(name, dtype, shape);
}

Result<Tensor> Builder::tensor(const Value& value) {
  if (!value.is_known()) return value.tensor;
  return weight(value.name.empty() ? "constant" : value.name, *value.constant, value.shape);
}

Tensor Builder::reshaped(Tensor x, const Shape& shape) { return graph_.reshape(x, {{Attr::dims, shape}}); }

Tensor Builder::permuted(Tensor x, std::span<const std::uint32_t> axes) {
  Shape order;
  for (const std::uint32_t axis : axes) order.append(axis);
  return graph_.copy(graph_.permute(x, {{Attr::axes, order}}));
}

Tensor Builder::sliced(Tensor x, std::uint32_t axis, std::uint32_t begin, std::uint32_t count) {
  return graph_.copy(graph_.slice(x, {{Attr::axis, axis}, {Attr::begin, begin}, {Attr::count, count}}));
}

// Joins neighbours, then pairs of them, so that each part is copied only a few times.
Tensor Builder::joined(std::vector<Tensor> parts, std::uint32_t axis) {
  while (parts.size() > 1) {
    std::vector<Tensor> pairs;
    for (std::size_t i = 0; i < parts.size(); i += 2)
      pairs.push_back(i + 1 == parts.size() ? parts[i] : graph_.concat(parts[i], parts[i + 1], {{Attr::axis, axis}}));
    parts = std::move(pairs);
  }
  return parts.front();
}

Tensor Builder::with_axis_last(Tensor x, std::uint32_t rank, std::uint32_t axis) {
  if (axis + 1 == rank) return x;
  std::vector<std::uint32_t> axes;
  for (std::uint32_t i = 0; i < rank; ++i)
    if (i != axis) axes.push_back(i);
  axes.push_back(axis);
  return permuted(x, axes);
}

Tensor Builder::with_last_axis_at(Tensor x, std::uint32_t rank, std::uint32_t axis) {
  if (axis + 1 == rank) return x;
  std::vector<std::uint32_t> axes;
  for (std::uint32_t i = 0; i + 1 < rank; ++i) axes.push_back(i);
  axes.insert(axes.begin() + static_cast<std::ptrdiff_t>(axis), rank - 1);
  return permuted(x, axes);
}

Status Builder::add_inputs(const Model& model, const std::map<std::string, Shape>& shapes) {
  for (const ValueInfo& input : model.inputs) {
    // Older models list initializers among their inputs.
    if (values_.contains(input.name)) continue;
    SHUNT_TRY_ASSIGN(const Shape shape, shape_of_input(input, shapes));
    switch (input.type) {
      case Type::f32:
      case Type::f16:
      case Type::bf16:
      case Type::f64:
      case Type::i32:
      case Type::i64:
        break;
      default:
        return fail(Code::unsupported,
                    fmt::format("input \"{}\" has the unsupported type {}", input.name, name_of(input.type)));
    }
    const DType dtype = dtype_of(input.type);
    Value value = computed(graph_.input(input.name, dtype, shape), input.type, shape);
    value.name = input.name;
    values_.emplace(input.name, std::move(value));
    inputs_.push_back({.name = std::string(input.name), .type = input.type, .dtype = dtype, .shape = shape});
  }
  for (const auto& [name, shape] : shapes)
    if (std::ranges::find(inputs_, name, &Port::name) == inputs_.end())
      return fail(Code::invalid, fmt::format("the model has no input \"{}\"", name));
  return {};
}

Status Builder::add_initializers(const Model& model, const std::string& folder) {
  std::map<std::string, std::unique_ptr<MappedFile>, std::less<>> files;
  for (const TensorData& data : model.initializers) {
    std::span<const std::byte> external;
    if (data.is_external) {
      auto place = files.find(data.file);
      if (place == files.end()) {
        SHUNT_TRY_ASSIGN(auto file, open_beside(folder, data.file));
        place = files.emplace(std::string(data.file), std::move(file)).first;
        budget_.add_file(place->second->bytes().size());
      }
      SHUNT_TRY_ASSIGN(external, part_of(data, place->second->bytes()));
    }
    const auto shape = shape_from(data.dims);
    if (!shape) return fail_at(fmt::format("tensor \"{}\"", data.name), shape.error());
    SHUNT_TRY_ASSIGN(Constant constant, constant_from(budget_, data, *shape, external));
    Value value = known(std::move(constant), data.type, *shape);
    value.name = data.name;
    values_.insert_or_assign(std::string(data.name), std::move(value));
  }
  return {};
}

Status Builder::add_node(const Node& node) {
  const auto row = std::ranges::find(kRows, node.op, &Row::name);
  if (row == std::end(kRows) || !(node.domain.empty() || node.domain == "ai.onnx")) {
    std::string known;
    for (const Row& each : kRows) known += fmt::format(" {}", each.name);
    return fail(Code::unsupported, fmt::format("{}{}; supported:{}", describe(node),
                                               node.domain.empty() ? "" : fmt::format(" of {}", node.domain), known));
  }
  std::vector<const Value*> inputs;
  for (const std::string_view name : node.inputs) {
    const auto value = values_.find(name);
    if (value == values_.end() && !name.empty())
      return fail(Code::invalid, fmt::format("{}: nothing before it computes \"{}\"", describe(node), name));
    inputs.push_back(name.empty() ? nullptr : &value->second);
  }
  Outputs outputs = row->translate(Call(*this, node, std::move(inputs)));
  if (!outputs) return std::unexpected(std::move(outputs).error());
  for (std::size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    if (i >= outputs->size())
      return fail(Code::unsupported, fmt::format("{}: its output {} is not supported", describe(node), i));
    Value value = (*outputs)[i];
    value.name = node.outputs[i];
    values_.insert_or_assign(std::string(node.outputs[i]), std::move(value));
  }
  return {};
}

Result<Imported> Builder::finish(const Model& model) && {
  Imported imported;
  imported.inputs = std::move(inputs_);
  for (const ValueInfo& output : model.outputs) {
    const auto value = values_.find(output.name);
    if (value == values_.end())
      return fail(Code::invalid, fmt::format("nothing computes the model's output \"{}\"", output.name));
    SHUNT_TRY_ASSIGN(const Tensor from, tensor(value->second));
    // An output may be an input or a constant; the copy makes it a computed value.
    graph_.output(graph_.copy(from, {{Attr::to, dtype_of(value->second.type)}}));
    imported.outputs.push_back({.name = std::string(output.name),
                                .type = value->second.type,
                                .dtype = dtype_of(value->second.type),
                                .shape = value->second.shape});
  }
  SHUNT_TRY_ASSIGN(imported.graph, std::move(graph_).finish());
  imported.weights = std::make_unique<OwnedWeights>(std::move(weights_), std::move(memory_));
  return imported;
}

Result<Imported> import_model(const Model& model, const std::map<std::string, Shape>& shapes,
                              const std::string& folder) {
  Builder builder(model);
  SHUNT_TRY(builder.add_initializers(model, folder));
  SHUNT_TRY(builder.add_inputs(model, shapes));
  for (const Node& node : model.nodes) SHUNT_TRY(builder.add_node(node));
  return std::move(builder).finish(model);
}

}  // namespace shunt::onnx
