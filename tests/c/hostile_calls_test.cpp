// Calls every function of shunt.h with senseless arguments: NULL, NULL with a count, counts larger than any memory,
// values outside an enum, extents of 0 and of 2^32 - 1. A call gives a useful error or what the header promises, and
// never ends the process.
//
// The list of functions is made from the header (CMakeLists.txt), and arguments follow from parameter types, so a new
// function needs no line here. Handles are valid or NULL, and memory is as large as its count says or NULL: C allows no
// further check.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "../bindings/c/dlpack.h"
#include "c/bundled_model.h"
#include "shunt/shunt.h"

namespace {

constexpr std::size_t kElements = 8;  // the largest count that memory backs
constexpr std::size_t kHugeCounts[] = {std::numeric_limits<std::size_t>::max(),
                                       std::numeric_limits<std::size_t>::max() / 2};

const char* scale_result(const shunt_kernel_use* use, shunt_operand* result, void*) {
  *result = use->inputs[0];
  return nullptr;
}

// The objects that calls use. Each is created on first use, and again after a call has ended it.
class World {
 public:
  shunt_runtime* runtime() {
    if (runtime_ == nullptr) {
      shunt_runtime_options options{};
      options.threads = 1;
      options.devices = "cpu:simd,cpu:scalar";
      options.uncalibrated = 1;
      runtime_.reset(shunt_runtime_open(&options, nullptr));
    }
    return runtime_.get();
  }
  shunt_model* model() {
    if (model_ == nullptr) model_.reset(shunt_model_open(kModel, nullptr));
    return model_.get();
  }
  shunt_session* session() {
    if (session_ == nullptr) {
      shunt_session_options options = shunt_session_defaults();
      options.context = 16;
      session_.reset(shunt_session_open(model(), runtime(), &options, nullptr));
    }
    return session_.get();
  }
  shunt_arrays* arrays() {
    if (arrays_ == nullptr) arrays_.reset(shunt_arrays_new(runtime(), nullptr));
    return arrays_.get();
  }
  shunt_kernel* kernel() {
    if (kernel_ == nullptr) {
      shunt_kernel_description description{};
      description.name = "scale";
      description.inputs = 1;
      description.result = scale_result;
      kernel_.reset(shunt_kernel_create(&description, nullptr));
    }
    return kernel_.get();
  }
  shunt_graph* graph() {
    if (graph_ == nullptr) {
      graph_.reset(shunt_graph_new());
      const shunt_tensor x = shunt_input(graph_.get(), "x", SHUNT_DTYPE_F32, {2, {4, 8}}, SHUNT_TOKENS);
      shunt_output(graph_.get(), shunt_scale(graph_.get(), x, {nullptr, 0}));
    }
    return graph_.get();
  }
  shunt_computation* computation() {
    if (computation_ == nullptr) {
      static_cast<void>(graph());
      computation_.reset(shunt_computation_new(runtime(), graph_.release(), nullptr, nullptr));
    }
    return computation_.get();
  }

  // Zeros, with room for kElements of any type.
  void* memory() { return memory_.at(next_memory_++).data(); }
  shunt_error error{};

  void begin_call() {
    next_memory_ = 0;
    for (auto& each : memory_) each.fill(std::byte{});
    std::memset(static_cast<void*>(&error), 0x55, sizeof error);
    graph_.reset();
    if (session_ != nullptr) static_cast<void>(shunt_session_truncate(session_.get(), 0, 0, nullptr));
  }
  // Drops an object that a call has ended or taken over.
  void forget(const void* object) {
    let_go(graph_, object);
    let_go(computation_, object);
    let_go(kernel_, object);
    let_go(arrays_, object);
    let_go(session_, object);
    let_go(model_, object);
    let_go(runtime_, object);
  }
  // Called before the runtime or the model ends, when nothing may depend on it.
  void end_dependants() {
    session_.reset();
    arrays_.reset();
    computation_.reset();
  }

 private:
  template <class Owner>
  static void let_go(Owner& owner, const void* object) {
    if (object != owner.get()) return;
    // NOLINTNEXTLINE(bugprone-unused-return-value): the call has ended it
    static_cast<void>(owner.release());
  }

  template <class T, auto end>
  struct End {
    void operator()(T* object) const { end(object); }
  };
  template <class T, auto end>
  using Owned = std::unique_ptr<T, End<T, end>>;

  Owned<shunt_runtime, shunt_runtime_close> runtime_;
  Owned<shunt_model, shunt_model_close> model_;
  Owned<shunt_kernel, shunt_kernel_free> kernel_;
  Owned<shunt_graph, shunt_graph_free> graph_;
  Owned<shunt_computation, shunt_computation_free> computation_;
  Owned<shunt_arrays, shunt_arrays_free> arrays_;
  Owned<shunt_session, shunt_session_close> session_;
  std::array<std::array<std::byte, 4096>, 16> memory_{};
  std::size_t next_memory_ = 0;
};

template <class T>
struct Type {};

// How to create and end objects of a type, if the interface can do so without arguments.
template <class T>
struct Known {
  [[maybe_unused]] static inline T* (*make)() = nullptr;
  static inline void (*end)(T*) = nullptr;
  static inline T* object = nullptr;  // the object of the calls
};
bool is_end(std::string_view name) { return name.ends_with("_free") || name.ends_with("_close"); }
template <class R, class... Args>
void learn(std::string_view, R (*)(Args...)) {}
template <class T>
void learn(std::string_view, [[maybe_unused]] T* (*make)()) {
  if constexpr (!std::is_const_v<T>) Known<T>::make = make;
}
template <class T>
void learn(std::string_view name, void (*end)(T*)) {
  if (is_end(name)) Known<T>::end = end;
}

// Returns the values to try for a parameter. This one serves types without an overload below.
template <class T>
std::vector<T> values(World& world, Type<T>) {
  if constexpr (std::is_enum_v<T>) {
    std::vector<T> numbers;
    for (const int number : {0, 1, 2, 7, 8, 1000, 255, 256, 257, -1, std::numeric_limits<int>::max()})
      numbers.push_back(static_cast<T>(number));
    return numbers;
  } else if constexpr (std::is_same_v<T, std::size_t> || std::is_same_v<T, std::uint64_t>) {
    return {0, 1, kElements, kHugeCounts[0], kHugeCounts[1]};
  } else if constexpr (std::is_arithmetic_v<T>) {
    return {T{0}, T{1}, T{7}, std::numeric_limits<T>::max(), std::numeric_limits<T>::lowest()};
  } else if constexpr (std::is_pointer_v<T>) {
    using Pointee = std::remove_pointer_t<T>;
    if constexpr (std::is_function_v<Pointee>) {
      return {nullptr};
    } else if constexpr (std::is_void_v<Pointee> || requires { sizeof(Pointee); }) {
      return {nullptr, static_cast<T>(world.memory())};
    } else {
      using Its = Known<std::remove_const_t<Pointee>>;
      if (Its::object == nullptr && Its::make != nullptr) Its::object = Its::make();
      return {nullptr, Its::object};
    }
  } else {
    return {T{}};
  }
}

std::vector<const char*> values(World&, Type<const char*>) { return {nullptr, "", "x", "\xFF"}; }
std::vector<shunt_error*> values(World& world, Type<shunt_error*>) { return {nullptr, &world.error}; }
std::vector<shunt_tensor> values(World&, Type<shunt_tensor>) { return {{0}, {77}, {SHUNT_NO_TENSOR_ID}}; }

// Not every type occurs both const and non-const.
#define SHUNT_HANDLE(name)                                                                            \
  [[maybe_unused]] std::vector<shunt_##name*> values(World& world, Type<shunt_##name*>) {             \
    return {nullptr, world.name()};                                                                   \
  }                                                                                                   \
  [[maybe_unused]] std::vector<const shunt_##name*> values(World& world, Type<const shunt_##name*>) { \
    return {nullptr, world.name()};                                                                   \
  }                                                                                                   \
  [[maybe_unused]] constexpr bool is_handle(Type<shunt_##name*>) { return true; }                     \
  [[maybe_unused]] constexpr bool is_handle(Type<const shunt_##name*>) { return true; }
SHUNT_HANDLE(runtime)
SHUNT_HANDLE(model)
SHUNT_HANDLE(session)
SHUNT_HANDLE(arrays)
SHUNT_HANDLE(graph)
SHUNT_HANDLE(computation)
SHUNT_HANDLE(kernel)
#undef SHUNT_HANDLE
template <class T>
constexpr bool is_handle(Type<T>) {
  return false;
}

std::vector<shunt_shape> values(World&, Type<shunt_shape>) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  return {{0, {}},
          {1, {0}},
          {1, {kMost}},
          {2, {4, 8}},
          {4, {kMost, kMost, kMost, kMost}},
          {4, {kMost, kMost, kMost, 0}},
          {5, {1, 1, 1, 1}},
          {kMost, {1, 1, 1, 1}}};
}

std::vector<shunt_parameters> values(World&, Type<shunt_parameters>) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  return {{}, {kMost, kMost, kMost}};
}

std::vector<shunt_attributes> values(World& world, Type<shunt_attributes>) {
  static std::array<shunt_attribute, 7> attributes;
  attributes = {shunt_attr_factor(std::numeric_limits<float>::quiet_NaN()),
                shunt_attr_arguments({nullptr, kElements}),
                shunt_attr_arguments({world.memory(), kHugeCounts[0]}),
                shunt_attr_code(nullptr),
                shunt_attr_code(world.kernel()),
                shunt_attr_to(static_cast<shunt_dtype>(1000)),
                shunt_attr_dims({std::numeric_limits<std::uint32_t>::max(), {}})};
  std::vector<shunt_attributes> lists = {{nullptr, 0}, {nullptr, 1}, {nullptr, kHugeCounts[0]}};
  for (const std::size_t count : kHugeCounts) lists.push_back({attributes.data(), count});
  for (const shunt_attribute& attribute : attributes) lists.push_back({&attribute, 1});
  static shunt_attribute unknown;
  unknown = shunt_attr_factor(1);
  unknown.attr = static_cast<shunt_attr>(1000);
  lists.push_back({&unknown, 1});
  return lists;
}

std::vector<const shunt_runtime_options*> values(World&, Type<const shunt_runtime_options*>) {
  static std::array<shunt_runtime_options, 8> options;
  options = {};
  for (shunt_runtime_options& each : options) {
    each.threads = 1;
    each.devices = "cpu:scalar";
    each.uncalibrated = 1;
  }
  options[1].devices = "?";
  options[2].machine = "";
  options[3].budgets = "?=?";
  options[4].faults = "?";
  options[5].timeout_ms = options[5].audit = std::numeric_limits<std::uint32_t>::max();
  options[6].trace = options[6].strict = -1;
  options[7].machine = "/nonexistent";
  std::vector<const shunt_runtime_options*> all = {nullptr};
  for (const shunt_runtime_options& each : options) all.push_back(&each);
  return all;
}

std::vector<const shunt_session_options*> values(World&, Type<const shunt_session_options*>) {
  constexpr std::uint32_t kMost = std::numeric_limits<std::uint32_t>::max();
  static std::array<shunt_session_options, 10> options;
  for (shunt_session_options& each : options) {
    each = shunt_session_defaults();
    each.context = 16;
  }
  options[0] = {};
  options[1].context = kMost;
  options[2].max_sequences = kMost;
  options[3].context = options[3].max_sequences = options[3].max_batch_tokens = kMost;
  options[4].context = kMost;
  options[4].max_sequences = 32;
  options[5].max_batch_tokens = 0;
  options[6].cache_dtype = static_cast<shunt_dtype>(1000);
  options[7].strategy = "?";
  options[8].margin = std::nan("");
  options[9].context = kMost;
  options[9].max_sequences = 1024;
  std::vector<const shunt_session_options*> all = {nullptr};
  for (const shunt_session_options& each : options) all.push_back(&each);
  return all;
}

std::vector<const shunt_generate_options*> values(World& world, Type<const shunt_generate_options*>) {
  static std::array<shunt_generate_options, 8> options;
  for (shunt_generate_options& each : options) {
    each = shunt_generate_defaults();
    each.max_tokens = 2;
  }
  options[0] = {};
  options[1].stop_count = kElements;
  options[2].stop_count = kHugeCounts[0];
  options[3].stops = static_cast<const char* const*>(world.memory());
  options[3].stop_count = kElements;
  options[4].sequence = std::numeric_limits<std::uint32_t>::max();
  options[5].temperature = options[5].top_p = options[5].min_p = std::nanf("");
  options[6].top_k = options[6].repeat_last_n = std::numeric_limits<std::uint32_t>::max();
  options[7].repeat_penalty = -1;
  std::vector<const shunt_generate_options*> all = {nullptr};
  for (const shunt_generate_options& each : options) all.push_back(&each);
  return all;
}

std::vector<const shunt_chat_options*> values(World& world, Type<const shunt_chat_options*>) {
  static std::array<shunt_chat_options, 4> options;
  options = {};
  options[1].format = "?";
  options[2].so_far_count = kElements;
  options[3].so_far = static_cast<const std::int32_t*>(world.memory());
  options[3].so_far_count = kHugeCounts[1];
  std::vector<const shunt_chat_options*> all = {nullptr};
  for (const shunt_chat_options& each : options) all.push_back(&each);
  return all;
}

std::vector<const shunt_kernel_description*> values(World& world, Type<const shunt_kernel_description*>) {
  static std::array<shunt_kernel_description, 9> descriptions;
  descriptions = {};
  for (shunt_kernel_description& each : descriptions) {
    each.name = "kernel";
    each.inputs = 1;
    each.result = scale_result;
  }
  descriptions[0] = {};
  descriptions[1].result = nullptr;
  descriptions[2].spirv_words = kElements;
  descriptions[3].spirv = static_cast<const std::uint32_t*>(world.memory());
  descriptions[3].spirv_words = kElements;
  descriptions[4].spirv = static_cast<const std::uint32_t*>(world.memory());
  descriptions[4].spirv_words = kHugeCounts[0];
  descriptions[5].inputs = std::numeric_limits<std::uint32_t>::max();
  descriptions[6].argument_bytes = std::numeric_limits<std::uint32_t>::max();
  descriptions[7].name = "\x1B";
  descriptions[8].flops_per_item = std::nan("");
  std::vector<const shunt_kernel_description*> all = {nullptr};
  for (const shunt_kernel_description& each : descriptions) all.push_back(&each);
  return all;
}

// Ends a result at once.
template <class T>
void end(T* object) {
  ASSERT_TRUE(Known<T>::end != nullptr) << "no function ends it";
  Known<T>::end(object);
}
void end(void* tensor) { const shunt::dlpack::Owned ended(static_cast<shunt::dlpack::ManagedTensor*>(tensor)); }

bool says_why(const shunt_error& error, shunt_code code) {
  const bool has_message = error.message[0] != '\0';
  return error.code == code && has_message == (code != SHUNT_OK) && std::strlen(error.message) < sizeof error.message;
}

// A result that the caller must end.
template <class T>
constexpr bool kIsOut = std::is_pointer_v<T> && !std::is_const_v<std::remove_pointer_t<T>>;

template <class R>
void check_result(R result, const shunt_error* error, bool lacks_handle) {
  if constexpr (std::is_same_v<R, shunt_code>) {
    ASSERT_STRNE(shunt_code_name(result), "unknown");
    ASSERT_TRUE(!lacks_handle || result == SHUNT_INVALID) << result;
    ASSERT_TRUE(error == nullptr || says_why(*error, result)) << result << ": " << error->code << error->message;
  } else if constexpr (std::is_same_v<R, const char*>) {
    ASSERT_TRUE(result == nullptr || std::strlen(result) < std::size_t{1} << 24U);
  } else if constexpr (kIsOut<R>) {
    ASSERT_TRUE(!lacks_handle || result == nullptr);
    if (error != nullptr) {
      const shunt_code code = result == nullptr ? error->code : SHUNT_OK;
      ASSERT_TRUE(says_why(*error, code) && (code == SHUNT_OK) == (result != nullptr)) << error->message;
    }
    if (result != nullptr) end(result);
  } else if constexpr (std::is_arithmetic_v<R> || std::is_pointer_v<R>) {
    ASSERT_TRUE(!lacks_handle || result == R{});
  }
}

// Calls the function with combination `number` of arguments; returns the number of combinations.
template <class R, class... Args, std::size_t... I>
std::size_t call(World& world, std::string_view name, R (*function)(Args...), [[maybe_unused]] std::size_t number,
                 std::index_sequence<I...>) {
  world.begin_call();
  [[maybe_unused]] const std::tuple<std::vector<Args>...> pools{values(world, Type<Args>())...};
  std::size_t combinations = 1;
  [[maybe_unused]] std::array<std::size_t, sizeof...(Args) + 1> chosen{};
  ((chosen[I] = number / combinations % std::get<I>(pools).size(), combinations *= std::get<I>(pools).size()), ...);
  const std::tuple<Args...> arguments{std::get<I>(pools)[chosen[I]]...};

  [[maybe_unused]] const bool ends = is_end(name);
  if (name == "shunt_runtime_close" || name == "shunt_model_close") world.end_dependants();
  bool lacks_handle = false;
  const shunt_error* error = nullptr;
  [[maybe_unused]] const auto look_at = [&]<class T>([[maybe_unused]] T argument) {
    if constexpr (is_handle(Type<T>())) lacks_handle = lacks_handle || argument == nullptr;
    if constexpr (std::is_same_v<T, shunt_error*>) error = argument;
    if constexpr (is_handle(Type<T>())) {
      if (ends || (name == "shunt_computation_new" && std::is_same_v<T, shunt_graph*>)) world.forget(argument);
    } else if constexpr (std::is_pointer_v<T>) {
      using Bare = std::remove_cv_t<std::remove_pointer_t<T>>;
      if constexpr (!std::is_void_v<Bare> && !std::is_function_v<Bare>)
        if (ends && argument == Known<Bare>::object) Known<Bare>::object = nullptr;
    }
  };
  (look_at(std::get<I>(arguments)), ...);
  if constexpr (std::is_void_v<R>)
    std::apply(function, arguments);
  else
    check_result(std::apply(function, arguments), error, lacks_handle);
  return combinations;
}

struct Function {
  const char* name;
  std::size_t (*call)(World& world, std::size_t number);
};

template <auto function, class R, class... Args>
constexpr auto caller_of(R (*)(Args...)) {
  return [](World& world, std::string_view name, std::size_t number) {
    return call(world, name, function, number, std::index_sequence_for<Args...>());
  };
}

constexpr Function kFunctions[] = {
#define SHUNT_C_FUNCTION(name) \
  {#name, [](World& world, std::size_t number) { return caller_of<&name>(&name)(world, #name, number); }},
#include "c_functions.def"
#undef SHUNT_C_FUNCTION
};

class HostileCalls : public testing::TestWithParam<Function> {
 protected:
  // Calls may write files and open all devices of a machine, of which one is enough here.
  HostileCalls() {
#define SHUNT_C_FUNCTION(name) learn(#name, &name);
#include "c_functions.def"
#undef SHUNT_C_FUNCTION
    std::filesystem::current_path(testing::TempDir());
    setenv("SHUNT_DEVICES", "cpu:scalar", 1);
  }
};

TEST_P(HostileCalls, GiveAnErrorOrWhatIsPromised) {
  World world;
  std::size_t combinations = 1;
  for (std::size_t number = 0; number < combinations && !HasFatalFailure(); ++number) {
    SCOPED_TRACE(testing::Message() << GetParam().name << ", combination " << number);
    combinations = GetParam().call(world, number);
  }
}

INSTANTIATE_TEST_SUITE_P(Header, HostileCalls, testing::ValuesIn(kFunctions),
                         [](const auto& function) { return std::string(function.param.name); });

constexpr shunt_attributes kNone{nullptr, 0};

// Returns the graph's error for calls that return no code themselves.
template <class Add>
std::string refusal_of(const Add& add) {
  World world;
  shunt_graph* const graph = shunt_graph_new();
  add(graph);
  shunt_error error{};
  EXPECT_EQ(shunt_computation_new(world.runtime(), graph, nullptr, &error), nullptr);
  EXPECT_EQ(error.code, SHUNT_INVALID) << error.message;
  return error.message;
}

TEST(HostileGraphs, AreRefusedWithWhatWasWrong) {
  const auto says = [](const std::string& message, std::string_view part) {
    EXPECT_NE(message.find(part), std::string::npos) << message;
  };
  for (const int number : {static_cast<int>(SHUNT_OP_COUNT), 255, 256, 1000, -1})
    says(refusal_of(
             [&](shunt_graph* graph) { shunt_add_node(graph, static_cast<shunt_op>(number), nullptr, 0, kNone); }),
         " is no op; there are ");
  for (const int number : {3, 255, 256, 258, -1})
    says(refusal_of([&](shunt_graph* graph) {
           shunt_input(graph, "x", SHUNT_DTYPE_F32, {1, {2}}, static_cast<shunt_extent>(number));
         }),
         " is no extent; 0 to 2 are");
  says(refusal_of([](shunt_graph* graph) { shunt_add_node(graph, SHUNT_OP_add, nullptr, 2, kNone); }),
       "the list of inputs is NULL");
  says(refusal_of([](shunt_graph* graph) { shunt_add_node(graph, SHUNT_OP_add, nullptr, 0, {nullptr, 3}); }),
       "the list of attributes is NULL");
  says(refusal_of([](shunt_graph* graph) {
         const shunt_attribute bytes = shunt_attr_arguments({nullptr, 3});
         shunt_add_node(graph, SHUNT_OP_custom, nullptr, 0, {&bytes, 1});
       }),
       "the bytes of an attribute is NULL");
  says(refusal_of([](shunt_graph* graph) {
         const shunt_tensor none{SHUNT_NO_TENSOR_ID};
         shunt_add_node(graph, SHUNT_OP_add, &none, std::numeric_limits<std::size_t>::max(), kNone);
       }),
       "more than any memory");
}

// Four tensors of 2^62 bytes are 2^64 bytes together, which wraps to 0 in 64 bits.
TEST(HostileGraphs, AreRefusedWhereTheirTensorsAreTooLargeTogether) {
  const std::string message = refusal_of([](shunt_graph* graph) {
    for (const char* name : {"a", "b", "c", "d"})
      shunt_input(graph, name, SHUNT_DTYPE_F32, {2, {1U << 30U, 1U << 30U}}, SHUNT_FIXED);
  });
  EXPECT_NE(message.find("take more than 72057594037927936 bytes together"), std::string::npos) << message;
}

TEST(HostileTensors, OfDlpackAreRefused) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  std::array<float, 8> data{};
  for (const std::int64_t extent : {std::int64_t{0}, std::int64_t{-1}, kMost, -kMost - 1, std::int64_t{1} << 32U})
    for (const bool has_data : {false, true})
      for (const int rank : {-1, 0, 1, 4, 5, std::numeric_limits<int>::max()})
        for (const bool has_shape : {false, true}) {
          std::array<std::int64_t, 4> shape{extent, extent, extent, extent};
          shunt::dlpack::ManagedTensor managed{};
          managed.tensor = {.data = has_data ? data.data() : nullptr,
                            .device_type = 1,
                            .device_id = 0,
                            .rank = rank,
                            .dtype = {.code = 2, .bits = 32, .lanes = 1},
                            .shape = has_shape ? shape.data() : nullptr,
                            .strides = nullptr,
                            .byte_offset = 0};
          shunt_graph* const graph = shunt_graph_new();
          const shunt_tensor tensor = shunt_constant_dlpack(graph, "w", &managed);
          // Scalars and shapes without elements are valid.
          const bool is_good = (rank == 0 && has_data) || (rank > 0 && rank <= 4 && has_shape && extent == 0);
          EXPECT_EQ(tensor.id != SHUNT_NO_TENSOR_ID, is_good) << extent << " " << rank << has_data << has_shape;
          shunt_graph_free(graph);
        }
}

TEST(HostileSessions, OfMorePagesThanNumbersAreRefused) {
  World world;
  shunt_session_options options = shunt_session_defaults();
  options.context = std::numeric_limits<std::uint32_t>::max();
  options.max_sequences = 32;
  shunt_error error{};
  EXPECT_EQ(shunt_session_open(world.model(), world.runtime(), &options, &error), nullptr);
  EXPECT_EQ(error.code, SHUNT_INVALID);
  EXPECT_NE(std::string(error.message).find("a context of 4294967295 tokens in 32 sequences"), std::string::npos)
      << error.message;
}

}  // namespace
