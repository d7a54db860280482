// Kernels of the caller's as ops of graphs: equal numbers from GLSL, SPIR-V and the CPU function, and every error.
#include <gtest/gtest.h>

#include <atomic>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <numeric>

#include "devices/each_api.h"
#include "mutations.h"
#include "ops/spirv.h"
#include "run/opened_devices.h"
#include "shunt/computation.h"
#include "shunt/kernel.h"

namespace shunt {
namespace {

using Kernel = std::shared_ptr<const UserKernel>;

constexpr const char* kLeaky = R"(layout(local_size_x = 64) in;
SHUNT_INPUT(0, F32, x)
SHUNT_OUTPUT(F32, y)
SHUNT_ARGUMENTS(float slope; float offset;)
void main() {
  uint i = shunt_item();
  if (i >= shunt_items()) return;
  float value = x(i);
  put_y(i, (value > 0.0 ? value : slope * value) + offset);
}
)";

struct LeakyArguments {
  float slope = 0.25F;
  float offset = 0.5F;
};

Result<Operand> like_the_first(const KernelUse& use) {
  return Operand::contiguous(use.inputs[0].dtype, use.inputs[0].shape, TensorKind::value, use.inputs[0].extent);
}

KernelDescription leaky() {
  return {.name = "leaky",
          .glsl = kLeaky,
          .argument_bytes = sizeof(LeakyArguments),
          .result = like_the_first,
          .cpu = [](const KernelWork& work) -> Status {
            const auto x = work.input<float>(0);
            const auto y = work.output<float>();
            const auto& arguments = work.use.arguments_as<LeakyArguments>();
            for (std::uint64_t i = work.begin; i < work.end; ++i)
              y[i] = (x[i] > 0 ? x[i] : arguments.slope * x[i]) + arguments.offset;
            return {};
          }};
}

KernelDescription leaky_on_the_processor() {
  KernelDescription description = leaky();
  description.glsl.clear();
  return description;
}

// A kernel of one F32 input and one F32 output: an expression of x(i).
KernelDescription unary(const std::string& name, const std::string& expression) {
  return {.name = name,
          .glsl =
              "layout(local_size_x = 32) in;\nSHUNT_INPUT(0, F32, x)\nSHUNT_OUTPUT(F32, y)\n"
              "void main() {\n  uint i = shunt_item();\n  if (i < shunt_items()) put_y(i, " +
              expression + ");\n}\n",
          .result = like_the_first};
}

Kernel made(KernelDescription description) {
  auto kernel = make_kernel(std::move(description));
  EXPECT_TRUE(kernel.has_value()) << (kernel ? "" : kernel.error().message);
  return kernel.value_or(nullptr);
}

Error refusal(KernelDescription description) {
  const auto kernel = make_kernel(std::move(description));
  EXPECT_FALSE(kernel.has_value());
  return kernel ? Error{} : kernel.error();
}

#define EXPECT_SAYS(error, text) EXPECT_NE((error).message.find(text), std::string::npos) << (error).message

template <class T>
std::vector<std::byte> bytes_of_values(const std::vector<T>& values) {
  const auto bytes = std::as_bytes(std::span(values));
  return {bytes.begin(), bytes.end()};
}

std::vector<float> numbers(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i)
    values[i] = static_cast<float>(i * 7 % 23) - 11.0F + 0.125F * static_cast<float>(i % 5);
  return values;
}

using Inputs = std::map<std::string, std::vector<std::byte>>;

template <class T = float>
Result<std::vector<T>> run(const Runtime& runtime, Result<Graph> graph, const Inputs& inputs,
                           const Parameters& parameters = {}) {
  SHUNT_TRY(graph);
  SHUNT_TRY_ASSIGN(const auto computation, Computation::create(std::move(*graph), runtime, nullptr));
  for (const auto& [name, bytes] : inputs) SHUNT_TRY(computation->write(name, bytes));
  SHUNT_TRY(computation->run(parameters));
  std::vector<T> result(computation->output(0).operand.shape.elements());
  SHUNT_TRY(computation->read(0, 0, std::as_writable_bytes(std::span(result))));
  return result;
}

std::unique_ptr<Runtime> runtime_on(const std::string& devices) {
  auto runtime = Runtime::create({.threads = 3, .devices = devices});
  EXPECT_TRUE(runtime.has_value()) << (runtime ? "" : runtime.error().message);
  return runtime ? std::move(*runtime) : nullptr;
}

// Puts the kernel between ops of the table: it reads 2 x, and its result is negated.
Result<Graph> leaky_graph(const Kernel& kernel, const Shape& shape, const LeakyArguments& arguments = {}) {
  GraphBuilder graph;
  const Tensor x = graph.input("x", DType::F32, shape);
  const Tensor y =
      graph.custom(kernel, {graph.scale(x, {{Attr::factor, 2.0F}})}, std::as_bytes(std::span(&arguments, 1)));
  graph.output(graph.neg(y));
  return std::move(graph).finish();
}

// Each device of Vulkan by itself.
class CustomOnVulkan : public test::EachApi {
 protected:
  void SetUp() override {
    EachApi::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    std::vector<std::string> ids;
    for (const Device* device : devices_) ids.push_back(device->info().id);
    registry_ = {};
    devices_.clear();
    for (const std::string& id : ids) runtimes_.push_back(runtime_on(id));
    processor_ = runtime_on("cpu:simd");
  }
  // Expects the same outputs of a graph on every device and the processor.
  template <class T = float>
  void expect_same(const std::function<Result<Graph>()>& build, const Inputs& inputs) {
    const auto expected = run<T>(*processor_, build(), inputs);
    ASSERT_TRUE(expected.has_value()) << expected.error().message;
    for (const auto& runtime : runtimes_) {
      const auto actual = run<T>(*runtime, build(), inputs);
      ASSERT_TRUE(actual.has_value()) << actual.error().message;
      EXPECT_EQ(*actual, *expected) << opened(*runtime).handles()[0]->info().name;
    }
  }

  std::vector<std::unique_ptr<Runtime>> runtimes_;
  std::unique_ptr<Runtime> processor_;
};
INSTANTIATE_TEST_SUITE_P(Devices, CustomOnVulkan, testing::Values("vulkan"),
                         [](const auto& test) { return test.param; });

TEST_P(CustomOnVulkan, GlslComputesWhatTheFunctionDoes) {
  const Kernel kernel = made(leaky());
  ASSERT_NE(kernel, nullptr);
  for (const Shape& shape : {Shape{1}, Shape{5, 13}, Shape{3, 4, 50, 9}}) {
    const Inputs inputs{{"x", bytes_of_values(numbers(shape.elements()))}};
    expect_same([&] { return leaky_graph(kernel, shape, {.slope = 0.125F, .offset = -3}); }, inputs);
  }
  const auto values = run(*runtimes_[0], leaky_graph(kernel, {2}), {{"x", bytes_of_values<float>({-1, 4})}});
  ASSERT_TRUE(values.has_value()) << values.error().message;
  EXPECT_EQ(*values, (std::vector<float>{-0.0F, -8.5F}));
}

TEST_P(CustomOnVulkan, AModuleDoesWhatItsGlslDoes) {
  KernelDescription description = leaky();
  const Kernel compiled = made(leaky());
  ASSERT_NE(compiled, nullptr);
  description.glsl.clear();
  description.spirv.assign(spirv_of(*compiled).begin(), spirv_of(*compiled).end());
  const Kernel kernel = made(description);
  ASSERT_NE(kernel, nullptr);
  expect_same([&] { return leaky_graph(kernel, {300}); }, {{"x", bytes_of_values(numbers(300))}});
}

// Covers operands of every storage type that the prelude reads, a result with two elements per word and a half-filled
// last word, and views at any offset.
TEST_P(CustomOnVulkan, OperandsOfOtherDTypesAndViews) {
  const Kernel kernel =
      made({.name = "mix",
            .glsl = R"(
SHUNT_INPUT(0, F16, a)
SHUNT_INPUT(1, BF16, b)
SHUNT_INPUT(2, I32, c)
SHUNT_INPUT(3, I8, d)
SHUNT_INPUT(4, U32, e)
SHUNT_INPUT(5, BYTES, f)
SHUNT_OUTPUT(F16, y)
layout(local_size_x = 4, local_size_y = 2) in;
float one(uint i) { return a(i) + b(i) + float(c(i)) + float(d(i)) + float(e(i)) + float(f(i)); }
void main() {
  uint pair = shunt_item();
  if (pair >= shunt_items()) return;
  uint last = y_count() - 1u;
  put_y(pair, vec2(one(2u * pair), one(min(2u * pair + 1u, last)) + float(y_extent(0) - a_extent(0))));
}
)",
            .inputs = 6,
            .result = like_the_first,
            .cpu = [](const KernelWork& work) -> Status {
              for (std::uint64_t i = 2 * work.begin;
                   i < std::min<std::uint64_t>(2 * work.end, work.result.shape.elements()); ++i)
                work.output<_Float16>()[i] =
                    static_cast<_Float16>(static_cast<float>(work.input<_Float16>(0)[i]) +
                                          std::bit_cast<float>(std::uint32_t{work.input<std::uint16_t>(1)[i]} << 16U) +
                                          static_cast<float>(work.input<std::int32_t>(2)[i]) +
                                          static_cast<float>(work.input<std::int8_t>(3)[i]) +
                                          static_cast<float>(work.input<std::uint32_t>(4)[i]) +
                                          static_cast<float>(work.input<std::uint8_t>(5)[i]));
              return {};
            },
            .items = [](const KernelUse&, const Operand& result) { return (result.shape.elements() + 1) / 2; }});
  ASSERT_NE(kernel, nullptr);
  constexpr std::uint32_t kRows = 7;
  const auto build = [&] {
    GraphBuilder graph;
    // Views from row 1 on. They begin at bytes 2, 2, 4, 1, 4 and 1 of their storage.
    const auto from_one = [&](std::string_view name, DType dtype) {
      return graph.slice(graph.input(name, dtype, {kRows + 2}), {{Attr::begin, 1U}, {Attr::count, kRows}});
    };
    graph.output(graph.custom(kernel, {from_one("a", DType::F16), from_one("b", DType::BF16), from_one("c", DType::I32),
                                       from_one("d", DType::I8), from_one("e", DType::U32), from_one("f", DType::I8)}));
    return std::move(graph).finish();
  };
  Inputs inputs;
  const auto fill = [&]<class T>(const char* name, T first) {
    std::vector<T> values(kRows + 2);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<T>(first + static_cast<T>(i * i));
    inputs[name] = bytes_of_values(values);
  };
  fill("a", static_cast<_Float16>(-20.5F));
  fill("b", std::uint16_t{0x4100});
  fill("c", std::int32_t{-70});
  fill("d", std::int8_t{-100});
  fill("e", std::uint32_t{3});
  fill("f", std::int8_t{5});
  expect_same<_Float16>(build, inputs);
}

TEST_P(CustomOnVulkan, ViewsThatAreNotContiguousAreCopied) {
  KernelDescription description = unary("doubled", "2.0 * x(i)");
  description.cpu = [](const KernelWork& work) -> Status {
    for (std::uint64_t i = work.begin; i < work.end; ++i) work.output<float>()[i] = 2 * work.input<float>(0)[i];
    return {};
  };
  const Kernel kernel = made(description);
  const auto build = [&] {
    GraphBuilder graph;
    const Tensor x = graph.input("x", DType::F32, {4, 6});
    const Tensor turned = graph.permute(x, {{Attr::axes, Shape{1, 0}}});
    graph.output(graph.custom(kernel, {graph.slice(turned, {{Attr::axis, 1U}, {Attr::begin, 1U}, {Attr::count, 2U}})}));
    return std::move(graph).finish();
  };
  const auto graph = build();
  ASSERT_TRUE(graph.has_value()) << graph.error().message;
  EXPECT_EQ(graph->nodes().size(), 4U);
  expect_same(build, {{"x", bytes_of_values(numbers(24))}});
}

// One workgroup per row, with shared memory.
TEST_P(CustomOnVulkan, WorkgroupsOfTheCallersNumberShareMemory) {
  const Kernel kernel =
      made({.name = "row_sum",
            .glsl = R"(#version 450
layout(local_size_x = 8) in;
layout(constant_id = 1) const uint kTimes = 3;
SHUNT_INPUT(0, F32, x)
SHUNT_OUTPUT(F32, y)
shared float sums[8];
void main() {
  uint row = shunt_group();
  uint lane = gl_LocalInvocationIndex;
  float sum = 0.0;
  for (uint i = lane; i < x_extent(1); i += 8u) sum += x(row * x_extent(1) + i);
  sums[lane] = sum;
  barrier();
  if (lane != 0u || row >= shunt_items()) return;
  for (uint i = 1u; i < 8u; ++i) sum += sums[i];
  put_y(row, float(kTimes) * sum);
}
)",
            .result = [](const KernelUse& use) -> Result<Operand> {
              return Operand::contiguous(DType::F32, {use.inputs[0].shape[0]});
            },
            .cpu = [](const KernelWork& work) -> Status {
              const std::size_t columns = work.use.inputs[0].shape.columns();
              for (std::uint64_t row = work.begin; row < work.end; ++row) {
                const auto x = work.input<float>(0).subspan(row * columns, columns);
                work.output<float>()[row] = 3 * std::accumulate(x.begin(), x.end(), 0.0F);
              }
              return {};
            },
            .groups = [](const KernelUse&, const Operand& result) { return result.shape.elements(); }});
  ASSERT_NE(kernel, nullptr);
  expect_same(
      [&] {
        GraphBuilder graph;
        graph.output(graph.custom(kernel, {graph.input("x", DType::F32, {9, 21})}));
        return std::move(graph).finish();
      },
      {{"x", bytes_of_values(numbers(189))}});
}

// Pipelines are cached by their source. A kernel with an equal name, or with the address of an earlier one, is another.
TEST_P(CustomOnVulkan, KernelsOfOneNameStayApartAndOldOnesAreGone) {
  const Inputs inputs{{"x", bytes_of_values<float>({1, 2, 3})}};
  const Kernel plus = made(unary("same", "x(i) + 1.0"));
  const Kernel times = made(unary("same", "x(i) * 10.0"));
  for (const auto& runtime : runtimes_) {
    GraphBuilder graph;
    graph.output(graph.custom(times, {graph.custom(plus, {graph.input("x", DType::F32, {3})})}));
    const auto values = run(*runtime, std::move(graph).finish(), inputs);
    ASSERT_TRUE(values.has_value()) << values.error().message;
    EXPECT_EQ(*values, (std::vector<float>{20, 30, 40}));
    for (int i = 0; i < 3; ++i) {
      GraphBuilder again;
      again.output(again.custom(made(unary("again", "x(i) + " + std::to_string(i) + ".0")),
                                {again.input("x", DType::F32, {3})}));
      const auto sums = run(*runtime, std::move(again).finish(), inputs);
      ASSERT_TRUE(sums.has_value()) << sums.error().message;
      EXPECT_EQ(*sums, (std::vector<float>{1.0F + static_cast<float>(i), 2.0F + static_cast<float>(i),
                                           3.0F + static_cast<float>(i)}));
    }
  }
}

TEST_P(CustomOnVulkan, AWorkgroupThatDoesNotFitIsUnsupportedWithItsSize) {
  KernelDescription description = unary("huge", "x(i)");
  description.glsl.replace(description.glsl.find("32"), 2, "1024, local_size_y = 2");
  const auto values = run(*runtimes_[0],
                          [&] {
                            GraphBuilder graph;
                            graph.output(graph.custom(made(description), {graph.input("x", DType::F32, {3})}));
                            return std::move(graph).finish();
                          }(),
                          {});
  ASSERT_FALSE(values.has_value());
  EXPECT_EQ(values.error().code, Code::unsupported);
  EXPECT_SAYS(values.error(), "huge: its workgroup has 1024 x 2 x 1 invocations");
}

// Each device either runs the kernel correctly or says why it cannot.
class CustomOnEachApi : public test::EachApi {};
SHUNT_FOR_EACH_API(CustomOnEachApi);

TEST_P(CustomOnEachApi, RunsOrSaysWhyNot) {
  const Kernel kernel = made(leaky());
  for (const Device* device : devices_) {
    const auto runtime = runtime_on(device->info().id);
    ASSERT_NE(runtime, nullptr);
    const auto values = run(*runtime, leaky_graph(kernel, {2}), {{"x", bytes_of_values<float>({-1, 4})}});
    if (GetParam() == "vulkan" || GetParam() == "sim") {
      ASSERT_TRUE(values.has_value()) << values.error().message;
      EXPECT_EQ(*values, (std::vector<float>{-0.0F, -8.5F}));
      continue;
    }
    ASSERT_FALSE(values.has_value()) << device->info().name;
    EXPECT_EQ(values.error().code, Code::unsupported);
    EXPECT_SAYS(values.error(), "no device can run leaky(F32[2])");
    const bool is_cuda = GetParam() == "cuda" || GetParam() == "hip";
    EXPECT_SAYS(values.error(),
                is_cuda ? "custom: there is no CUDA kernel for it" : "SPIR-V, which Vulkan alone takes");
  }
}

class CustomOnProcessor : public testing::Test {
 protected:
  std::unique_ptr<Runtime> runtime_ = runtime_on("cpu:simd");
  Error build_error(const std::function<void(GraphBuilder&)>& build) {
    GraphBuilder graph;
    build(graph);
    const auto made_graph = std::move(graph).finish();
    EXPECT_FALSE(made_graph.has_value());
    return made_graph ? Error{} : made_graph.error();
  }
};

TEST_F(CustomOnProcessor, WithoutAFunctionItIsUnsupportedThere) {
  KernelDescription description = leaky();
  description.cpu = nullptr;
  const auto values = run(*runtime_, leaky_graph(made(description), {2}), {});
  ASSERT_FALSE(values.has_value());
  EXPECT_EQ(values.error().code, Code::unsupported);
  EXPECT_SAYS(values.error(), "no device can run leaky(F32[2]) (node \"leaky.1\")");
  EXPECT_SAYS(values.error(), "cpu:simd: leaky: the kernel has no function for the processor");
}

TEST_F(CustomOnProcessor, AFunctionAloneNeedsNoCompiler) {
  const KernelDescription description = leaky_on_the_processor();
  const char* const set = std::getenv("SHUNT_SHADERC_LIBRARY");
  const std::string before = set == nullptr ? "" : set;
  ASSERT_EQ(setenv("SHUNT_SHADERC_LIBRARY", "/nowhere/libshaderc.so", 1), 0);
  const auto kernel = make_kernel(description);
  const Error error = refusal(leaky());
  ASSERT_EQ(setenv("SHUNT_SHADERC_LIBRARY", before.c_str(), 1), 0);  // an empty path names no library
  ASSERT_TRUE(kernel.has_value()) << kernel.error().message;
  const auto values = run(*runtime_, leaky_graph(*kernel, {1000}), {{"x", bytes_of_values(numbers(1000))}});
  EXPECT_TRUE(values.has_value()) << values.error().message;
  EXPECT_EQ(error.code, Code::io);
  EXPECT_SAYS(error, "install glslc");
  EXPECT_SAYS(error, "or give SPIR-V");
}

TEST_F(CustomOnProcessor, ItsErrorEndsTheRun) {
  KernelDescription description = leaky_on_the_processor();
  description.cpu = [](const KernelWork& work) -> Status {
    if (work.end > 40) return fail(Code::invalid, "element 40 is forty");
    return {};
  };
  const Kernel kernel = made(description);
  for (const char* device : {"cpu:simd", "cpu:scalar", "sim:0"}) {
    const auto runtime = runtime_on(device);
    const auto values = run(*runtime, leaky_graph(kernel, {64}), {});
    ASSERT_FALSE(values.has_value());
    EXPECT_EQ(values.error().code, Code::invalid);
    EXPECT_SAYS(values.error(), "kernel of \"leaky.1\": element 40 is forty");
    EXPECT_TRUE(run(*runtime, leaky_graph(kernel, {40}), {}).has_value());
  }
}

// Computes only the items of valid rows, each on exactly one thread.
TEST_F(CustomOnProcessor, ComputesTheValidItemsOnce) {
  const auto visits = std::make_shared<std::array<std::atomic<int>, 12>>();
  KernelDescription description = leaky_on_the_processor();
  description.cpu = [visits](const KernelWork& work) -> Status {
    for (std::uint64_t i = work.begin; i < work.end; ++i) ++(*visits)[i];
    return {};
  };
  GraphBuilder graph;
  const LeakyArguments arguments;
  graph.output(graph.custom(made(description), {graph.input("x", DType::F32, {4, 3}, Extent::tokens)},
                            std::as_bytes(std::span(&arguments, 1))));
  ASSERT_TRUE(run(*runtime_, std::move(graph).finish(), {}, {.tokens = 2}).has_value());
  for (std::size_t i = 0; i < 12; ++i) EXPECT_EQ((*visits)[i], i < 6 ? 1 : 0) << i;
}

TEST_F(CustomOnProcessor, RefusalsOfAUseBearTheKernelsName) {
  const Kernel kernel = made(leaky_on_the_processor());
  KernelDescription picky = leaky_on_the_processor();
  picky.result = [](const KernelUse& use) -> Result<Operand> {
    return fail(Code::invalid, "wants two axes, got " + to_string(use.inputs[0].shape));
  };
  const Error of_rule = build_error([&](GraphBuilder& graph) {
    graph.custom(made(picky), {graph.input("x", DType::F32, {3})}, std::as_bytes(std::span(kLeaky, 8)));
  });
  EXPECT_EQ(of_rule.code, Code::invalid);
  EXPECT_SAYS(of_rule, "leaky: wants two axes, got [3] (node \"leaky.0\")");
  EXPECT_SAYS(build_error([&](GraphBuilder& graph) {
                const Tensor x = graph.input("x", DType::F32, {3});
                graph.custom(kernel, {x, x});
              }),
              "leaky: takes 1 inputs, got 2");
  EXPECT_SAYS(build_error([&](GraphBuilder& graph) { graph.custom(kernel, {graph.input("x", DType::F32, {3})}); }),
              "leaky: takes 8 bytes of arguments, got 0");
  EXPECT_SAYS(build_error([&](GraphBuilder& graph) { graph.custom(nullptr, {graph.input("x", DType::F32, {3})}); }),
              "there is no kernel");
  EXPECT_SAYS(build_error([&](GraphBuilder& graph) { graph.custom(kernel, {}); }), "takes 1 to 7 inputs, got 0");
}

TEST(MakeKernel, CompilersLinesHaveTheCallersNumbers) {
  KernelDescription description = leaky();
  description.glsl.replace(description.glsl.find("slope *"), 5, "slops");
  const Error error = refusal(description);
  EXPECT_EQ(error.code, Code::invalid);
  EXPECT_SAYS(error, "kernel \"leaky\": leaky:9: error: 'slops' : undeclared identifier");
  description.glsl = "// with a version of its own\n#version 460\n" + description.glsl;
  EXPECT_SAYS(refusal(description), "leaky:11: error: 'slops'");
}

TEST(MakeKernel, RefusesDescriptionsThatContradictThemselves) {
  const auto refused = [](const std::function<void(KernelDescription&)>& change) {
    KernelDescription description = leaky();
    change(description);
    const Error error = refusal(description);
    EXPECT_EQ(error.code, Code::invalid) << error.message;
    return error.message;
  };
  EXPECT_EQ(refused([](auto& of) { of.name = "a b"; }), "kernel \"a b\": a name is 1 to 64 letters, digits and _");
  EXPECT_EQ(refused([](auto& of) { of.inputs = 8; }), "kernel \"leaky\": 8 inputs, and there can be 1 to 7");
  EXPECT_EQ(refused([](auto& of) { of.argument_bytes = 116; }),
            "kernel \"leaky\": 116 bytes of arguments, and there can be 112");
  EXPECT_EQ(refused([](auto& of) { of.result = nullptr; }),
            "kernel \"leaky\": there is no function that says what the result is");
  EXPECT_EQ(refused([](auto& of) { of.spirv = {1}; }), "kernel \"leaky\": it has GLSL and SPIR-V; give one of them");
  EXPECT_EQ(refused([](auto& of) {
              of.glsl.clear();
              of.cpu = nullptr;
            }),
            "kernel \"leaky\": nothing can run it: give GLSL, SPIR-V or a function for the processor");
}

TEST(MakeKernel, RefusesWhatAUseDoesNotBind) {
  const auto refused = [](const std::string& declarations, const std::string& statement) {
    KernelDescription description = unary("binds", "x(i)");
    description.glsl =
        "SHUNT_INPUT(0, F32, x)\nSHUNT_OUTPUT(F32, y)\n" + declarations + "\nvoid main() { " + statement + " }\n";
    return refusal(description);
  };
  EXPECT_SAYS(refused("SHUNT_INPUT(1, F32, z)", "put_y(0, z(0));"),
              "it binds a buffer at 4; the result is at 2 and 1 input from 3 on");
  EXPECT_SAYS(refused("layout(binding = 0) buffer Mine { float mine; };", "mine = 1.0;"), "binds a buffer at 0");
  EXPECT_SAYS(refused("layout(binding = 5) uniform Mine { float mine; };", "put_y(0, mine);"), "a uniform block at 5");
  EXPECT_SAYS(refused("layout(set = 1, binding = 3) buffer Mine { float mine; };", "mine = 1.0;"), "set 1, binding 3");
  EXPECT_SAYS(refused("layout(push_constant) uniform Mine { float mine; };", "put_y(0, mine);"), "push constants");
  EXPECT_SAYS(refused("layout(binding = 3, rgba8) uniform image2D mine;", "put_y(0, imageLoad(mine, ivec2(0)).x);"),
              "images or samplers");
  EXPECT_SAYS(refused("SHUNT_ARGUMENTS(vec4 many[8];)", "put_y(0, many[7].x);"),
              "the block at binding 0 has more than 288 bytes");
  EXPECT_SAYS(refused("shared float part[4];", "part[0] = x(0);"), "binds nothing at binding 2, which is the result");
  const Error error = refused("", "put_y(0, float(double(x(0)) * 2.0lf));");
  EXPECT_EQ(error.code, Code::unsupported);
  EXPECT_SAYS(error, "it needs capability 10; kernels may need Matrix (0), Shader (1)");
}

class Modules : public testing::Test {
 protected:
  void SetUp() override {
    const Kernel kernel = made(leaky());
    ASSERT_NE(kernel, nullptr);
    words_.assign(spirv_of(*kernel).begin(), spirv_of(*kernel).end());
  }
  static Result<Kernel> make(std::vector<std::uint32_t> words) {
    KernelDescription description = leaky();
    description.glsl.clear();
    description.spirv = std::move(words);
    return make_kernel(std::move(description));
  }
  std::vector<std::uint32_t> words_;
};

TEST_F(Modules, OfAnotherKindAreRefused) {
  const auto with = [&](std::size_t at, std::uint32_t word) {
    auto words = words_;
    words[at] = word;
    const auto kernel = make(words);
    EXPECT_FALSE(kernel.has_value());
    return kernel ? Error{} : kernel.error();
  };
  EXPECT_SAYS(with(0, 0x03022307), "SPIR-V: it begins with 0x03022307, must begin with 0x07230203");
  EXPECT_SAYS(with(1, 0x00010600), "SPIR-V: version 1.6; Vulkan 1.1 takes 1.0 to 1.3");
  EXPECT_SAYS(with(5, 0x00000011), "the instruction at word 5 has 0 words");
  const auto entry = std::ranges::find(words_, 15U, [](std::uint32_t word) { return word & 0xFFFFU; });
  const auto at = static_cast<std::size_t>(entry - words_.begin());
  EXPECT_SAYS(with(at + 1, 4), "an entry point is of execution model 4, must be GLCompute (5)");
  EXPECT_SAYS(with(at + 3, 0x6E69616E), "its entry point is not called main");
}

// Errors that pass the word check are caught by the validator: here a constant whose type is not a type.
TEST_F(Modules, AreValidated) {
  auto words = words_;
  for (std::size_t at = 5; at < words.size(); at += words[at] >> 16U)
    if ((words[at] & 0xFFFFU) == 43U) {
      words[at + 1] = words[at + 2];
      break;
    }
  EXPECT_TRUE(check_spirv(words, 1).has_value());
  const auto kernel = make(words);
  ASSERT_FALSE(kernel.has_value());
  EXPECT_SAYS(kernel.error(), "SPIR-V does not pass validation");
}

TEST_F(Modules, WithDamageNeverCrash) {
  std::size_t taken = 0;
  for (std::size_t at = 0; at < words_.size(); ++at) {
    const std::vector<std::uint32_t> cut(words_.begin(), words_.begin() + static_cast<std::ptrdiff_t>(at));
    if (check_spirv(cut, 1).has_value() && at % 32 == 0) {
      EXPECT_FALSE(make(cut).has_value()) << at;  // left to the validator, a program, if its library is absent
    }
    for (const std::uint32_t word : {0U, 1U, 0xFFFFU, 0x7FFFFFFFU, 0xFFFF0000U, 0xFFFFFFFFU, words_[at] ^ 0x10000U}) {
      auto words = words_;
      words[at] = word;
      taken += check_spirv(words, 1).has_value() ? 1U : 0U;
    }
  }
  EXPECT_GT(taken, 0U);  // most words are in functions, which only the validator judges
  const auto bytes = std::as_bytes(std::span(words_));
  Mutations mutations({bytes.begin(), bytes.end()}, bytes.size(), 7);
  for (int i = 0; i < 20000; ++i) {
    const std::vector<std::byte> damaged = mutations.next();
    std::vector<std::uint32_t> words(damaged.size() / sizeof(std::uint32_t));
    std::memcpy(words.data(), damaged.data(), words.size() * sizeof(std::uint32_t));
    const bool passes = check_spirv(words, 1).has_value();
    if (i % 400 == 0) {
      EXPECT_LE(make(words).has_value(), passes);
    }
  }
}

}  // namespace
}  // namespace shunt
