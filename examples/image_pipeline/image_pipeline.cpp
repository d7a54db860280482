// Edges of a picture as a graph: blur and slopes by convolution, their size, the strongest in each 2 x 2 by pooling,
// then resized to a thumbnail and back. Reads a binary PPM or draws a picture of its own, and writes the edges as a
// PGM.
//
//   image_pipeline [IN.ppm|-] [OUT.pgm|-] [DEVICES]
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

#include "shunt/computation.h"

namespace {

using namespace shunt;

struct Picture {
  std::uint32_t height = 0;
  std::uint32_t width = 0;
  std::vector<float> planes;  // [3, height, width], from 0 to 1
};

// A disc on a slope of colours.
Picture drawn() {
  Picture picture{.height = 96, .width = 128, .planes = {}};
  for (std::uint32_t channel = 0; channel < 3; ++channel)
    for (std::uint32_t y = 0; y < picture.height; ++y)
      for (std::uint32_t x = 0; x < picture.width; ++x) {
        const float away = std::hypot(static_cast<float>(y) - 40, static_cast<float>(x) - 70);
        picture.planes.push_back(away < 25 ? 0.9F - 0.2F * static_cast<float>(channel)
                                           : static_cast<float>(x + y) / 400 + 0.1F * static_cast<float>(channel));
      }
  return picture;
}

Result<Picture> read_ppm(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string magic;
  Picture picture;
  std::uint32_t most = 0;
  file >> magic >> picture.width >> picture.height >> most;
  if (!file || magic != "P6" || most != 255 || picture.width == 0 || picture.height == 0 ||
      std::uint64_t{picture.width} * picture.height > (1U << 26U))
    return fail(Code::invalid, fmt::format("{} is no binary PPM with 8 bits a colour", path));
  file.get();
  std::vector<char> pixels(std::size_t{3} * picture.width * picture.height);
  if (!file.read(pixels.data(), static_cast<std::streamsize>(pixels.size())))
    return fail(Code::io, fmt::format("{} ends early", path));
  picture.planes.resize(pixels.size());
  const std::size_t plane = pixels.size() / 3;
  for (std::size_t i = 0; i < pixels.size(); ++i)
    picture.planes[i % 3 * plane + i / 3] = static_cast<float>(static_cast<unsigned char>(pixels[i])) / 255;
  return picture;
}

Status write_pgm(const std::string& path, std::span<const float> values, std::uint32_t height, std::uint32_t width) {
  std::ofstream file(path, std::ios::binary);
  file << "P5\n" << width << ' ' << height << "\n255\n";
  for (const float value : values) file.put(static_cast<char>(std::lround(std::clamp(value, 0.0F, 1.0F) * 255)));
  if (!file.flush()) return fail(Code::io, fmt::format("{} cannot be written", path));
  return {};
}

struct Filters {
  std::vector<float> grey{0.299F, 0.587F, 0.114F};                                        // [1, 3, 1, 1]
  std::vector<float> slopes{-1, 0, 1, -2, 0, 2, -1, 0, 1, -1, -2, -1, 0, 0, 0, 1, 2, 1};  // [2, 1, 3, 3], Sobel's
  MemoryWeights weights;

  Status add() {
    SHUNT_TRY(weights.add("grey", DType::F32, {1, 3, 1, 1}, std::as_bytes(std::span(grey))));
    return weights.add("slopes", DType::F32, {2, 1, 3, 3}, std::as_bytes(std::span(slopes)));
  }
};

// Outputs: edges [1, 1, height, width], and the strongest of each 2 x 2, made small and large again.
Result<Graph> build(std::uint32_t height, std::uint32_t width) {
  GraphBuilder graph;
  const Tensor picture = graph.input("picture", DType::F32, {1, 3, height, width});
  const Tensor grey = graph.conv2d(picture, graph.weight("grey", DType::F32, {1, 3, 1, 1}), {});
  const Tensor slopes =
      graph.conv2d(grey, graph.weight("slopes", DType::F32, {2, 1, 3, 3}), {}, {{Attr::padding, Shape{1, 1}}});
  const auto squared = [&](std::uint32_t channel) {
    return graph.square(graph.copy(graph.slice(slopes, {{Attr::axis, 1U}, {Attr::begin, channel}, {Attr::count, 1U}})));
  };
  const Tensor edges = graph.sqrt(graph.add(squared(0), squared(1)));
  const Tensor strongest = graph.max_pool2d(edges, {{Attr::kernel, Shape{2, 2}}, {Attr::stride, Shape{2, 2}}});
  const Tensor thumbnail = graph.resize_bilinear(strongest, {{Attr::size, Shape{height / 8 + 1, width / 8 + 1}}});
  graph.output(edges);
  graph.output(graph.resize_bilinear(thumbnail, {{Attr::size, Shape{height, width}}}));
  return std::move(graph).finish();
}

// The largest difference of the edges from the same computation in plain loops.
float difference(const Picture& picture, const Filters& filters, std::span<const float> edges) {
  const auto grey = [&](std::int64_t y, std::int64_t x) {
    if (y < 0 || x < 0 || y >= picture.height || x >= picture.width) return 0.0F;
    const auto at = static_cast<std::size_t>(y * picture.width + x);
    const std::size_t plane = std::size_t{picture.height} * picture.width;
    float sum = 0;
    for (std::size_t channel = 0; channel < 3; ++channel)
      sum += filters.grey[channel] * picture.planes[channel * plane + at];
    return sum;
  };
  float largest = 0;
  for (std::int64_t y = 0; y < picture.height; ++y)
    for (std::int64_t x = 0; x < picture.width; ++x) {
      float slope[2] = {0, 0};
      for (std::size_t i = 0; i < 18; ++i)
        slope[i / 9] += filters.slopes[i] *
                        grey(y + static_cast<std::int64_t>(i % 9 / 3) - 1, x + static_cast<std::int64_t>(i % 3) - 1);
      const float expected = std::hypot(slope[0], slope[1]);
      largest = std::fmax(largest, std::fabs(edges[static_cast<std::size_t>(y * picture.width + x)] - expected));
    }
  return largest;
}

Status run(const std::string& in, const std::string& out, const std::string& devices) {
  Picture picture = drawn();
  if (in != "-") {
    SHUNT_TRY_ASSIGN(picture, read_ppm(in));
  }
  Filters filters;
  SHUNT_TRY(filters.add());
  SHUNT_TRY_ASSIGN(const auto runtime, Runtime::create({.devices = devices}));
  SHUNT_TRY_ASSIGN(Graph graph, build(picture.height, picture.width));
  SHUNT_TRY_ASSIGN(const auto computation, Computation::create(std::move(graph), *runtime, &filters.weights));
  SHUNT_TRY(computation->write("picture", std::as_bytes(std::span(picture.planes))));
  SHUNT_TRY(computation->run());
  std::vector<float> edges(picture.planes.size() / 3);
  SHUNT_TRY(computation->read(0, 0, std::as_writable_bytes(std::span(edges))));
  std::vector<float> blurred(edges.size());
  SHUNT_TRY(computation->read(1, 0, std::as_writable_bytes(std::span(blurred))));
  if (out != "-") SHUNT_TRY(write_pgm(out, edges, picture.height, picture.width));
  const float largest = difference(picture, filters, edges);
  fmt::print("{} x {} pixels; strongest edge {:.3f}, in the thumbnail {:.3f}\n", picture.width, picture.height,
             std::ranges::max(edges), std::ranges::max(blurred));
  fmt::print("largest difference from plain loops: {:.1e}\n", largest);
  if (!(largest < 1e-4F)) return fail(Code::internal, "that is too much");
  return {};
}

}  // namespace

int main(int count, char** arguments) {
  const auto argument = [&](int index, const char* fallback) {
    return std::string(count > index ? arguments[index] : fallback);
  };
  const Status status = run(argument(1, "-"), argument(2, "-"), argument(3, ""));
  if (!status) std::fprintf(stderr, "image_pipeline: %s\n", status.error().message.c_str());
  return status ? 0 : 1;
}
