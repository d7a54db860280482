// Machines and inputs for the tests of array functions.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "devices/cpu/device.h"
#include "devices/discovery/registry.h"
#include "devices/sim/device.h"
#include "ops/op.h"
#include "run/opened_devices.h"
#include "shunt/arrays.h"
#include "trace/recorder.h"

namespace shunt {

using Floats = std::vector<float>;

// Simulated devices on a virtual clock, and behind them the CPU.
struct ArraysMachine {
  std::shared_ptr<sim::VirtualClock> clock = std::make_shared<sim::VirtualClock>();
  std::unique_ptr<Runtime> runtime;

  explicit ArraysMachine(const std::vector<sim::Spec>& specs, bool has_cpu = true) {
    Registry registry;
    BackendReport& sims = registry.backends.emplace_back(BackendReport{.api = "sim", .devices = {}});
    for (const sim::Spec& spec : specs) sims.devices.push_back(sim::make_sim_device(spec, clock));
    BackendReport& cpu = registry.backends.emplace_back(BackendReport{.api = "cpu", .devices = {}});
    const auto engine = std::make_shared<cpu::Engine>(2, std::span<const std::uint32_t>());
    if (has_cpu)
      for (const cpu::KernelSet kernels : {cpu::KernelSet::simd, cpu::KernelSet::scalar})
        cpu.devices.push_back(
            cpu::make_cpu_device({.kernels = kernels, .engine = engine, .recorder = nullptr, .id = {}}));
    registry.backends.emplace_back(BackendReport{.api = "cuda", .devices = {}})
        .stop(StartStage::no_library, "no library in this test");
    runtime = runtime_over(std::move(registry), std::make_unique<trace::Recorder>());
  }

  [[nodiscard]] std::unique_ptr<Arrays> arrays(ArraysOptions options = {}) const {
    if (!options.now) options.now = [its_clock = clock] { return its_clock->now(); };
    auto made = Arrays::create(*runtime, std::move(options));
    EXPECT_TRUE(made.has_value());
    return std::move(*made);
  }
};

// So close to the host that it is predicted to beat the CPU.
inline sim::Spec near_spec(std::string id = "sim:0", const Faults& faults = {}) {
  sim::Spec spec{.id = std::move(id), .launch_us = 0.1, .op_us = 0.1, .memory_pool = "host", .faults = faults};
  spec.rate = {.flops_per_s = 1e15, .bytes_per_s = 1e15};
  return spec;
}

// Magnitudes from 0.25 to 2, one in four negative, so that sums do not cancel.
inline Floats numbers(std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  Floats values(count);
  for (float& value : values) {
    const auto drawn = static_cast<std::uint32_t>(random());
    value = (0.25F + 1.75F * static_cast<float>(drawn >> 8U) / static_cast<float>(1U << 24U)) *
            (drawn % 4 == 0 ? -1.0F : 1.0F);
  }
  return values;
}

// One call of an array function, with its inputs and its result.
struct ArrayCase {
  std::string function;
  std::size_t size = 0;     // elements; rows of a product
  std::size_t columns = 1;  // for softmax and the product
  std::size_t inner = 1;    // for the product

  [[nodiscard]] ProductExtents extents() const { return {size, inner, columns}; }
  [[nodiscard]] bool is_product() const { return function == "matmul"; }
  [[nodiscard]] Floats a() const { return numbers(is_product() ? size * inner : size, 1); }
  [[nodiscard]] Floats b() const { return numbers(is_product() ? inner * columns : size, 2); }
  [[nodiscard]] std::size_t results() const {
    return is_product() ? size * columns : function == "sum" || function == "dot" ? 1 : size;
  }
  [[nodiscard]] Op op() const {
    return *op_from_name(function == "multiply" ? "mul"
                         : function == "sum"    ? "reduce_sum"
                         : function == "matmul" ? "linear"
                                                : function);
  }

  Result<ArrayRun> run(Arrays& arrays, std::span<const float> x, std::span<const float> y, std::span<float> out,
                       const ArrayCall& call = {}) const {
    if (function == "add") return arrays.add(x, y, out, call);
    if (function == "multiply") return arrays.multiply(x, y, out, call);
    if (function == "matmul") return arrays.matmul(x, y, extents(), out, call);
    if (function == "dot") return arrays.dot(x, y, out[0], call);
    if (function == "sum") return arrays.sum(x, out[0], call);
    return arrays.softmax(x, columns, out, call);
  }

  // Computes the result in plain loops.
  [[nodiscard]] std::vector<double> expected(const Floats& x, const Floats& y) const {
    std::vector<double> out(results());
    const auto at = [](const Floats& values, std::size_t i) { return static_cast<double>(values[i]); };
    if (is_product()) {
      for (std::size_t i = 0; i < out.size(); ++i)
        for (std::size_t k = 0; k < inner; ++k)
          out[i] += at(x, i / columns * inner + k) * at(y, k * columns + i % columns);
      return out;
    }
    for (std::size_t i = 0; i < size; ++i) {
      if (function == "add") out[i] = at(x, i) + at(y, i);
      if (function == "multiply") out[i] = at(x, i) * at(y, i);
      if (function == "sum") out[0] += at(x, i);
      if (function == "dot") out[0] += at(x, i) * at(y, i);
    }
    if (function != "softmax") return out;
    for (std::size_t row = 0; row < size; row += columns) {
      double sum = 0;
      for (std::size_t i = row; i < row + columns; ++i) sum += std::exp(at(x, i));
      for (std::size_t i = row; i < row + columns; ++i) out[i] = std::exp(at(x, i)) / sum;
    }
    return out;
  }

  // Expects `actual` to be within the tolerance of the op's row.
  void expect_right(const Floats& actual, const std::vector<double>& wanted) const {
    double difference = 0;
    double size_of_all = 0;
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      const double apart = static_cast<double>(actual[i]) - wanted[i];
      difference += apart * apart;
      size_of_all += wanted[i] * wanted[i];
    }
    EXPECT_LE(difference, size_of_all * info_of(op()).tolerance) << function << " of " << size;
  }
};

inline std::vector<ArrayCase> one_of_each(std::size_t size) {
  return {{"add", size}, {"multiply", size}, {"matmul", size / 64, 33, 65},
          {"dot", size}, {"sum", size},      {"softmax", size / 7 * 7, size / 7}};
}

}  // namespace shunt
