// The C interface as programs use it, and the errors it gives for mistakes.
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "../bindings/c/dlpack.h"
#include "shunt/op.h"
#include "shunt/shunt.h"

namespace {

using Runtime = std::unique_ptr<shunt_runtime, decltype(&shunt_runtime_close)>;
using Computation = std::unique_ptr<shunt_computation, decltype(&shunt_computation_free)>;

constexpr shunt_attributes kDefaults{nullptr, 0};

shunt_runtime_options options_for(const char* devices) {
  shunt_runtime_options options{};
  options.threads = 1;
  options.devices = devices;
  return options;
}

Runtime open(const shunt_runtime_options& options) {
  shunt_error error;
  Runtime runtime(shunt_runtime_open(&options, &error), &shunt_runtime_close);
  EXPECT_NE(runtime, nullptr) << error.message;
  return runtime;
}

Runtime open(const char* devices = "cpu:scalar") { return open(options_for(devices)); }

Computation create(const Runtime& runtime, shunt_graph* graph, shunt_error& error, const char* strategy = nullptr) {
  const shunt_computation_options options{.strategy = strategy, .profile = 1};
  return {shunt_computation_new(runtime.get(), graph, &options, &error), &shunt_computation_free};
}

// Returns the error that making a computation of `build`'s graph gives.
template <class Build>
shunt_error error_of(const Build& build) {
  const Runtime runtime = open();
  shunt_graph* graph = shunt_graph_new();
  build(graph);
  shunt_error error;
  EXPECT_EQ(create(runtime, graph, error), nullptr);
  return error;
}

TEST(CApi, RunsAGraphAgainAndAgain) {
  const Runtime runtime = open();
  shunt_graph* graph = shunt_graph_new();
  const std::array<float, 6> weight{1, 2, 3, 4, 5, 6};  // [2, 3]
  const shunt_tensor x = shunt_input(graph, "x", SHUNT_DTYPE_F32, {2, {2, 3}}, SHUNT_FIXED);
  const shunt_tensor w = shunt_constant(graph, "w", SHUNT_DTYPE_F32, {2, {2, 3}}, weight.data(), sizeof weight);
  const shunt_attribute twice = shunt_attr_factor(2);
  const shunt_tensor y = shunt_scale(graph, shunt_linear(graph, x, w, kDefaults), {&twice, 1});
  EXPECT_EQ(shunt_shape_of(graph, y).rank, 2U);
  EXPECT_EQ(shunt_shape_of(graph, y).extents[1], 2U);
  shunt_output(graph, y);
  shunt_error error;
  const Computation computation = create(runtime, graph, error);
  ASSERT_NE(computation, nullptr) << error.message;
  EXPECT_EQ(shunt_output_count(computation.get()), 1U);
  shunt_tensor_info info;
  ASSERT_EQ(shunt_output_info(computation.get(), 0, &info, &error), SHUNT_OK);
  EXPECT_EQ(info.dtype, SHUNT_DTYPE_F32);
  EXPECT_EQ(info.bytes, 16U);
  for (const float first : {1.0F, -3.0F}) {
    const std::array<float, 6> values{first, 0, 0, 0, 1, 1};
    ASSERT_EQ(shunt_write(computation.get(), "x", values.data(), sizeof values, &error), SHUNT_OK) << error.message;
    ASSERT_EQ(shunt_run(computation.get(), &error), SHUNT_OK) << error.message;
    std::array<float, 4> result{};
    ASSERT_EQ(shunt_read(computation.get(), 0, result.data(), sizeof result, &error), SHUNT_OK) << error.message;
    EXPECT_EQ(result, (std::array<float, 4>{2 * first, 8 * first, 10, 22}));
  }
  EXPECT_NE(std::string(shunt_explain(computation.get())).find("cpu:scalar"), std::string::npos);
  const auto json = nlohmann::json::parse(shunt_explain_json(computation.get()), nullptr, false);
  EXPECT_TRUE(json.is_object());
}

TEST(CApi, StateLivesFromRunToRun) {
  const Runtime runtime = open();
  shunt_graph* graph = shunt_graph_new();
  const shunt_tensor state = shunt_state(graph, "s", SHUNT_DTYPE_F32, {4, {1, 4, 1, 2}});
  const shunt_tensor x = shunt_input(graph, "x", SHUNT_DTYPE_F32, {3, {1, 1, 2}}, SHUNT_FIXED);
  const auto index = [&](const char* name, shunt_shape shape) {
    return shunt_input(graph, name, SHUNT_DTYPE_I32, shape, SHUNT_FIXED);
  };
  const shunt_tensor positions = index("positions", {1, {1}});
  const shunt_tensor sequences = index("sequences", {1, {1}});
  const shunt_tensor pages = index("pages", {2, {1, 1}});
  const shunt_tensor written = shunt_cache_write(graph, state, x, positions, sequences, pages, kDefaults);
  shunt_output(graph, shunt_copy(graph, written, kDefaults));
  shunt_error error;
  const Computation computation = create(runtime, graph, error);
  ASSERT_NE(computation, nullptr) << error.message;
  std::array<float, 8> content{};
  for (std::int32_t position = 0; position < 2; ++position) {
    const std::int32_t zero = 0;
    const std::array<float, 2> values{static_cast<float>(position) + 1, 9};
    const auto write = [&](const char* name, const auto& value) {
      ASSERT_EQ(shunt_write(computation.get(), name, &value, sizeof value, &error), SHUNT_OK) << error.message;
    };
    write("x", values);
    write("positions", position);
    write("sequences", zero);
    write("pages", zero);
    ASSERT_EQ(shunt_run(computation.get(), &error), SHUNT_OK) << error.message;
    ASSERT_EQ(shunt_read(computation.get(), 0, content.data(), sizeof content, &error), SHUNT_OK) << error.message;
  }
  EXPECT_EQ(content, (std::array<float, 8>{1, 9, 2, 9, 0, 0, 0, 0}));
}

TEST(CApi, EnumsAreThoseOfTheTables) {
  EXPECT_EQ(static_cast<std::size_t>(SHUNT_DTYPE_COUNT), shunt::dtypes().size());
  EXPECT_EQ(static_cast<int>(SHUNT_OP_linear), static_cast<int>(shunt::Op::linear));
  EXPECT_EQ(static_cast<int>(SHUNT_ATTR_count), static_cast<int>(shunt::Attr::count));
  EXPECT_STREQ(shunt_code_name(SHUNT_OUT_OF_MEMORY), "out_of_memory");
}

TEST(CApi, TheFirstMistakeOfAGraphIsReported) {
  const shunt_error unknown = error_of([](shunt_graph* graph) {
    const shunt_tensor x = shunt_input(graph, "x", SHUNT_DTYPE_F32, {2, {2, 3}}, SHUNT_FIXED);
    const shunt_tensor bad = shunt_linear(graph, x, shunt_tensor{77}, kDefaults);
    EXPECT_EQ(bad.id, SHUNT_NO_TENSOR_ID);
    shunt_output(graph, shunt_input(graph, nullptr, SHUNT_DTYPE_F32, {0, {}}, SHUNT_FIXED));
  });
  EXPECT_EQ(unknown.code, SHUNT_INVALID);
  EXPECT_NE(std::string(unknown.message).find("tensor 77 is not of this graph"), std::string::npos) << unknown.message;

  const shunt_error no_op =
      error_of([](shunt_graph* graph) { shunt_add_node(graph, SHUNT_OP_COUNT, nullptr, 0, kDefaults); });
  EXPECT_NE(std::string(no_op.message).find(" is no op; there are "), std::string::npos) << no_op.message;
  const shunt_error no_dtype =
      error_of([](shunt_graph* graph) { shunt_state(graph, "s", SHUNT_DTYPE_COUNT, {0, {}}); });
  EXPECT_NE(std::string(no_dtype.message).find(" is no dtype; there are "), std::string::npos) << no_dtype.message;
  const shunt_error too_few = error_of([](shunt_graph* graph) {
    const float value = 1;
    shunt_constant(graph, "w", SHUNT_DTYPE_F32, {2, {2, 3}}, &value, sizeof value);
  });
  EXPECT_NE(std::string(too_few.message).find("takes 24 bytes, 4 were given"), std::string::npos) << too_few.message;
  const shunt_error no_outputs = error_of([](shunt_graph*) {});
  EXPECT_EQ(no_outputs.code, SHUNT_INVALID);
  EXPECT_NE(std::string(no_outputs.message).find("no outputs"), std::string::npos) << no_outputs.message;
}

TEST(CApi, StrategiesAreForGraphsToo) {
  const Runtime runtime = open("sim:0,cpu:scalar");
  const auto with = [&](const char* strategy, shunt_error& error) {
    shunt_graph* graph = shunt_graph_new();
    const shunt_tensor x = shunt_input(graph, "x", SHUNT_DTYPE_F32, {1, {16}}, SHUNT_FIXED);
    shunt_output(graph, shunt_add(graph, x, x, kDefaults));
    return create(runtime, graph, error, strategy);
  };
  shunt_error error;
  for (const auto& [strategy, device] : {std::pair("gpu", "on sim:0"), {"cpu", "on cpu:scalar"}})
    EXPECT_NE(std::string(shunt_explain(with(strategy, error).get())).find(device), std::string::npos) << strategy;
  for (const char* strategy : {"layers", "luck"}) {
    EXPECT_EQ(with(strategy, error), nullptr);
    EXPECT_EQ(error.code, SHUNT_INVALID);
    EXPECT_NE(std::string(error.message).find(strategy), std::string::npos) << error.message;
  }
}

TEST(CApi, NullsAreRefused) {
  shunt_error error;
  EXPECT_EQ(shunt_run(nullptr, &error), SHUNT_INVALID);
  EXPECT_STREQ(error.message, "the computation is NULL");
  EXPECT_EQ(shunt_run(nullptr, nullptr), SHUNT_INVALID);
  EXPECT_EQ(shunt_write(nullptr, "x", nullptr, 0, &error), SHUNT_INVALID);
  EXPECT_EQ(shunt_read(nullptr, 0, nullptr, 0, &error), SHUNT_INVALID);
  EXPECT_EQ(shunt_computation_new(nullptr, nullptr, nullptr, &error), nullptr);
  EXPECT_STREQ(error.message, "the graph is NULL");
  EXPECT_EQ(shunt_device_id(nullptr, 0), nullptr);
  EXPECT_EQ(shunt_output_count(nullptr), 0U);
  shunt_graph_free(nullptr);
  shunt_computation_free(nullptr);
  shunt_runtime_close(nullptr);
  EXPECT_EQ(shunt_trace_summary(nullptr), nullptr);
  EXPECT_EQ(shunt_trace_write(nullptr, "trace.json", &error), SHUNT_INVALID);
  shunt_trace_clear(nullptr);
}

TEST(CApi, AnUnknownDeviceIsNamed) {
  shunt_error error;
  const shunt_runtime_options options = options_for("abacus");
  EXPECT_EQ(shunt_runtime_open(&options, &error), nullptr);
  EXPECT_EQ(error.code, SHUNT_INVALID);
  EXPECT_NE(std::string(error.message).find("abacus"), std::string::npos) << error.message;
  const Runtime runtime = open("cpu:scalar");
  ASSERT_EQ(shunt_device_count(runtime.get()), 1U);
  EXPECT_STREQ(shunt_device_id(runtime.get(), 0), "cpu:scalar");
  EXPECT_EQ(shunt_device_id(runtime.get(), 1), nullptr);
}

// Returns why these options give no runtime.
std::string refusal_of(const shunt_runtime_options& options) {
  shunt_error error;
  EXPECT_EQ(shunt_runtime_open(&options, &error), nullptr);
  EXPECT_EQ(error.code, SHUNT_INVALID);
  return error.message;
}

TEST(CApi, OptionsOfARuntimeThatAreWrongAreNamed) {
  shunt_runtime_options options = options_for("cpu:scalar");
  options.budgets = "cpu:scalar=1GiB, vulkan:0=much";
  EXPECT_NE(refusal_of(options).find("\"vulkan:0=much\" is not DEVICE=SIZE"), std::string::npos);
  options.budgets = "vulkan:7=1GiB";
  EXPECT_NE(refusal_of(options).find("\"vulkan:7\""), std::string::npos);
  options.budgets = nullptr;
  options.faults = "cpu:scalar sleepy at op 1";
  EXPECT_NE(refusal_of(options).find("sleepy"), std::string::npos);
}

// A graph that doubles "x", of four elements.
shunt_graph* doubling() {
  shunt_graph* graph = shunt_graph_new();
  const shunt_attribute twice = shunt_attr_factor(2);
  const shunt_tensor x = shunt_input(graph, "x", SHUNT_DTYPE_F32, {1, {4}}, SHUNT_FIXED);
  shunt_output(graph, shunt_scale(graph, x, {&twice, 1}));
  return graph;
}

TEST(CApi, DevicesThatFailAreToldOfAndLeftOutUnlessStrict) {
  std::string notices;
  shunt_runtime_options options = options_for("sim:0,cpu:scalar");
  options.faults = "sim:0 lost at op 0";
  options.budgets = "sim:0=1MiB, cpu:scalar=1MiB";
  options.timeout_ms = 1000;
  options.uncalibrated = 1;
  options.on_notice = [](void* user, const char* text) { *static_cast<std::string*>(user) += text; };
  options.user = &notices;
  for (const int strict : {0, 1}) {
    options.strict = strict;
    const Runtime runtime = open(options);
    shunt_error error;
    const Computation computation = create(runtime, doubling(), error);
    ASSERT_NE(computation, nullptr) << error.message;
    EXPECT_EQ(shunt_run(computation.get(), &error), strict != 0 ? SHUNT_DEVICE_LOST : SHUNT_OK) << error.message;
    EXPECT_EQ(notices.find("sim:0 failed, device_lost: "), strict != 0 ? std::string::npos : 0U) << notices;
    notices.clear();
  }
}

TEST(CApi, AuditsFindADeviceThatIsWrong) {
  shunt_runtime_options options = options_for("sim:0");
  options.faults = "sim:0 wrong after 0 ops";
  options.audit = 1;
  const Runtime runtime = open(options);
  shunt_error error;
  const Computation computation = create(runtime, doubling(), error);
  ASSERT_NE(computation, nullptr) << error.message;
  const std::array<float, 4> x{1, 2, 3, 4};
  ASSERT_EQ(shunt_write(computation.get(), "x", x.data(), sizeof x, &error), SHUNT_OK) << error.message;
  EXPECT_EQ(shunt_run(computation.get(), &error), SHUNT_INTERNAL);
  EXPECT_NE(std::string(error.message).find("is wrong"), std::string::npos) << error.message;
}

TEST(CApi, TracesTellWhatRanWhere) {
  shunt_runtime_options options = options_for("cpu:scalar");
  options.trace = 1;
  const Runtime runtime = open(options);
  shunt_error error;
  const Computation computation = create(runtime, doubling(), error);
  ASSERT_NE(computation, nullptr) << error.message;
  ASSERT_EQ(shunt_run(computation.get(), &error), SHUNT_OK) << error.message;
  EXPECT_NE(std::string(shunt_trace_summary(runtime.get())).find("cpu:scalar"), std::string::npos);
  const auto summary_of = [&] {
    return nlohmann::json::parse(shunt_trace_summary_json(runtime.get()), nullptr, false);
  };
  const auto summary = summary_of();
  ASSERT_TRUE(summary.is_object());
  EXPECT_EQ(summary["runs"]["events"], 1);
  EXPECT_EQ(summary["ops"][0]["name"], "scale");
  EXPECT_NE(std::string(shunt_trace_lines(runtime.get())).find("{\"kind\":\"op\",\"name\":\"scale "),
            std::string::npos);
  const std::string path = testing::TempDir() + "c_api_trace.json";
  ASSERT_EQ(shunt_trace_write(runtime.get(), path.c_str(), &error), SHUNT_OK) << error.message;
  EXPECT_EQ(std::remove(path.c_str()), 0);
  EXPECT_EQ(shunt_trace_write(runtime.get(), "/no/such/folder/trace.json", &error), SHUNT_IO);
  shunt_trace_clear(runtime.get());
  EXPECT_EQ(summary_of()["runs"]["events"], 0);
}

// A tensor whose deleter counts its calls.
struct Given {
  shunt::dlpack::ManagedTensor managed{};
  std::array<std::int64_t, 2> shape{2, 2};
  std::array<std::int64_t, 2> strides{2, 1};
  std::array<float, 4> values{1, 2, 3, 4};
  int deleted = 0;

  Given() {
    managed.tensor = {.data = values.data(),
                      .device_type = 1,
                      .device_id = 0,
                      .rank = 2,
                      .dtype = {.code = 2, .bits = 32, .lanes = 1},
                      .shape = shape.data(),
                      .strides = strides.data(),
                      .byte_offset = 0};
    managed.context = this;
    managed.deleter = [](shunt::dlpack::ManagedTensor* self) { ++static_cast<Given*>(self->context)->deleted; };
  }
};

TEST(CApi, TensorsComeAndGoByDlpack) {
  const Runtime runtime = open();
  Given weight;
  Given input;
  {
    shunt_graph* graph = shunt_graph_new();
    const shunt_tensor x = shunt_input(graph, "x", SHUNT_DTYPE_F32, {2, {2, 2}}, SHUNT_FIXED);
    const shunt_tensor w = shunt_constant_dlpack(graph, "w", &weight.managed);
    shunt_output(graph, shunt_add(graph, x, w, kDefaults));
    shunt_error error;
    const Computation computation = create(runtime, graph, error);
    ASSERT_NE(computation, nullptr) << error.message;
    ASSERT_EQ(shunt_write_dlpack(computation.get(), "x", &input.managed, &error), SHUNT_OK) << error.message;
    EXPECT_EQ(input.deleted, 1);
    EXPECT_EQ(weight.deleted, 0);
    ASSERT_EQ(shunt_run(computation.get(), &error), SHUNT_OK) << error.message;
    const shunt::dlpack::Owned sum(
        static_cast<shunt::dlpack::ManagedTensor*>(shunt_read_dlpack(computation.get(), 0, &error)));
    ASSERT_NE(sum, nullptr) << error.message;
    EXPECT_EQ(sum->tensor.rank, 2);
    EXPECT_EQ(sum->tensor.shape[1], 2);
    EXPECT_EQ(static_cast<const float*>(sum->tensor.data)[3], 8.0F);
    EXPECT_EQ(shunt_read_dlpack(computation.get(), 1, &error), nullptr);
    EXPECT_EQ(error.code, SHUNT_INVALID);
  }
  EXPECT_EQ(weight.deleted, 1);
}

TEST(CApi, DlpackTensorsThatCannotBeReadAreRefused) {
  const auto refusal_of = [](const auto& change) {
    Given given;
    change(given);
    const shunt_error error = error_of([&](shunt_graph* graph) { shunt_constant_dlpack(graph, "w", &given.managed); });
    EXPECT_EQ(given.deleted, 1);
    EXPECT_EQ(error.code, SHUNT_UNSUPPORTED);
    return std::string(error.message);
  };
  EXPECT_NE(refusal_of([](Given& given) { given.managed.tensor.device_type = 2; }).find("device type 2"),
            std::string::npos);
  EXPECT_NE(refusal_of([](Given& given) { given.strides = {1, 2}; }).find("contiguous"), std::string::npos);
  EXPECT_NE(refusal_of([](Given& given) { given.managed.tensor.dtype.bits = 64; }).find("64 bits"), std::string::npos);
  EXPECT_NE(refusal_of([](Given& given) { given.managed.tensor.rank = 5; }).find("5 axes"), std::string::npos);
  EXPECT_NE(refusal_of([](Given& given) { given.shape = {-1, 2}; }).find("axis of -1"), std::string::npos);
}

const char* pairs_result(const shunt_kernel_use* use, shunt_operand* result, void*) {
  if (use->inputs[0].shape.rank != 1) return "takes one axis";
  *result = use->inputs[0];
  result->shape.extents[0] /= 2;
  return nullptr;
}

// Adds each two neighbours and multiplies by the factor that `user` points to.
const char* pairs_on_cpu(const shunt_kernel_work* work, void* user) {
  const auto* x = static_cast<const float*>(work->input_data[0]);
  auto* y = static_cast<float*>(work->result_data);
  float offset = 0;
  std::memcpy(&offset, work->use.arguments.data, sizeof offset);
  for (std::uint64_t i = work->begin; i < work->end; ++i) {
    if (x[2 * i] < 0) return "the first of two is negative";
    y[i] = (x[2 * i] + x[2 * i + 1]) * *static_cast<const float*>(user) + offset;
  }
  return nullptr;
}

TEST(CApi, RunsAKernelOfItsOwn) {
  const Runtime runtime = open();
  shunt_error error;
  float factor = 2;
  shunt_kernel_description description{};
  description.name = "pairs";
  description.inputs = 1;
  description.argument_bytes = sizeof(float);
  description.result = pairs_result;
  description.cpu = pairs_on_cpu;
  description.user = &factor;
  shunt_kernel* kernel = shunt_kernel_create(&description, &error);
  ASSERT_NE(kernel, nullptr) << error.message;
  const float offset = 100;
  const std::array<shunt_attribute, 2> attributes{shunt_attr_code(kernel),
                                                  shunt_attr_arguments({&offset, sizeof offset})};
  const auto add = [&](shunt_graph* graph, shunt_tensor x) {
    return shunt_add_node(graph, SHUNT_OP_custom, &x, 1, {attributes.data(), attributes.size()});
  };
  shunt_graph* graph = shunt_graph_new();
  shunt_output(graph, add(graph, shunt_input(graph, "x", SHUNT_DTYPE_F32, {1, {4}}, SHUNT_FIXED)));
  EXPECT_STREQ(error_of([&](shunt_graph* wrong) {
                 shunt_output(wrong, add(wrong, shunt_input(wrong, "x", SHUNT_DTYPE_F32, {2, {4, 4}}, SHUNT_FIXED)));
               }).message,
               "custom: pairs: takes one axis (node \"pairs.0\")");
  shunt_kernel_free(kernel);
  const Computation computation = create(runtime, graph, error);
  ASSERT_NE(computation, nullptr) << error.message;
  const std::array<float, 4> x{1, 2, 3, 4};
  std::array<float, 2> y{};
  ASSERT_EQ(shunt_write(computation.get(), "x", x.data(), sizeof x, &error), SHUNT_OK);
  ASSERT_EQ(shunt_run(computation.get(), &error), SHUNT_OK) << error.message;
  ASSERT_EQ(shunt_read(computation.get(), 0, y.data(), sizeof y, &error), SHUNT_OK);
  EXPECT_EQ(y, (std::array<float, 2>{106, 114}));
  const std::array<float, 4> negative{1, 2, -3, 4};
  ASSERT_EQ(shunt_write(computation.get(), "x", negative.data(), sizeof negative, &error), SHUNT_OK);
  EXPECT_EQ(shunt_run(computation.get(), &error), SHUNT_INVALID);
  EXPECT_NE(std::string(error.message).find("kernel of \"pairs.0\": the first of two is negative"), std::string::npos)
      << error.message;
  description.result = nullptr;
  EXPECT_EQ(shunt_kernel_create(&description, &error), nullptr);
  EXPECT_EQ(error.code, SHUNT_INVALID);
  EXPECT_NE(std::string(shunt_kernel_prelude()).find("SHUNT_INPUT(0, F32, x)"), std::string::npos);
}

}  // namespace
