// An op of your own: the median of 3 x 3 pixels, which takes specks out of a picture and keeps its edges, as GLSL for
// Vulkan and as a function for the processor, between ops that Shunt has.
//
//   custom_kernel [DEVICES]
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "shunt/computation.h"
#include "shunt/kernel.h"

namespace {

using namespace shunt;

constexpr std::uint32_t kHeight = 96;
constexpr std::uint32_t kWidth = 128;

constexpr const char* kMedian = R"(
layout(local_size_x = 64) in;
SHUNT_INPUT(0, F32, picture)
SHUNT_OUTPUT(F32, cleaned)
void main() {
  uint i = shunt_item();
  if (i >= shunt_items()) return;
  int height = int(picture_extent(0));
  int width = int(picture_extent(1));
  int y = int(i) / width;
  int x = int(i) % width;
  float around[9];
  for (int k = 0; k < 9; ++k)
    around[k] = picture(uint(clamp(y + k / 3 - 1, 0, height - 1) * width + clamp(x + k % 3 - 1, 0, width - 1)));
  for (int k = 0; k < 5; ++k)  // the five smallest in order
    for (int j = k + 1; j < 9; ++j) {
      float low = min(around[k], around[j]);
      around[j] = max(around[k], around[j]);
      around[k] = low;
    }
  put_cleaned(i, around[4]);
}
)";

// The same for pixels begin .. end - 1.
Status median(const KernelWork& work) {
  const auto picture = work.input<float>(0);
  const int height = static_cast<int>(work.result.shape[0]);
  const int width = static_cast<int>(work.result.shape[1]);
  for (std::uint64_t i = work.begin; i < work.end; ++i) {
    const int y = static_cast<int>(i) / width;
    const int x = static_cast<int>(i) % width;
    std::array<float, 9> around{};
    for (int k = 0; k < 9; ++k)
      around[static_cast<std::size_t>(k)] = picture[static_cast<std::size_t>(
          std::clamp(y + k / 3 - 1, 0, height - 1) * width + std::clamp(x + k % 3 - 1, 0, width - 1))];
    std::ranges::nth_element(around, around.begin() + 4);
    work.output<float>()[i] = around[4];
  }
  return {};
}

Result<std::shared_ptr<const UserKernel>> median_kernel() {
  KernelDescription description{.name = "median",
                                .glsl = kMedian,
                                .result = [](const KernelUse& use) -> Result<Operand> {
                                  if (use.inputs[0].dtype != DType::F32 || use.inputs[0].shape.rank() != 2)
                                    return fail(Code::invalid, "a picture is F32[height, width]");
                                  return Operand::contiguous(DType::F32, use.inputs[0].shape);
                                },
                                .cpu = median,
                                .flops_per_item = 60};
  auto kernel = make_kernel(description);
  if (kernel || kernel.error().code != Code::io) return kernel;
  fmt::print("without GLSL: {}\n", kernel.error().message);
  description.glsl.clear();
  return make_kernel(description);
}

// Twice as bright, cleaned, and back.
Result<Graph> build(const std::shared_ptr<const UserKernel>& kernel) {
  GraphBuilder graph;
  const Tensor picture = graph.input("picture", DType::F32, {kHeight, kWidth});
  const Tensor cleaned = graph.custom(kernel, {graph.scale(picture, {{Attr::factor, 2.0F}})});
  graph.output(graph.scale(cleaned, {{Attr::factor, 0.5F}}));
  return std::move(graph).finish();
}

Result<std::vector<float>> clean(const std::string& devices, const std::shared_ptr<const UserKernel>& kernel,
                                 const std::vector<float>& picture) {
  SHUNT_TRY_ASSIGN(const auto runtime, Runtime::create({.devices = devices}));
  SHUNT_TRY_ASSIGN(Graph graph, build(kernel));
  SHUNT_TRY_ASSIGN(const auto computation, Computation::create(std::move(graph), *runtime, nullptr));
  SHUNT_TRY(computation->write("picture", std::as_bytes(std::span(picture))));
  SHUNT_TRY(computation->run());
  std::vector<float> cleaned(picture.size());
  SHUNT_TRY(computation->read(0, 0, std::as_writable_bytes(std::span(cleaned))));
  const std::string plan = computation->explain();
  const std::size_t line = plan.find("  median.");
  fmt::print("{}\n", plan.substr(line, plan.find('\n', line) - line));
  return cleaned;
}

float mean_difference(const std::vector<float>& a, const std::vector<float>& b) {
  float sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += std::fabs(a[i] - b[i]);
  return sum / static_cast<float>(a.size());
}

Status run(const std::string& devices) {
  // A disc, and the same with every 17th pixel black or white.
  std::vector<float> drawn;
  for (std::uint32_t y = 0; y < kHeight; ++y)
    for (std::uint32_t x = 0; x < kWidth; ++x)
      drawn.push_back(std::hypot(static_cast<float>(y) - 40, static_cast<float>(x) - 70) < 25 ? 0.8F : 0.3F);
  std::vector<float> specked = drawn;
  for (std::size_t i = 0; i < specked.size(); i += 17) specked[i] = static_cast<float>(i / 17 % 2);
  SHUNT_TRY_ASSIGN(const auto kernel, median_kernel());
  SHUNT_TRY_ASSIGN(const std::vector<float> there, clean(devices, kernel, specked));
  SHUNT_TRY_ASSIGN(const std::vector<float> here, clean("cpu:simd", kernel, specked));
  fmt::print("mean difference from the picture without specks: {:.4f} before, {:.4f} after\n",
             mean_difference(specked, drawn), mean_difference(there, drawn));
  float largest = 0;
  for (std::size_t i = 0; i < here.size(); ++i) largest = std::fmax(largest, std::fabs(there[i] - here[i]));
  fmt::print("largest difference from the function on the processor: {:.1e}\n", largest);
  if (largest != 0) return fail(Code::internal, "a median is one of its pixels: there is nothing to round");
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  const Status status = run(count > 1 ? arguments[1] : "");
  if (!status) std::fprintf(stderr, "custom_kernel: %s\n", status.error().message.c_str());
  return status ? 0 : 1;
}
