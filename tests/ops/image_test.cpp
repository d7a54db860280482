// Convolution, pooling and resizing, each against an independent formula over plain arrays.
#include <algorithm>
#include <cmath>

#include "ops/bench_layers.h"
#include "ops/each_target.h"
#include "ops/kernel_case.h"

namespace shunt::test::image_tests {
namespace {

const CpuKernel& scalar(std::string_view family) { return *cpu_family(family).scalar; }
const CpuKernel& simd(std::string_view family) { return *cpu_family(family).simd; }

// An image indexed by four indices; positions outside are absent.
class Image {
 public:
  explicit Image(const Tensor& tensor) : shape_(tensor.operand.shape), values_(values_of(tensor)) {}
  [[nodiscard]] bool has(long row, long column) const {
    return row >= 0 && column >= 0 && row < long{shape_[2]} && column < long{shape_[3]};
  }
  [[nodiscard]] double at(std::size_t image, std::size_t channel, long row, long column) const {
    return values_[((image * shape_[1] + channel) * shape_[2] + static_cast<std::size_t>(row)) * shape_[3] +
                   static_cast<std::size_t>(column)];
  }

 private:
  Shape shape_;
  std::vector<double> values_;
};

struct Convolution {
  Shape x{1, 1, 5, 5};
  Shape weight{1, 1, 3, 3};
  Shape stride{1, 1};
  Shape padding{0, 0};
  Shape dilation{1, 1};
  std::uint32_t groups = 1;
  bool bias = false;

  [[nodiscard]] Attributes attributes() const {
    return {{Attr::stride, stride}, {Attr::padding, padding}, {Attr::dilation, dilation}, {Attr::groups, groups}};
  }
};

// `shape`: the result's.
std::vector<double> formula(const Convolution& use, const Shape& shape, const Tensor& x, const Tensor& weight,
                            const std::vector<double>& bias) {
  const Image image(x);
  const Image filter(weight);
  std::vector<double> result;
  for (std::size_t n = 0; n < shape[0]; ++n)
    for (std::size_t f = 0; f < shape[1]; ++f)
      for (long y = 0; y < long{shape[2]}; ++y)
        for (long column = 0; column < long{shape[3]}; ++column) {
          double sum = use.bias ? bias[f] : 0;
          const std::size_t group = f / (shape[1] / use.groups);
          for (std::size_t c = 0; c < use.weight[1]; ++c)
            for (long i = 0; i < long{use.weight[2]}; ++i)
              for (long j = 0; j < long{use.weight[3]}; ++j) {
                const long row = y * use.stride[0] + i * use.dilation[0] - use.padding[0];
                const long at = column * use.stride[1] + j * use.dilation[1] - use.padding[1];
                if (image.has(row, at)) sum += filter.at(f, c, i, j) * image.at(n, group * use.weight[1] + c, row, at);
              }
          result.push_back(sum);
        }
  return result;
}

std::vector<Convolution> convolutions() {
  return {{},
          {.x = {2, 3, 9, 20}, .weight = {5, 3, 3, 3}, .padding = {1, 1}, .bias = true},
          {.x = {1, 8, 7, 33}, .weight = {6, 4, 1, 1}, .groups = 2},
          {.x = {2, 6, 11, 13}, .weight = {6, 1, 3, 2}, .stride = {2, 3}, .padding = {2, 1}, .groups = 6},
          {.x = {1, 2, 12, 40}, .weight = {9, 2, 3, 5}, .padding = {0, 3, 2, 1}, .dilation = {2, 3}, .bias = true},
          {.x = {1, 1, 1, 1}, .weight = {2, 1, 3, 3}, .padding = {1, 1}, .bias = true},
          {.x = {1, 1, 2, 3}, .weight = {1, 1, 1, 7}, .padding = {0, 9}},
          {.x = {0, 2, 5, 5}, .weight = {3, 2, 3, 3}},
          // More than one block of products, filters, pixels and rows; a kernel with a wide reach.
          {.x = {1, 30, 5, 7}, .weight = {98, 30, 3, 3}, .padding = {1, 1}, .bias = true},
          {.x = {1, 2, 26, 25}, .weight = {6, 2, 3, 3}, .padding = {1, 1}},
          {.x = {2, 3, 5, 9}, .weight = {7, 3, 1, 1}, .bias = true},
          {.x = {1, 2, 100, 9}, .weight = {4, 1, 3, 3}, .stride = {1, 2}, .padding = {1, 1}, .groups = 2},
          {.x = {1, 2, 3, 80}, .weight = {2, 1, 2, 3}, .stride = {1, 4}, .dilation = {1, 30}, .groups = 2},
          {.x = {1, 3, 5, 45}, .weight = {3, 1, 3, 3}, .padding = {1, 1}, .groups = 3, .bias = true},
          {.x = {1, 2, 9, 45}, .weight = {2, 1, 3, 3}, .stride = {2, 2}, .padding = {1, 1}, .groups = 2},
          // Batches of some rows, and of some columns, of which the last have fewer.
          {.x = {1, 4, 37, 30}, .weight = {19, 4, 3, 3}, .padding = {1, 1}, .bias = true},
          {.x = {1, 2, 3, 1100}, .weight = {7, 2, 3, 3}, .padding = {1, 1}},
          {.x = {1, 600, 1, 301}, .weight = {6, 600, 1, 3}, .padding = {0, 1}},
          {.x = {2, 5, 26, 25}, .weight = {20, 5, 1, 1}, .bias = true},
          // Elements of x that are packed while the first filters multiply them, in two blocks of products and filters.
          {.x = {1, 300, 8, 9}, .weight = {100, 300, 1, 1}, .bias = true},
          // Filters in lanes: several panels, the last of which is not full, and several blocks of products; pixels
          // that are packed, and more than one batch of them.
          {.x = {1, 300, 7, 7}, .weight = {75, 300, 1, 1}, .bias = true},
          {.x = {2, 32, 13, 13}, .weight = {48, 32, 3, 3}, .stride = {2, 2}, .padding = {1, 1}},
          {.x = {1, 5, 3, 520}, .weight = {64, 5, 1, 1}, .bias = true},
          // The one row of the result is padding.
          {.x = {1, 40, 1, 7}, .weight = {64, 40, 1, 1}, .stride = {3, 1}, .padding = {1, 0, 0, 0}, .bias = true},
          {.x = {1, 2, 3, 1100}, .weight = {33, 2, 3, 3}, .padding = {1, 1}, .bias = true},
          {.x = {2, 34, 3, 3}, .weight = {80, 17, 3, 3}, .padding = {1, 1}, .groups = 2},
          // Planes for each phase of a stride, and for each tap.
          {.x = {1, 3, 30, 31}, .weight = {14, 3, 7, 7}, .stride = {2, 2}, .padding = {3, 3}, .bias = true},
          {.x = {1, 6, 9, 33}, .weight = {8, 6, 1, 1}, .stride = {2, 2}},
          {.x = {1, 2, 3, 2100}, .weight = {8, 2, 3, 3}, .stride = {2, 2}, .padding = {1, 1}},
          {.x = {1, 2, 4, 9}, .weight = {8, 2, 3, 3}, .stride = {2, 2}, .padding = {1, 6}},
          {.x = {1, 2, 30, 40}, .weight = {6, 2, 2, 3}, .padding = {2, 5}, .dilation = {9, 11}},
          {.x = {1, 2, 40, 60}, .weight = {6, 2, 2, 3}, .stride = {2, 3}, .padding = {1, 4}, .dilation = {9, 11}}};
}

TEST(Conv2d, IsTheFormulaOnEveryTarget) {
  for (const Convolution& use : convolutions())
    for (const DType dtype : {DType::F32, DType::F16}) {
      const Tensor x = random_tensor(dtype, use.x, 1);
      const Tensor weight = random_tensor(dtype == DType::F32 ? DType::F32 : DType::BF16, use.weight, 2);
      const Tensor bias = random_tensor(DType::F32, {use.weight[0]}, 3);
      KernelCase call{Op::conv2d, {&x, &weight}, use.attributes()};
      if (use.bias) call.inputs.push_back(&bias);
      SCOPED_TRACE(call.text());
      const Shape shape = run_kernel(scalar("conv2d"), call, 1).output.operand.shape;
      const std::vector<double> expected = formula(use, shape, x, weight, values_of(bias));
      for_each_simd_target([&] {
        for (const CpuKernel* kernel : {&scalar("conv2d"), &simd("conv2d")}) {
          const KernelResult result = run_kernel(*kernel, call, 1);
          ASSERT_EQ(result.declined, "");
          EXPECT_LE(nmse(values_of(result.output), expected),
                    dtype == DType::F32 ? info_of(Op::conv2d).tolerance : 1e-6);
          EXPECT_EQ(run_kernel(*kernel, call, 3).output.bytes, result.output.bytes);
        }
      });
    }
}

TEST(Conv2d, LayersThatBenchmarksMeasureHaveTheShapesOfTheRule) {
  for (const BenchLayer& layer : bench_layers(Op::conv2d)) {
    const BenchOperands operands(layer.use);
    const auto result = infer(Op::conv2d, operands.call().inputs, layer.use.attributes);
    ASSERT_TRUE(result.has_value()) << layer.name << ": " << result.error().message;
    EXPECT_EQ(result->operand.shape, layer.use.output.shape) << layer.name;
  }
}

TEST(Conv2d, StridesAndBucketsAreKept) {
  const Tensor x = bucket(permuted(random_tensor(DType::F32, {4, 9, 7, 3}, 1), {0, 3, 1, 2}));
  const Tensor weight = permuted(random_tensor(DType::F32, {3, 2, 3, 5}, 2), {3, 0, 1, 2});
  const Convolution use{.x = {4, 3, 9, 7}, .weight = {5, 3, 2, 3}};
  for_each_simd_target([&] {
    for (const CpuKernel* kernel : {&scalar("conv2d"), &simd("conv2d")})
      for (const std::uint32_t tokens : {0U, 3U, 4U}) {
        const KernelResult result =
            run_kernel(*kernel, {Op::conv2d, {&x, &weight}, use.attributes(), {.tokens = tokens}}, 2);
        EXPECT_TRUE(rows_are_untouched(result.output, tokens));
        std::vector<double> expected = formula(use, result.output.operand.shape, x, weight, {});
        expected.resize(expected.size() / 4 * tokens);
        EXPECT_LE(nmse(leading_values(result.output, tokens), expected), 1e-10);
      }
  });
}

std::string refusal(Op op, const std::vector<Shape>& shapes, const Attributes& attributes) {
  std::vector<Operand> operands;
  for (const Shape& shape : shapes) operands.push_back(Operand::contiguous(DType::F32, shape));
  std::vector<const Operand*> inputs;
  for (const Operand& operand : operands) inputs.push_back(&operand);
  const auto result = infer(op, inputs, attributes);
  return result ? "" : result.error().message;
}

TEST(Conv2d, WhatDoesNotFitIsAnError) {
  EXPECT_EQ(refusal(Op::conv2d, {{1, 4, 5, 5}, {6, 3, 1, 1}}, {}),
            "conv2d: 1 groups do not divide the channels of x F32[1, 4, 5, 5] and weight F32[6, 3, 1, 1]");
  EXPECT_EQ(refusal(Op::conv2d, {{1, 1, 2, 5}, {1, 1, 3, 3}}, {}),
            "conv2d: a kernel [3, 3] has 0 places on x F32[1, 1, 2, 5] with padding [0, 0]");
  EXPECT_EQ(refusal(Op::conv2d, {{1, 1, 5, 5}, {1, 1, 3, 3}}, {{Attr::stride, Shape{0, 1}}}),
            "conv2d: stride [0, 1] must be two numbers above 0");
  EXPECT_EQ(refusal(Op::conv2d, {{1, 1, 5, 5}, {1, 1, 3, 3}}, {{Attr::padding, Shape{1}}}),
            "conv2d: padding [1] must be two or four numbers");
  EXPECT_EQ(refusal(Op::max_pool2d, {{1, 1, 5, 5}}, {{Attr::kernel, Shape{2, 2}}, {Attr::padding, Shape{2, 0}}}),
            "max_pool2d: padding [2, 0] must be less than the kernel [2, 2]");
  EXPECT_EQ(refusal(Op::avg_pool2d, {{1, 1, 5, 5}}, {}), "avg_pool2d: kernel [] must be two numbers above 0");
  EXPECT_EQ(refusal(Op::resize_nearest, {{1, 1, 5, 5}}, {{Attr::size, Shape{4}}}),
            "resize_nearest: size [4] must be two numbers above 0");
}

TEST(Pool2d, TakesTheLargestAndTheMeanOfWhatIsThere) {
  struct Pool {
    Shape x;
    Shape kernel;
    Shape stride{1, 1};
    Shape padding{0, 0};
  };
  const Pool pools[] = {{{1, 1, 4, 4}, {2, 2}, {2, 2}},
                        {{2, 3, 7, 9}, {3, 2}, {2, 1}, {1, 1}},
                        {{1, 2, 5, 6}, {4, 3}, {3, 2}, {0, 2, 3, 0}},
                        {{1, 1, 1, 1}, {3, 3}, {1, 1}, {1, 1}},
                        {{0, 1, 4, 4}, {2, 2}}};
  for (const Pool& pool : pools)
    for (const Op op : {Op::max_pool2d, Op::avg_pool2d})
      for (const std::uint32_t threads : {1U, 3U}) {
        const Tensor x = random_tensor(DType::F32, pool.x, 4);
        const KernelCase use{
            op, {&x}, {{Attr::kernel, pool.kernel}, {Attr::stride, pool.stride}, {Attr::padding, pool.padding}}};
        SCOPED_TRACE(use.text());
        const Image image(x);
        const Shape shape = run_kernel(scalar("pool2d"), use).output.operand.shape;
        std::vector<double> expected;
        for (std::size_t plane = 0; plane < std::size_t{shape[0]} * shape[1]; ++plane)
          for (long y = 0; y < long{shape[2]}; ++y)
            for (long column = 0; column < long{shape[3]}; ++column) {
              std::vector<double> there;
              for (long i = 0; i < long{pool.kernel[0]}; ++i)
                for (long j = 0; j < long{pool.kernel[1]}; ++j) {
                  const long row = y * pool.stride[0] + i - pool.padding[0];
                  const long at = column * pool.stride[1] + j - pool.padding[1];
                  if (image.has(row, at)) there.push_back(image.at(plane / shape[1], plane % shape[1], row, at));
                }
              double sum = 0;
              for (const double value : there) sum += value;
              expected.push_back(op == Op::max_pool2d ? std::ranges::max(there)
                                                      : sum / static_cast<double>(there.size()));
            }
        EXPECT_LE(nmse(values_of(run_kernel(scalar("pool2d"), use, threads).output), expected), 1e-14);
        for_each_simd_target([&] {
          EXPECT_LE(nmse(values_of(run_kernel(simd("pool2d"), use, threads).output), expected), info_of(op).tolerance);
        });
      }
}

TEST(Pool2d, NanComesOutWhereItIsCovered) {
  std::vector<double> values(16, 1);
  values[5] = kNan;
  const Tensor x = tensor_of(DType::F32, {1, 1, 4, 4}, values);
  for_each_simd_target([&] {
    for (const Op op : {Op::max_pool2d, Op::avg_pool2d})
      for (const CpuKernel* kernel : {&scalar("pool2d"), &simd("pool2d")}) {
        const KernelCase use{op, {&x}, {{Attr::kernel, Shape{2, 2}}, {Attr::stride, Shape{2, 2}}}};
        const std::vector<double> found = values_of(run_kernel(*kernel, use).output);
        EXPECT_TRUE(std::isnan(found[0]));
        for (std::size_t i = 1; i < 4; ++i) EXPECT_EQ(found[i], 1);
      }
  });
}

TEST(Pool2d, StridesAndBucketsAreKept) {
  const Tensor x = bucket(permuted(random_tensor(DType::F16, {4, 9, 7, 3}, 1), {0, 3, 1, 2}));
  const Attributes attributes{{Attr::kernel, Shape{3, 2}}, {Attr::padding, Shape{1, 1}}};
  for_each_simd_target([&] {
    for (const std::uint32_t tokens : {0U, 3U, 4U}) {
      const KernelCase use{Op::max_pool2d, {&x}, attributes, {.tokens = tokens}};
      const KernelResult result = run_kernel(simd("pool2d"), use, 2);
      EXPECT_TRUE(rows_are_untouched(result.output, tokens));
      EXPECT_EQ(result.output.bytes, run_kernel(scalar("pool2d"), use, 3).output.bytes);
    }
  });
}

void expect_resized(Op op, const Shape& shape, const std::vector<double>& values, const Shape& size,
                    const std::vector<double>& expected) {
  const Tensor x = tensor_of(DType::F32, shape, values);
  for (const CpuKernel* kernel : {&scalar("resize"), &simd("resize")})
    EXPECT_EQ(values_of(run_kernel(*kernel, {op, {&x}, {{Attr::size, size}}}, 2).output), expected);
}

// The examples of the ONNX operator Resize (https://onnx.ai/onnx/operators/onnx__Resize.html).
TEST(Resize, IsAsOnnxSays) {
  expect_resized(Op::resize_nearest, {1, 1, 2, 2}, {1, 2, 3, 4}, {4, 6},
                 {1, 1, 1, 2, 2, 2, 1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 4, 4, 3, 3, 3, 4, 4, 4});
  expect_resized(Op::resize_nearest, {1, 1, 2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}, {1, 2}, {1, 3});
  expect_resized(Op::resize_bilinear, {1, 1, 2, 2}, {1, 2, 3, 4}, {4, 4},
                 {1, 1.25, 1.75, 2, 1.5, 1.75, 2.25, 2.5, 2.5, 2.75, 3.25, 3.5, 3, 3.25, 3.75, 4});
}

TEST(Resize, AnyRatioIsTheFormula) {
  for (const Shape& size : {Shape{1, 1}, Shape{3, 17}, Shape{13, 5}, Shape{6, 7}, Shape{40, 2}}) {
    const Tensor x = bucket(permuted(random_tensor(DType::F32, {3, 6, 7, 2}, 5), {0, 3, 1, 2}));
    const Image image(x);
    const auto place = [](std::size_t i, std::uint32_t in, std::uint32_t out) {
      return (static_cast<double>(i) + 0.5) * in / out - 0.5;
    };
    std::vector<double> nearest;
    std::vector<double> linear;
    for (std::size_t plane = 0; plane < 4; ++plane)
      for (std::size_t i = 0; i < size[0]; ++i)
        for (std::size_t j = 0; j < size[1]; ++j) {
          const double y = std::clamp(place(i, 6, size[0]), 0.0, 5.0);
          const double column = std::clamp(place(j, 7, size[1]), 0.0, 6.0);
          const auto at = [&](double row, double col) {
            return image.at(plane / 2, plane % 2, std::min(5L, std::lround(row)), std::min(6L, std::lround(col)));
          };
          nearest.push_back(at(std::ceil(y - 0.5 - 1e-9), std::ceil(column - 0.5 - 1e-9)));
          const double dy = y - std::floor(y);
          const double dx = column - std::floor(column);
          const double top =
              at(std::floor(y), std::floor(column)) * (1 - dx) + at(std::floor(y), std::floor(column) + 1) * dx;
          const double bottom =
              at(std::floor(y) + 1, std::floor(column)) * (1 - dx) + at(std::floor(y) + 1, std::floor(column) + 1) * dx;
          linear.push_back(top * (1 - dy) + bottom * dy);
        }
    for (const auto& [op, expected] : {std::pair{Op::resize_nearest, &nearest}, {Op::resize_bilinear, &linear}}) {
      const KernelCase use{op, {&x}, {{Attr::size, size}}, {.tokens = 2}};
      for (const CpuKernel* kernel : {&scalar("resize"), &simd("resize")}) {
        const KernelResult result = run_kernel(*kernel, use, 3);
        EXPECT_TRUE(rows_are_untouched(result.output, 2));
        EXPECT_LE(nmse(leading_values(result.output, 2), *expected), 1e-12) << to_string(size);
      }
    }
  }
}

}  // namespace
}  // namespace shunt::test::image_tests
