// Bytes as a sequence of calls of the C interface: graphs, computations, arrays, kernels and sessions with arguments of
// every size. Handles are valid or NULL, memory is as large as its count says, and what is freed is not used again, as
// the header asks; everything else is wild. A call gives an error that says something, or does what it is for.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "require.h"
#include "shunt/shunt.h"
#include "wild_arguments.h"

namespace {

using shunt::require;
using shunt::WildArguments;

constexpr std::size_t kPoolBytes = 1 << 14;
constexpr std::size_t kPoolFloats = kPoolBytes / sizeof(float);
constexpr const char* kNames[] = {"x", "y", "weight", "", "x\x1B[2J", "\xFF", nullptr};
constexpr const char* kStrategies[] = {nullptr, "auto", "gpu", "cpu", "layers", "only:cpu:simd", "?"};
constexpr const char* kDevices[] = {nullptr, "cpu:simd", "cpu:scalar", "cpu", "", ",", "nothing"};
constexpr const char* kPrompts[] = {"", "a bc", "<s></s>", "\xFF", "\xE2\x96\x81", nullptr};

const shunt_runtime* runtime() {
  static shunt_runtime* const kRuntime = [] {
    shunt_runtime_options options{};
    options.threads = 1;
    options.devices = "cpu:simd,cpu:scalar";
    options.budgets = "cpu:simd=1MiB,cpu:scalar=1MiB";
    options.uncalibrated = 1;
    shunt_runtime* const opened = shunt_runtime_open(&options, nullptr);
    require(opened != nullptr);
    return opened;
  }();
  return kRuntime;
}

const shunt_model* model() {
  static shunt_model* const kModel = [] {
    shunt_model* const opened = shunt_model_open(SHUNT_FUZZ_CORPUS "/gguf/nano-q8_0", nullptr);
    require(opened != nullptr);
    return opened;
  }();
  return kModel;
}

// The memory that calls are given. Constants are never written to.
struct Memory {
  std::array<std::byte, kPoolBytes> constant{};
  std::array<std::byte, kPoolBytes> scratch{};
  [[nodiscard]] const float* floats() const { return reinterpret_cast<const float*>(constant.data()); }
  [[nodiscard]] float* result() { return reinterpret_cast<float*>(scratch.data()); }
};

class Calls {
 public:
  explicit Calls(std::span<const std::uint8_t> bytes) : in_(bytes) {
    for (std::size_t i = 0; i < memory_.constant.size(); ++i)
      memory_.constant[i] = bytes.empty() ? std::byte{} : std::byte{bytes[i % bytes.size()]};
  }
  Calls(const Calls&) = delete;
  Calls& operator=(const Calls&) = delete;
  ~Calls() {
    shunt_session_close(session_);
    shunt_arrays_free(arrays_);
    shunt_computation_free(computation_);
    shunt_graph_free(graph_);
    shunt_kernel_free(kernel_);
  }

  void run() {
    constexpr void (Calls::* kGroups[])() = {&Calls::build, &Calls::build,   &Calls::build,   &Calls::compute,
                                             &Calls::array, &Calls::session, &Calls::observe, &Calls::kernel};
    constexpr std::uint32_t kMostCalls = 64;
    for (std::uint32_t i = 0; i < kMostCalls && !in_.at_end(); ++i) (this->*in_.one_of(kGroups))();
  }

 private:
  shunt_error* error() {
    std::memset(&error_, 0, sizeof error_);
    return &error_;
  }
  void check(shunt_code code) const {
    require(code == error_.code);
    require((code == SHUNT_OK) == (error_.message[0] == '\0'));
    require(std::memchr(error_.message, '\0', sizeof error_.message) != nullptr);
    require(std::string_view(shunt_code_name(code)) != "unknown");
  }
  void check(const void* made) const {
    require((made == nullptr) == (error_.code != SHUNT_OK));
    check(error_.code);
  }

  // Mostly the graph.
  shunt_graph* graph() {
    if (graph_ == nullptr) graph_ = shunt_graph_new();
    return in_.below(32) == 0 ? nullptr : graph_;
  }
  shunt_tensor tensor() {
    const std::uint32_t choice = in_.below(static_cast<std::uint32_t>(tensors_.size()) + 2);
    return choice < tensors_.size()    ? tensors_[choice]
           : choice == tensors_.size() ? shunt_none()
                                       : shunt_tensor{in_.number32()};
  }
  void keep(shunt_tensor tensor) {
    if (tensors_.size() < 64) tensors_.push_back(tensor);
  }

  void build() {
    switch (in_.below(8)) {
      case 0:
        return keep(shunt_input(graph(), in_.one_of(kNames), in_.dtype(), in_.shape(), in_.extent()));
      case 1: {
        const std::size_t bytes = in_.count(kPoolBytes);
        return keep(
            shunt_constant(graph(), in_.one_of(kNames), in_.dtype(), in_.shape(), memory_.constant.data(), bytes));
      }
      case 2:
        return keep(shunt_state(graph(), in_.one_of(kNames), in_.dtype(), in_.shape()));
      case 3:
        shunt_output(graph(), tensor());
        return static_cast<void>(shunt_shape_of(graph(), tensor()));
      case 4:
        // A small graph that is right, so that calls on computations get somewhere.
        shunt_output(graph(), keep_small());
        return;
      default:
        return add_node();
    }
  }
  shunt_tensor keep_small() {
    const shunt_tensor x = shunt_input(graph_, "x", SHUNT_DTYPE_F32, {2, {2, 8}}, in_.extent());
    keep(shunt_silu(graph_, x, {nullptr, 0}));
    return tensors_.empty() ? x : tensors_.back();
  }

  shunt_attribute attribute() {
    shunt_attribute attribute{};
    attribute.attr = static_cast<shunt_attr>(in_.below(SHUNT_ATTR_COUNT + 1));
    switch (attribute.attr) {
#define SHUNT_ATTRIBUTE(name, type, default_value, meaning) \
  case SHUNT_ATTR_##name:                                   \
    attribute.value.type = value_of_##type();               \
    break;
#include "ops/attributes.def"
      default:
        break;
    }
    return attribute;
  }
  float value_of_f32() { return in_.real(); }
  std::uint32_t value_of_u32() { return in_.number32(); }
  shunt_dtype value_of_dtype() { return in_.dtype(); }
  shunt_shape value_of_shape() { return in_.shape(); }
  const shunt_kernel* value_of_user_kernel() { return in_.below(4) == 0 ? nullptr : kernel_; }
  shunt_bytes value_of_bytes() { return {memory_.constant.data(), in_.count(128)}; }

  void add_node() {
    std::array<shunt_tensor, 9> inputs{};
    const std::size_t count = in_.below(inputs.size() + 1);
    for (std::size_t i = 0; i < count; ++i) inputs[i] = tensor();
    std::array<shunt_attribute, 4> attributes{};
    const std::size_t attribute_count = in_.below(attributes.size() + 1);
    for (std::size_t i = 0; i < attribute_count; ++i) attributes[i] = attribute();
    const auto op = static_cast<shunt_op>(in_.below(SHUNT_OP_COUNT + 1));
    keep(shunt_add_node(graph(), op, inputs.data(), count, {attributes.data(), attribute_count}));
  }

  void compute() {
    switch (in_.below(8)) {
      case 0: {
        shunt_computation_free(computation_);
        const shunt_computation_options options{.strategy = in_.one_of(kStrategies), .profile = 0};
        computation_ = shunt_computation_new(in_.below(32) == 0 ? nullptr : runtime(), graph_, &options, error());
        graph_ = nullptr;
        tensors_.clear();
        return check(computation_);
      }
      case 1: {
        const std::size_t bytes = in_.count(kPoolBytes);
        return check(shunt_write(computation_, in_.one_of(kNames), memory_.constant.data(), bytes, error()));
      }
      case 2:
        return check(shunt_run(computation_, error()));
      case 3:
        return check(shunt_run_with(computation_, {in_.number32(), in_.number32(), in_.number32()}, error()));
      case 4: {
        const std::size_t bytes = in_.count(kPoolBytes);
        return check(shunt_read(computation_, in_.number(), memory_.scratch.data(), bytes, error()));
      }
      case 5: {
        shunt_tensor_info info{};
        return check(shunt_output_info(computation_, in_.number(), &info, error()));
      }
      case 6:
        require((shunt_explain(computation_) == nullptr) == (computation_ == nullptr));
        return require((shunt_explain_json(computation_) == nullptr) == (computation_ == nullptr));
      default:
        // A whole way, so that sequences of few bytes have one.
        if (computation_ == nullptr) return;
        static_cast<void>(shunt_write(computation_, "x", memory_.constant.data(), 64, error()));
        if (shunt_run_with(computation_, {2, 2, 0}, error()) == SHUNT_OK)
          static_cast<void>(shunt_read(computation_, 0, memory_.scratch.data(), 64, error()));
    }
  }

  // Sizes whose product memory_ has, or far more than any memory.
  std::array<std::size_t, 3> sizes() {
    std::array<std::size_t, 3> sizes{};
    for (std::size_t& size : sizes) size = in_.count(16);
    if (in_.below(8) == 0) sizes.fill(std::size_t{1} << (33 + in_.below(31)));
    return sizes;
  }
  void array() {
    if (arrays_ == nullptr) arrays_ = shunt_arrays_new(runtime(), nullptr);
    shunt_arrays* const arrays = in_.below(32) == 0 ? nullptr : arrays_;
    const float* const a = memory_.floats();
    float* const out = memory_.result();
    const shunt_array_call call{.devices = in_.one_of(kDevices), .timeout_us = 0};
    shunt_array_run run{};
    const std::size_t count = in_.count(kPoolFloats);
    switch (in_.below(7)) {
      case 0:
        return check(shunt_arrays_add(arrays, a, out, out, count, &call, &run, error()));
      case 1:
        return check(shunt_arrays_multiply(arrays, out, a, out, count, nullptr, nullptr, error()));
      case 2: {
        const auto [rows, inner, columns] = sizes();
        return check(shunt_arrays_matmul(arrays, a, a, out, rows, inner, columns, &call, &run, error()));
      }
      case 3:
        return check(shunt_arrays_dot(arrays, a, a, out, count, &call, &run, error()));
      case 4:
        return check(shunt_arrays_sum(arrays, a, out, count, &call, &run, error()));
      case 5: {
        const auto [rows, columns, none] = sizes();
        return check(shunt_arrays_softmax(arrays, a, out, rows, columns, &call, &run, error()));
      }
      default:
        return require((shunt_arrays_explain(arrays) == nullptr) == (arrays == nullptr));
    }
  }

  void open_session() {
    shunt_session_close(session_);
    shunt_session_options options = shunt_session_defaults();
    options.context = in_.number32();
    options.max_sequences = in_.number32();
    options.max_batch_tokens = in_.number32();
    if (in_.below(4) == 0) options.cache_dtype = in_.dtype();
    options.strategy = in_.one_of(kStrategies);
    options.margin = static_cast<double>(in_.real());
    session_ = shunt_session_open(model(), runtime(), &options, error());
    check(session_);
  }
  void session() {
    std::array<std::int32_t, 8> tokens{};
    for (std::int32_t& token : tokens)
      token = static_cast<std::int32_t>(in_.below(8) == 0 ? in_.number32() : in_.byte());
    const std::size_t count = in_.below(tokens.size() + 1);
    switch (in_.below(8)) {
      case 0:
        return open_session();
      case 1:
        return check(shunt_session_prefill(session_, in_.number32() % 3, tokens.data(), count, error()));
      case 2: {
        std::array<shunt_batch_token, 8> batch{};
        for (std::size_t i = 0; i < count; ++i)
          batch[i] = {.sequence = in_.number32(), .token = tokens[i], .wants_logits = static_cast<int>(in_.below(2))};
        check(shunt_session_decode(session_, batch.data(), count, error()));
        return static_cast<void>(shunt_session_logits(session_, in_.number()));
      }
      case 3: {
        std::size_t length = 0;
        static_cast<void>(shunt_session_tokens(session_, in_.number32(), &length));
        return check(shunt_session_truncate(session_, in_.number32(), in_.number(), error()));
      }
      case 4: {
        shunt_generate_options options = shunt_generate_defaults();
        options.max_tokens = 1 + in_.below(4);
        options.sequence = in_.number32();
        options.temperature = in_.real();
        options.top_k = in_.number32();
        options.top_p = in_.real();
        options.min_p = in_.real();
        options.repeat_penalty = in_.real();
        options.repeat_last_n = in_.number32();
        return check(shunt_generate(session_, in_.one_of(kPrompts), &options, nullptr, nullptr, nullptr, error()));
      }
      case 5: {
        std::size_t needed = 0;
        return check(shunt_tokenize(model(), in_.one_of(kPrompts), in_.byte(), tokens.data(), count, &needed, error()));
      }
      case 6: {
        std::size_t needed = 0;
        const std::size_t bytes = in_.count(64);
        return check(shunt_detokenize(model(), tokens.data(), count, in_.byte(),
                                      reinterpret_cast<char*>(memory_.scratch.data()), bytes, &needed, error()));
      }
      default: {
        const shunt_message messages[] = {{.role = in_.one_of(kNames), .content = in_.one_of(kPrompts)}};
        const shunt_chat_options options{
            .format = in_.one_of(kNames), .so_far = tokens.data(), .so_far_count = count, .no_reply_opening = 0};
        std::size_t needed = 0;
        return check(
            shunt_apply_chat_template(model(), messages, in_.below(2), &options, nullptr, 0, &needed, error()));
      }
    }
  }

  void observe() {
    const std::uint64_t index = in_.number();
    require((shunt_device_id(runtime(), index) == nullptr) == (index >= shunt_device_count(runtime())));
    static_cast<void>(shunt_device_name(nullptr, index));
    if (in_.below(16) == 0) {
      shunt_runtime_options options{};
      options.threads = 1;
      options.devices = "cpu:scalar";
      options.faults = in_.one_of(kNames);
      options.budgets = in_.one_of(kDevices);
      options.machine = in_.one_of(kNames);
      options.timeout_ms = in_.number32();
      options.audit = in_.number32();
      options.uncalibrated = 1;
      shunt_runtime* const opened = shunt_runtime_open(&options, error());
      check(opened);
      require((shunt_trace_summary(opened) == nullptr) == (opened == nullptr));
      shunt_runtime_close(opened);
    }
    check(shunt_trace_write(runtime(), in_.below(2) == 0 ? nullptr : "/nowhere/trace.json", error()));
  }

  static const char* same_as_first(const shunt_kernel_use* use, shunt_operand* result, void*) {
    if (use->input_count == 0) return "it takes an input";
    *result = use->inputs[0];
    return nullptr;
  }
  static const char* nothing(const shunt_kernel_work*, void*) { return nullptr; }
  void kernel() {
    shunt_kernel_description description{};
    description.name = in_.one_of(kNames);
    if (in_.below(2) == 0) {
      description.spirv = reinterpret_cast<const std::uint32_t*>(memory_.constant.data());
      description.spirv_words = in_.count(64);
    }
    description.inputs = in_.number32();
    description.argument_bytes = in_.number32();
    description.result = in_.below(8) == 0 ? nullptr : same_as_first;
    description.cpu = in_.below(8) == 0 ? nullptr : nothing;
    description.flops_per_item = static_cast<double>(in_.real());
    shunt_kernel_free(kernel_);
    kernel_ = shunt_kernel_create(&description, error());
    check(kernel_);
  }

  WildArguments in_;
  Memory memory_;
  shunt_error error_{};
  shunt_graph* graph_ = nullptr;
  shunt_computation* computation_ = nullptr;
  shunt_arrays* arrays_ = nullptr;
  shunt_session* session_ = nullptr;
  shunt_kernel* kernel_ = nullptr;
  std::vector<shunt_tensor> tensors_;
};

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Calls({data, size}).run();
  return 0;
}
