// The functions of shunt/shunt.h for graphs over the C++ interface.
#include "shunt/shunt.h"

#include <fmt/format.h>

#include <optional>
#include <vector>

#include "base/out_of_memory.h"
#include "dlpack.h"
#include "report.h"
#include "shunt/computation.h"

// NOLINTBEGIN(readability-identifier-naming): names of shunt.h
struct shunt_graph {
  shunt::GraphBuilder builder;
  shunt::MemoryWeights constants;
  std::vector<shunt::dlpack::Owned> taken;  // memory of constants
  std::optional<shunt::Error> error;        // the first one, unless the builder holds it
  bool refused = false;                     // the builder holds the error
};

struct shunt_computation {
  std::unique_ptr<shunt_graph> graph;  // with the memory of its constants
  std::unique_ptr<shunt::Computation> computation;
  std::string text;
  std::string json;
  bool is_broken = false;  // by a call that ran out of memory
};
// NOLINTEND(readability-identifier-naming)

namespace {

using shunt::Code;
using shunt::Result;
using shunt::Status;
using shunt::c::array_of;
using shunt::c::dtype_of;
using shunt::c::need;
using shunt::c::refuse;
using shunt::c::report;
using shunt::c::shape_of;
using shunt::c::shape_to;

// Errors: invalid for null; out_of_memory if an earlier call left the computation half changed.
Status need(const shunt_computation* computation, std::string_view what) {
  SHUNT_TRY(need(static_cast<const void*>(computation), what));
  if (!computation->is_broken) return {};
  return shunt::fail(Code::out_of_memory, fmt::format("{} ran out of memory in an earlier call; free it", what));
}

Result<shunt::AttributeValue> value_of(const shunt_attribute& from) {
  const auto attr = static_cast<shunt::Attr>(from.attr);
  const std::string_view type = shunt::info_of(attr).type;
  if (type == "f32") return from.value.f32;
  if (type == "u32") return from.value.u32;
  if (type == "dtype") {
    SHUNT_TRY_ASSIGN(const shunt::DType dtype, dtype_of(from.value.dtype));
    return dtype;
  }
  if (type == "user_kernel") {
    SHUNT_TRY(need(from.value.user_kernel, "the kernel"));
    return from.value.user_kernel->kernel;
  }
  if (type == "bytes") {
    SHUNT_TRY_ASSIGN(const std::span<const std::byte> bytes,
                     array_of(static_cast<const std::byte*>(from.value.bytes.data), from.value.bytes.count,
                              "the bytes of an attribute"));
    return std::vector<std::byte>(bytes.begin(), bytes.end());
  }
  SHUNT_TRY_ASSIGN(const shunt::Shape shape, shape_of(from.value.shape));
  return shape;
}

Result<shunt::Attributes> attributes_of(const shunt_attributes& from) {
  shunt::Attributes attributes;
  SHUNT_TRY_ASSIGN(const std::span<const shunt_attribute> values,
                   array_of(from.values, from.count, "the list of attributes"));
  for (const shunt_attribute& each : values) {
    const unsigned attr = each.attr;
    if (attr >= SHUNT_ATTR_COUNT)
      return shunt::fail(Code::invalid, fmt::format("{} is no attribute; there are {}", attr,
                                                    static_cast<unsigned>(SHUNT_ATTR_COUNT)));
    SHUNT_TRY_ASSIGN(const shunt::AttributeValue value, value_of(each));
    attributes.set(static_cast<shunt::Attr>(attr), value);
  }
  return attributes;
}

// Returns the tensor that `work` adds to the graph, or no tensor after an error, which the graph keeps.
template <class Work>
shunt_tensor add_to(shunt_graph* graph, const Work& work) {
  if (graph == nullptr || graph->error || graph->refused) return shunt_none();
  Result<shunt::Tensor> tensor =
      shunt::guarded(work, [] { return Result<shunt::Tensor>(std::unexpected(shunt::out_of_memory())); });
  if (tensor) {
    graph->refused = tensor->id == SHUNT_NO_TENSOR_ID;
    return {tensor->id};
  }
  graph->error = std::move(tensor).error();
  return shunt_none();
}

Result<shunt::Tensor> leaf(const char* name, shunt_dtype dtype, shunt_shape shape, const auto& add) {
  SHUNT_TRY(need(name, "the name of a tensor"));
  SHUNT_TRY_ASSIGN(const shunt::DType its_dtype, dtype_of(dtype));
  SHUNT_TRY_ASSIGN(const shunt::Shape its_shape, shape_of(shape));
  return add(std::string_view(name), its_dtype, its_shape);
}

Result<shunt::Tensor> constant(shunt_graph& graph, std::string_view name, shunt::DType dtype, const shunt::Shape& shape,
                               std::span<const std::byte> bytes) {
  SHUNT_TRY(graph.constants.add(name, dtype, shape, bytes));
  return graph.builder.weight(name, dtype, shape);
}

Status create(const shunt_runtime* runtime, const shunt_computation_options* from, shunt_computation& made) {
  SHUNT_TRY(need(runtime, "the runtime"));
  shunt::ComputationOptions options{.profile = from != nullptr && from->profile != 0};
  if (from != nullptr && from->strategy != nullptr) {
    SHUNT_TRY_ASSIGN(options.strategy, shunt::strategy_from_name(from->strategy));
  }
  if (from != nullptr && from->numerics != nullptr) {
    SHUNT_TRY_ASSIGN(options.numerics, shunt::numerics_from_name(from->numerics));
  }
  if (made.graph->error) return std::unexpected(*made.graph->error);
  SHUNT_TRY_ASSIGN(shunt::Graph graph, std::move(made.graph->builder).finish());
  SHUNT_TRY_ASSIGN(made.computation,
                   shunt::Computation::create(std::move(graph), *runtime->runtime, &made.graph->constants, options));
  return {};
}

Result<const shunt::TensorInfo*> output_of(const shunt_computation* computation, std::size_t output) {
  SHUNT_TRY(need(computation, "the computation"));
  const std::size_t count = computation->computation->output_count();
  if (output >= count)
    return shunt::fail(Code::invalid, fmt::format("output {} was asked for, but the graph has {}", output, count));
  return &computation->computation->output(output);
}

}  // namespace

const char* shunt_version(void) { return SHUNT_VERSION; }

const char* shunt_code_name(shunt_code code) {
  constexpr const char* kNames[] = {"ok",
#define SHUNT_CODE(name, c_name, meaning) #name,
                                    SHUNT_ERROR_CODES(SHUNT_CODE)
#undef SHUNT_CODE
  };
  return static_cast<unsigned>(code) < std::size(kNames) ? kNames[code] : "unknown";
}

shunt_graph* shunt_graph_new(void) try { return std::make_unique<shunt_graph>().release(); }
SHUNT_C_END(nullptr)
void shunt_graph_free(shunt_graph* graph) { const std::unique_ptr<shunt_graph> ended(graph); }

shunt_tensor shunt_input(shunt_graph* graph, const char* name, shunt_dtype dtype, shunt_shape shape,
                         shunt_extent extent) {
  return add_to(graph, [&]() -> Result<shunt::Tensor> {
    SHUNT_TRY_ASSIGN(const shunt::Extent its_extent, shunt::c::extent_of(extent));
    return leaf(name, dtype, shape,
                [&](std::string_view its_name, shunt::DType its_dtype, const shunt::Shape& its_shape) {
                  return graph->builder.input(its_name, its_dtype, its_shape, its_extent);
                });
  });
}

shunt_tensor shunt_state(shunt_graph* graph, const char* name, shunt_dtype dtype, shunt_shape shape) {
  return add_to(graph, [&] {
    return leaf(name, dtype, shape,
                [&](std::string_view its_name, shunt::DType its_dtype, const shunt::Shape& its_shape) {
                  return graph->builder.state(its_name, its_dtype, its_shape);
                });
  });
}

shunt_tensor shunt_constant(shunt_graph* graph, const char* name, shunt_dtype dtype, shunt_shape shape,
                            const void* data, uint64_t bytes) {
  return add_to(graph, [&]() -> Result<shunt::Tensor> {
    if (bytes != 0) SHUNT_TRY(need(data, "the data of a constant"));
    return leaf(name, dtype, shape,
                [&](std::string_view its_name, shunt::DType its_dtype, const shunt::Shape& its_shape) {
                  return constant(*graph, its_name, its_dtype, its_shape, {static_cast<const std::byte*>(data), bytes});
                });
  });
}

shunt_tensor shunt_constant_dlpack(shunt_graph* graph, const char* name, void* tensor) {
  shunt::dlpack::Owned owned(static_cast<shunt::dlpack::ManagedTensor*>(tensor));
  return add_to(graph, [&]() -> Result<shunt::Tensor> {
    SHUNT_TRY(need(name, "the name of a tensor"));
    SHUNT_TRY(need(tensor, "the DLPack tensor"));
    SHUNT_TRY_ASSIGN(const shunt::dlpack::Content content, shunt::dlpack::content_of(owned->tensor));
    graph->taken.push_back(std::move(owned));
    return constant(*graph, name, content.dtype, content.shape, content.bytes);
  });
}

shunt_tensor shunt_add_node(shunt_graph* graph, shunt_op op, const shunt_tensor* inputs, size_t count,
                            shunt_attributes attributes) {
  return add_to(graph, [&]() -> Result<shunt::Tensor> {
    if (static_cast<unsigned>(op) >= SHUNT_OP_COUNT)
      return shunt::fail(Code::invalid, fmt::format("{} is no op; there are {}", static_cast<unsigned>(op),
                                                    static_cast<unsigned>(SHUNT_OP_COUNT)));
    SHUNT_TRY_ASSIGN(const shunt::Attributes its_attributes, attributes_of(attributes));
    SHUNT_TRY_ASSIGN(const std::span<const shunt_tensor> given, array_of(inputs, count, "the list of inputs"));
    std::vector<shunt::Tensor> operands;
    for (const shunt_tensor& input : given) operands.push_back({input.id});
    return graph->builder.add_node(static_cast<shunt::Op>(op), operands, its_attributes);
  });
}

void shunt_output(shunt_graph* graph, shunt_tensor tensor) {
  if (graph == nullptr || graph->error) return;
  shunt::guarded([&] { graph->builder.output({tensor.id}); }, [&] { graph->error = shunt::out_of_memory(); });
}

shunt_shape shunt_shape_of(const shunt_graph* graph, shunt_tensor tensor) {
  return graph == nullptr ? shunt_shape{} : shape_to(graph->builder.shape_of({tensor.id}));
}

shunt_computation* shunt_computation_new(const shunt_runtime* runtime, shunt_graph* graph,
                                         const shunt_computation_options* options, shunt_error* error) try {
  std::unique_ptr<shunt_graph> taken(graph);
  auto made = std::make_unique<shunt_computation>();
  made->graph = std::move(taken);
  Status status = need(graph, "the graph");
  if (status) status = create(runtime, options, *made);
  return report(status, error) == SHUNT_OK ? made.release() : nullptr;
}
SHUNT_C_END(error)

void shunt_computation_free(shunt_computation* computation) {
  const std::unique_ptr<shunt_computation> ended(computation);
}

shunt_code shunt_write(shunt_computation* computation, const char* input, const void* data, uint64_t bytes,
                       shunt_error* error) try {
  Status status = need(computation, "the computation");
  if (status) status = need(input, "the name of an input");
  if (status && bytes != 0) status = need(data, "the data of an input");
  if (status) status = computation->computation->write(input, {static_cast<const std::byte*>(data), bytes});
  return report(status, error);
}
SHUNT_C_END_OF(computation, error)

shunt_code shunt_write_dlpack(shunt_computation* computation, const char* input, void* tensor, shunt_error* error) try {
  const shunt::dlpack::Owned owned(static_cast<shunt::dlpack::ManagedTensor*>(tensor));
  Status status = need(computation, "the computation");
  if (status) status = need(tensor, "the DLPack tensor");
  if (!status) return report(status, error);
  const auto content = shunt::dlpack::content_of(owned->tensor);
  if (!content) return report(std::unexpected(content.error()), error);
  return shunt_write(computation, input, content->bytes.data(), content->bytes.size(), error);
}
SHUNT_C_END(error)

shunt_code shunt_run(shunt_computation* computation, shunt_error* error) try {
  return shunt_run_with(computation, shunt_parameters{}, error);
}
SHUNT_C_END_OF(computation, error)

shunt_code shunt_run_with(shunt_computation* computation, shunt_parameters parameters, shunt_error* error) try {
  Status status = need(computation, "the computation");
  if (status)
    status = computation->computation->run(
        {.tokens = parameters.tokens, .outputs = parameters.outputs, .positions = parameters.positions});
  return report(status, error);
}
SHUNT_C_END_OF(computation, error)

shunt_code shunt_read(const shunt_computation* computation, size_t output, void* data, uint64_t bytes,
                      shunt_error* error) try {
  Status status = need(computation, "the computation");
  if (status && bytes != 0) status = need(data, "where an output goes");
  if (status) status = computation->computation->read(output, 0, {static_cast<std::byte*>(data), bytes});
  return report(status, error);
}
SHUNT_C_END(error)

void* shunt_read_dlpack(const shunt_computation* computation, size_t output, shunt_error* error) try {
  const auto info = output_of(computation, output);
  if (!info) return refuse(info, error);
  const shunt::Operand& operand = (*info)->operand;
  const std::uint64_t bytes = operand.span_bytes();
  auto tensor = shunt::dlpack::make_empty(operand.dtype, operand.shape, bytes);
  Status status;
  if (tensor == nullptr)
    status = shunt::fail(Code::unsupported, fmt::format("output \"{}\" is of {}, which DLPack does not have",
                                                        (*info)->name, shunt::name_of(operand.dtype)));
  else
    status = computation->computation->read(output, 0, {static_cast<std::byte*>(tensor->tensor.data), bytes});
  return report(status, error) == SHUNT_OK ? tensor.release() : nullptr;
}
SHUNT_C_END(error)

size_t shunt_output_count(const shunt_computation* computation) {
  return computation == nullptr ? 0 : computation->computation->output_count();
}

shunt_code shunt_output_info(const shunt_computation* computation, size_t output, shunt_tensor_info* info,
                             shunt_error* error) try {
  const auto found = output_of(computation, output);
  if (!found) return report(std::unexpected(found.error()), error);
  if (const Status there = need(info, "where the description goes"); !there) return report(there, error);
  const shunt::Operand& operand = (*found)->operand;
  *info = {.name = (*found)->name.c_str(),
           .dtype = static_cast<shunt_dtype>(operand.dtype),
           .shape = shape_to(operand.shape),
           .bytes = operand.span_bytes()};
  return report({}, error);
}
SHUNT_C_END(error)

const char* shunt_explain(shunt_computation* computation) try {
  if (computation == nullptr) return nullptr;
  if (computation->text.empty()) computation->text = computation->computation->explain();
  return computation->text.c_str();
}
SHUNT_C_END(nullptr)

const char* shunt_explain_json(shunt_computation* computation) try {
  if (computation == nullptr) return nullptr;
  if (computation->json.empty()) computation->json = computation->computation->explain_json();
  return computation->json.c_str();
}
SHUNT_C_END(nullptr)
