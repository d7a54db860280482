#include "ops/conv2d/conv2d_layers.h"

namespace shunt {
namespace {

struct LayerSizes {
  std::string_view name;
  std::uint32_t channels;
  std::uint32_t filters;
  std::uint32_t groups;
  std::uint32_t pixels;
  std::uint32_t kernel;
  std::uint32_t stride;
};

constexpr LayerSizes kLayers[] = {
#define SHUNT_LAYER(name, channels, filters, groups, pixels, kernel, stride) \
  {#name, channels, filters, groups, pixels, kernel, stride},
#include "ops/conv2d/conv2d_layers.def"
};

BenchCase use_of(const LayerSizes& sizes) {
  const OpSizes no_model;
  BenchBuilder builder(Op::conv2d, no_model, 1, DType::F32);
  const std::uint32_t padding = (sizes.kernel - 1) / 2;
  const std::uint32_t places = (sizes.pixels + 2 * padding - sizes.kernel) / sizes.stride + 1;
  builder.add_values({1, sizes.channels, sizes.pixels, sizes.pixels});
  builder.add(
      BenchBuilder::weight(DType::F32, {sizes.filters, sizes.channels / sizes.groups, sizes.kernel, sizes.kernel}));
  builder.set(Attr::groups, sizes.groups);
  builder.set(Attr::padding, Shape{padding, padding});
  builder.set(Attr::stride, Shape{sizes.stride, sizes.stride});
  BenchCase use = std::move(builder).finish();
  use.output = BenchBuilder::values({1, sizes.filters, places, places});
  return use;
}

}  // namespace

std::vector<BenchLayer> conv_layers() {
  std::vector<BenchLayer> layers;
  for (const LayerSizes& sizes : kLayers) layers.push_back({sizes.name, use_of(sizes)});
  return layers;
}

}  // namespace shunt
