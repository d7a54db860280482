// Weights get the layout that their device reads fastest, where all their uses there agree.
#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <optional>

#include "devices/wrapped_device.h"
#include "ops/strips.h"
#include "run/graphs.h"

namespace shunt {
namespace {

using test::SeparateDevices;

constexpr std::uint32_t kRows = 32;
constexpr std::uint32_t kColumns = 64;

// Wants the weights of linear and rms_norm_swiglu in strips, and notes how it gets them. It only prepares programs.
class WantsStrips final : public test::WrappedDevice {
 public:
  using WrappedDevice::WrappedDevice;

  [[nodiscard]] Layout layout_for(const OpCall& call, std::size_t input) const override {
    const bool is_matrix = call.input(input).kind == TensorKind::weight && call.input(input).shape.rank() == 2;
    return is_matrix && info_of(call.op).family == "linear" ? Layout::strips : Layout::rows;
  }
  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    for (const ProgramOp& op : request.ops)
      for (std::size_t input = 0; input < op.inputs.size(); ++input)
        if (op.call.has_input(input) && op.call.input(input).kind == TensorKind::weight)
          bound_[op.name].push_back(op.inputs[input]);
    return inner().prepare(request);
  }

  // The weights of a node.
  [[nodiscard]] const std::vector<Binding>& bound(const std::string& node) { return bound_[node]; }

 private:
  std::map<std::string, std::vector<Binding>> bound_;
};

std::vector<std::byte> random_halves(std::size_t bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::byte> made(bytes);
  for (std::size_t i = 0; i < bytes; i += 2) {
    const auto half = static_cast<std::uint16_t>(0x3000U + random() % 0x800U);
    std::memcpy(made.data() + i, &half, sizeof half);
  }
  return made;
}

class Layouts : public testing::Test {
 protected:
  Layouts() {
    for (const char* name : {"a", "b"}) {
      contents_.push_back(
          random_halves(std::size_t{kRows} * kColumns * 2, static_cast<std::uint32_t>(contents_.size())));
      EXPECT_TRUE(source_.add(name, DType::F16, {kRows, kColumns}, contents_.back()).has_value());
    }
    contents_.push_back(std::vector<std::byte>(kColumns * sizeof(float)));
    EXPECT_TRUE(source_.add("norm", DType::F32, {kColumns}, contents_.back()).has_value());
    weights_.emplace(&source_);
    x_ = builder_.input("x", DType::F32, {2, kColumns});
    a_ = builder_.weight("a", DType::F16, {kRows, kColumns});
    b_ = builder_.weight("b", DType::F16, {kRows, kColumns});
  }

  void output(Tensor tensor, const char* name) {
    builder_.name(tensor, name);
    builder_.output(tensor);
  }

  // Returns the layout of each weight of the node that makes the tensor of this name.
  std::vector<Layout> layouts_of(const std::string& node) {
    if (executable_ == nullptr) {
      auto graph = std::move(builder_).finish();
      EXPECT_TRUE(graph.has_value()) << graph.error().message;
      Device* const devices[] = {&device_};
      auto plan = make_plan({.graph = &*graph, .devices = devices});
      EXPECT_TRUE(plan.has_value()) << plan.error().message;
      auto made = Executable::create(std::move(*graph), std::move(*plan),
                                     {.devices = devices, .weights = &*weights_, .state = &state_, .arenas = &arenas_});
      EXPECT_TRUE(made.has_value()) << made.error().message;
      executable_ = std::move(*made);
    }
    for (const Node& each : executable_->graph().nodes())
      if (executable_->graph().tensor(each.output).name == node) {
        std::vector<Layout> layouts;
        for (const Binding& binding : device_.bound(each.name)) layouts.push_back(binding.layout);
        return layouts;
      }
    ADD_FAILURE() << "no tensor " << node;
    return {};
  }

  SeparateDevices machine_{1};
  WantsStrips device_{*machine_.devices[0]};
  std::vector<std::vector<std::byte>> contents_;
  MemoryWeights source_;
  std::optional<WeightStore> weights_;  // of what the source has by then
  StateStore state_;
  ArenaStore arenas_;
  GraphBuilder builder_;
  Tensor x_, a_, b_;
  std::unique_ptr<Executable> executable_;
};

TEST_F(Layouts, AWeightIsLaidOutAsItsOnlyUseWants) {
  output(builder_.linear(x_, a_), "y");
  EXPECT_EQ(layouts_of("y"), std::vector{Layout::strips});
  const Node& node = executable_->graph().nodes()[0];
  const Binding& bound = device_.bound(node.name).at(0);
  std::vector<std::byte> found(contents_[0].size());
  ASSERT_TRUE(device_.read(bound, found).wait().has_value());
  std::vector<std::byte> expected(contents_[0].size());
  rows_to_strips(DType::F16, kColumns, contents_[0], expected);
  EXPECT_EQ(found, expected);
}

TEST_F(Layouts, AUseThatWantsRowsDecides) {
  output(builder_.linear(x_, a_), "y");
  output(builder_.copy(a_, {{Attr::to, DType::F32}}), "wide");
  EXPECT_EQ(layouts_of("y"), std::vector{Layout::rows});
  EXPECT_EQ(layouts_of("wide"), std::vector{Layout::rows});
}

TEST_F(Layouts, APartOfAWeightIsReadInRows) {
  output(builder_.linear(x_, a_), "y");
  output(builder_.linear(x_, builder_.slice(a_, {{Attr::axis, 0U}, {Attr::begin, 16U}, {Attr::count, 16U}})), "z");
  EXPECT_EQ(layouts_of("y"), std::vector{Layout::rows});
}

TEST_F(Layouts, WeightsOfOneOpAgree) {
  const Tensor norm = builder_.mul(builder_.rms_norm(x_), builder_.weight("norm", DType::F32, {kColumns}));
  output(builder_.mul(builder_.silu(builder_.linear(norm, a_)), builder_.linear(norm, b_)), "y");
  output(builder_.copy(b_, {{Attr::to, DType::F32}}), "wide");
  EXPECT_EQ(layouts_of("y"), (std::vector{Layout::rows, Layout::rows, Layout::rows})) << "a, norm and b of one unit";
  EXPECT_EQ(layouts_of("wide"), std::vector{Layout::rows});
}

}  // namespace
}  // namespace shunt
