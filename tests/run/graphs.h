// Graphs and devices for the tests of planning and running.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "devices/cpu/device.h"
#include "plan/planner.h"
#include "run/executable.h"

namespace shunt::test {

// CPU devices with separate memory pools: transfers between them are copies.
struct SeparateDevices {
  std::shared_ptr<cpu::Engine> engine = std::make_shared<cpu::Engine>(2, std::span<const std::uint32_t>());
  trace::Recorder recorder;
  std::vector<std::unique_ptr<Device>> owned;
  std::vector<Device*> devices;

  explicit SeparateDevices(std::size_t count, bool shared_pool = false,
                           cpu::KernelSet kernels = cpu::KernelSet::scalar) {
    for (std::size_t i = 0; i < count; ++i) {
      owned.push_back(cpu::make_cpu_device({.kernels = kernels,
                                            .engine = engine,
                                            .recorder = &recorder,
                                            .memory_pool = shared_pool ? "host" : "pool" + std::to_string(i),
                                            .id = "test:" + std::to_string(i)}));
      devices.push_back(owned.back().get());
    }
    recorder.set_enabled(true);
  }
};

// A chain with side branches over x [rows, 16]: many values of different lifetimes.
inline Graph branching_graph(std::uint32_t rows, std::uint32_t depth) {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {rows, 16}, Extent::tokens);
  Tensor main = x;
  Tensor side = builder.scale(x, {{Attr::factor, 0.5F}});
  for (std::uint32_t i = 0; i < depth; ++i) {
    const Tensor next = builder.add(builder.silu(main), side);
    side = builder.sub(builder.mul(main, side), builder.rms_norm(next));
    main = next;
  }
  builder.output(builder.add(main, side));
  builder.output(side);
  auto graph = std::move(builder).finish();
  EXPECT_TRUE(graph.has_value());
  return std::move(*graph);
}

// A chain of linear ops, each with its own weight [rows, rows].
inline constexpr std::uint32_t kWeightRows = 256;
inline constexpr std::uint64_t kWeightBytes = std::uint64_t{kWeightRows} * kWeightRows * sizeof(float);
inline Graph chain_of_linears(std::uint32_t count, std::uint32_t rows = kWeightRows) {
  GraphBuilder builder;
  Tensor x = builder.input("x", DType::F32, {1, rows});
  for (std::uint32_t i = 0; i < count; ++i)
    x = builder.linear(x, builder.weight("w" + std::to_string(i), DType::F32, {rows, rows}));
  builder.output(x);
  return *std::move(builder).finish();
}

// Random ops on random earlier results, some with a weight.
inline Graph random_graph(std::mt19937& random) {
  GraphBuilder builder;
  std::vector<Tensor> made = {builder.input("x", DType::F32, {64, kWeightRows})};
  const std::uint32_t ops = 4 + static_cast<std::uint32_t>(random() % 12);
  for (std::uint32_t i = 0; i < ops; ++i) {
    const Tensor x = made[random() % made.size()];
    const Tensor y = made[random() % made.size()];
    switch (random() % 4) {
      case 0:
        made.push_back(builder.add(x, y));
        break;
      case 1:
        made.push_back(builder.rms_norm(x));
        break;
      default:
        made.push_back(
            builder.linear(x, builder.weight("w" + std::to_string(i), DType::F32, {kWeightRows, kWeightRows})));
    }
  }
  Tensor sum = made.back();
  for (const Tensor& each : made) sum = builder.add(sum, each);
  builder.output(sum);
  return *std::move(builder).finish();
}

}  // namespace shunt::test
