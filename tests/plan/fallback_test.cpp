// A SIMD device that lacks an op: the op falls back to the scalar device, and the plan says why.
#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>

#include "devices/cpu/device.h"
#include "devices/wrapped_device.h"
#include "ops/op.h"
#include "plan/planner.h"
#include "run/executable.h"

namespace shunt {
namespace {

// A device with the abilities of another, except for one op and for operands larger than a limit.
class Lacking final : public test::WrappedDevice {
 public:
  Lacking(std::unique_ptr<Device> real, std::optional<Op> op, std::uint64_t largest_binding_bytes = kNoLimit)
      : WrappedDevice(std::move(real)), info_(inner().info()), op_(op) {
    info_.largest_binding_bytes = largest_binding_bytes;
  }
  static constexpr std::uint64_t kNoLimit = ~std::uint64_t{0};

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] Support supports(std::span<const OpCall> run) const override {
    for (const OpCall& call : run)
      if (call.op == op_) return {.reason = reason()};
    return inner().supports(run);
  }
  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    for (const ProgramOp& op : request.ops) EXPECT_NE(op.call.op, op_) << "was given what it lacks";
    return inner().prepare(request);
  }

  [[nodiscard]] std::string reason() const { return std::string(name_of(*op_)) + ": this test took the kernel away"; }

 private:
  DeviceInfo info_;
  std::optional<Op> op_;
};

std::unique_ptr<Device> cpu_device(cpu::KernelSet kernels, const std::shared_ptr<cpu::Engine>& engine) {
  return cpu::make_cpu_device({.kernels = kernels, .engine = engine});
}

// x [4, 64] through a norm, a softmax, an argmax and a gated unit.
Graph mixed_graph() {
  GraphBuilder builder;
  const Tensor x = builder.input("x", DType::F32, {4, 64});
  const Tensor normed = builder.rms_norm(x);
  const Tensor soft = builder.softmax(normed, Tensor{}, {{Attr::scale, 2.0F}});
  builder.output(builder.swiglu(normed, soft));
  builder.output(builder.argmax(soft));
  auto graph = std::move(builder).finish();
  EXPECT_TRUE(graph.has_value());
  return std::move(*graph);
}

class Fallback : public testing::Test {
 protected:
  explicit Fallback(Op lacks = Op::softmax) {
    auto owned = std::make_unique<Lacking>(cpu_device(cpu::KernelSet::simd, engine_), lacks);
    reason_ = owned->reason();
    simd_ = std::move(owned);
  }

  [[nodiscard]] Plan plan(const std::vector<Device*>& devices) {
    auto plan = make_plan({.graph = &graph_, .devices = devices});
    EXPECT_TRUE(plan.has_value()) << plan.error().message;
    return std::move(*plan);
  }

  std::vector<float> run(const std::vector<Device*>& devices) {
    WeightStore weights(nullptr);
    StateStore state;
    ArenaStore arenas;
    auto executable = Executable::create(graph_, plan(devices),
                                         {.devices = devices, .weights = &weights, .state = &state, .arenas = &arenas});
    EXPECT_TRUE(executable.has_value()) << executable.error().message;
    std::mt19937 random(1);
    std::vector<float> x(256);
    for (float& value : x) value = static_cast<float>(random() % 1000) / 500.0F - 1.0F;
    EXPECT_TRUE((*executable)->write_input(*graph_.find("x"), std::as_bytes(std::span(x))).has_value());
    EXPECT_TRUE((*executable)->run({}).has_value());
    std::vector<float> result(256);
    EXPECT_TRUE((*executable)->read_output(0, 0, std::as_writable_bytes(std::span(result))).has_value());
    return result;
  }

  std::shared_ptr<cpu::Engine> engine_ = std::make_shared<cpu::Engine>(2, std::span<const std::uint32_t>());
  std::unique_ptr<Device> simd_;
  std::unique_ptr<Device> scalar_ = cpu_device(cpu::KernelSet::scalar, engine_);
  std::string reason_;
  Graph graph_ = mixed_graph();
};

TEST_F(Fallback, OnlyTheOpThatIsLackedIsScalarAndTheReasonIsRecorded) {
  const Plan made = plan({simd_.get(), scalar_.get()});
  std::size_t fallen = 0;
  for (std::size_t i = 0; i < made.units.size(); ++i) {
    const Decision& decision = made.decisions[i];
    ASSERT_EQ(decision.candidates.size(), 2U);
    if (made.units[i].op != Op::softmax) {
      EXPECT_EQ(made.devices[decision.device].id, "cpu:simd") << name_of(made.units[i].op);
      continue;
    }
    ++fallen;
    EXPECT_EQ(made.devices[decision.device].id, "cpu:scalar");
    EXPECT_EQ(decision.reason, Reason::only_candidate);
    EXPECT_EQ(decision.candidates[0].reason, Reason::lacks_op);
    EXPECT_EQ(decision.candidates[0].detail, reason_);
    EXPECT_EQ(decision.candidates[1].reason, Reason::only_candidate);
  }
  EXPECT_EQ(fallen, 1U);
  EXPECT_TRUE(check(made, graph_).has_value());
}

TEST_F(Fallback, TheExplanationSaysWhyForPeopleAndPrograms) {
  const Plan made = plan({simd_.get(), scalar_.get()});
  EXPECT_NE(to_text(made, graph_, true).find(reason_), std::string::npos) << to_text(made, graph_, true);
  const auto json = nlohmann::json::parse(to_json(made, graph_), nullptr, false);
  ASSERT_TRUE(json.is_object());
  EXPECT_NE(json.dump().find(reason_), std::string::npos) << json.dump(1);
}

TEST_F(Fallback, TheNumbersAreThoseOfTheScalarDevice) {
  const std::vector<float> mixed = run({simd_.get(), scalar_.get()});
  const std::vector<float> scalar = run({scalar_.get()});
  for (std::size_t i = 0; i < mixed.size(); ++i) EXPECT_NEAR(mixed[i], scalar[i], 1e-6) << i;
}

TEST_F(Fallback, WithoutTheScalarDeviceTheErrorHasTheReason) {
  const std::vector<Device*> alone = {simd_.get()};
  const auto plan = make_plan({.graph = &graph_, .devices = alone});
  ASSERT_FALSE(plan.has_value());
  EXPECT_EQ(plan.error().code, Code::unsupported);
  EXPECT_NE(plan.error().message.find("cpu:simd: " + reason_), std::string::npos) << plan.error().message;
  EXPECT_NE(plan.error().message.find("softmax(F32[4, 64], -)"), std::string::npos) << plan.error().message;
}

TEST_F(Fallback, AnOperandThatIsTooLargeToBindIsScalarAndTheReasonIsRecorded) {
  // All operands of mixed_graph() have 1024 bytes, except its last output, which has 16.
  Lacking small(cpu_device(cpu::KernelSet::simd, engine_), std::nullopt, 1023);
  const Plan made = plan({&small, scalar_.get()});
  EXPECT_TRUE(check(made, graph_).has_value());
  for (std::size_t i = 0; i < made.units.size(); ++i) {
    const Decision& decision = made.decisions[i];
    EXPECT_EQ(made.devices[decision.device].id, "cpu:scalar");
    EXPECT_EQ(decision.candidates[0].reason, Reason::too_large);
    EXPECT_NE(decision.candidates[0].detail.find("has 1.0 KiB, it binds 1023 bytes at most"), std::string::npos)
        << decision.candidates[0].detail;
  }
  Lacking large(cpu_device(cpu::KernelSet::simd, engine_), std::nullopt, 1024);
  const Plan all_simd = plan({&large, scalar_.get()});
  for (const Decision& decision : all_simd.decisions) EXPECT_EQ(all_simd.devices[decision.device].id, "cpu:simd");

  const std::vector<Device*> alone = {&small};
  const auto refused = make_plan({.graph = &graph_, .devices = alone});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::unsupported);
  EXPECT_NE(refused.error().message.find("it binds 1023 bytes at most"), std::string::npos) << refused.error().message;
}

// Lacking a fused row is no loss: its parts run instead.
class FusedFallback : public Fallback {
 protected:
  FusedFallback() : Fallback(Op::swiglu) {}
};

TEST_F(FusedFallback, ThePartsOfALackedFusedRowStayOnTheSimdDevice) {
  const Plan made = plan({simd_.get(), scalar_.get()});
  bool parts = false;
  for (std::size_t i = 0; i < made.units.size(); ++i) {
    EXPECT_NE(made.units[i].op, Op::swiglu);
    EXPECT_EQ(made.devices[made.decisions[i].device].id, "cpu:simd") << name_of(made.units[i].op);
    parts = parts || made.units[i].op == Op::silu;
  }
  EXPECT_TRUE(parts);
}

}  // namespace
}  // namespace shunt
