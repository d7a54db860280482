// Runs the simulated GPU as others, which SHUNT_CUDA_TARGET names.
#include <gtest/gtest.h>

#include "simulated/simulated.h"

namespace shunt::simulated {
namespace {

// Older GPUs have less shared memory, and no kernels whose blocks need more.
TEST(SimulatedTargets, HaveKernelsForTilesOfTheirSharedMemory) {
  const Simulation simulation;
  const Operand x = Operand::contiguous(DType::F32, {512, 4096});
  const Operand weight = Operand::contiguous(DType::Q4_K, {14336, 4096}, TensorKind::weight);
  const Operand result = Operand::contiguous(DType::F32, {512, 14336});
  const Operand* const inputs[] = {&x, &weight};
  const Attributes none;
  for (const char* const name : {"75", "80", "86", "90", "100"}) {
    const Target target(name);
    BackendReport report = Simulation::open("cuda");
    ASSERT_EQ(report.devices.size(), 1U) << name;
    Device& device = *report.devices.front();
    const auto place = [&](const Operand& operand) {
      auto buffer = device.allocate(operand.span_bytes(), BufferUse::values);
      EXPECT_TRUE(buffer.has_value());
      return std::move(*buffer);
    };
    const std::unique_ptr<Buffer> places[] = {place(x), place(weight), place(result)};
    const ProgramOp op{.call = {.op = Op::linear,
                                .attributes = &none,
                                .inputs = inputs,
                                .output = &result,
                                .numerics = Numerics::automatic},
                       .inputs = {{places[0].get(), 0, x.span_bytes()}, {places[1].get(), 0, weight.span_bytes()}},
                       .output = {places[2].get(), 0, result.span_bytes()},
                       .name = "many rows"};
    const auto program = device.prepare({.name = "many rows", .ops = std::span(&op, 1)});
    EXPECT_TRUE(program.has_value()) << name << ": " << program.error().message;
  }
}

}  // namespace
}  // namespace shunt::simulated
