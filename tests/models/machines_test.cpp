// Plans for each of the example machines. They follow from the cost model: with a wrong one they are not as expected.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <functional>
#include <span>

#include "models/gguf/gguf_bytes.h"
#include "models/random/random_model.h"
#include "models/reference.h"
#include "models/step_planner.h"
#include "plan/planner.h"
#include "run/opened_devices.h"
#include "sanitized.h"

namespace shunt::models {
namespace {

constexpr const char* kMachines = SHUNT_TEST_DATA "/../../examples/machines/";
constexpr std::uint32_t kPrompt = 512;

double flops_of(const Graph& graph, const Unit& unit) {
  const UnitCall made(graph, unit);
  return info_of(unit.op).rule->cost(made.call()).flops;
}

// Returns the share of the arithmetic that a device does.
double share_of(const Plan& plan, const Graph& graph, std::string_view device) {
  double all = 0;
  double its = 0;
  for (std::size_t unit = 0; unit < plan.units.size(); ++unit) {
    const double flops = flops_of(graph, plan.units[unit]);
    all += flops;
    if (plan.devices[plan.decisions[unit].device].id == device) its += flops;
  }
  return its / all;
}

std::uint64_t copied_bytes(const Plan& plan, const Graph& graph, TensorKind kind) {
  std::uint64_t bytes = 0;
  for (const Step& step : plan.steps)
    if (step.kind == Step::Kind::transfer && graph.tensor(step.transfer.tensor).operand.kind == kind)
      bytes += step.transfer.bytes;
  return bytes;
}

const MemoryUse* memory_of(const Plan& plan, std::string_view pool) {
  const auto use = std::ranges::find(plan.memory, pool, &MemoryUse::pool);
  return use == plan.memory.end() ? nullptr : &*use;
}

// Many independent chains.
Graph wide_graph() {
  GraphBuilder builder;
  for (int chain = 0; chain < 24; ++chain) {
    Tensor x = builder.input(fmt::format("x{}", chain), DType::F32, {512, 1024});
    const Tensor w = builder.input(fmt::format("w{}", chain), DType::F32, {1024, 1024});
    for (int link = 0; link < 4; ++link) x = builder.linear(x, w);
    builder.output(x);
  }
  return *std::move(builder).finish();
}

// Collects the expectations that a plan does not meet.
class Expectations {
 public:
  void expect(bool holds, std::string_view machine, std::string_view what) {
    if (!holds) broken_.push_back(fmt::format("{}: {}", machine, what));
  }
  [[nodiscard]] const std::vector<std::string>& broken() const { return broken_; }

 private:
  std::vector<std::string> broken_;
};

using Mutation = std::function<void(PriorRates&)>;

class ExampleMachines : public testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(make_model("168m", "Q4_0", folder_.file("m")).has_value());
    model_ = Loaded::take(Model::load(folder_.file("m")));
  }

  // Plans for a machine whose devices the planner takes for mutated ones.
  struct Planned {
    std::unique_ptr<Runtime> runtime;
    PlannedGraph prompt, token;
    Graph graph;
    Plan wide;
  };
  Planned plans_for(const std::string& machine, const Mutation& mutate) const {
    auto runtime = Loaded::take(Runtime::create({.machine = kMachines + machine + ".json"}));
    std::vector<DeviceCost> costs;
    for (const Device* device : opened(*runtime).handles()) {
      DeviceInfo info = device->info();
      mutate(info.prior);
      costs.emplace_back(info, nullptr);
    }
    DeviceSet set(*runtime);
    set.costs = costs;
    StepPlanner planner(*model_, set, {.context = 1024}, 1024);
    PlannedGraph prompt = Loaded::take(planner.plan(kPrompt, 1));
    PlannedGraph token = Loaded::take(planner.plan(1, 1));
    Graph graph = wide_graph();
    Plan wide = Loaded::take(make_plan({.graph = &graph,
                                        .devices = set.devices,
                                        .costs = costs,
                                        .budget_bytes = {set.budgets.begin(), set.budgets.end()}}));
    return {std::move(runtime), std::move(prompt), std::move(token), std::move(graph), std::move(wide)};
  }

  std::vector<std::string> broken_with(const Mutation& mutate) const {
    Expectations all;
    for (const auto& [machine, check] : checks()) {
      const Planned planned = plans_for(machine, mutate);
      check(planned, [&](bool holds, std::string_view what) { all.expect(holds, machine, what); });
    }
    return all.broken();
  }

  using Expect = std::function<void(bool, std::string_view)>;
  using Check = std::function<void(const Planned&, const Expect&)>;
  [[nodiscard]] std::vector<std::pair<std::string, Check>> checks() const {
    const auto on = [](const PlannedGraph& step, std::string_view device) {
      return share_of(step.plan, step.graph, device);
    };
    const auto weights_copied = [](const PlannedGraph& step) {
      return copied_bytes(step.plan, step.graph, TensorKind::weight);
    };
    return {
        {"strong-gpu",
         [=](const Planned& planned, const Expect& expect) {
           expect(on(planned.prompt, "gpu:0") > 0.99, "a prompt is read on the GPU");
           expect(on(planned.token, "gpu:0") > 0.99, "text is generated on the GPU");
           expect(weights_copied(planned.prompt) + weights_copied(planned.token) == 0, "weights stay where they are");
         }},
        {"weak-gpu",
         [=](const Planned& planned, const Expect& expect) {
           expect(on(planned.prompt, "cpu") > 0.99, "a prompt is read on the processor");
           expect(on(planned.token, "cpu") > 0.99, "text is generated on the processor");
         }},
        {"two-unequal-gpus",
         [=](const Planned& planned, const Expect& expect) {
           expect(on(planned.token, "gpu:0") > 0.99, "a chain runs on the faster GPU");
           const double first = share_of(planned.wide, planned.graph, "gpu:0");
           const double second = share_of(planned.wide, planned.graph, "gpu:1");
           expect(first > 0.55 && first < 0.75 && second > 0.25 && second < 0.42,
                  fmt::format("both GPUs are used in proportion to their speed: {:.2f} and {:.2f}", first, second));
         }},
        {"slow-link",
         [=](const Planned& planned, const Expect& expect) {
           expect(weights_copied(planned.token) == 0, "no weights are copied for a token");
           expect(copied_bytes(planned.token.plan, planned.token.graph, TensorKind::value) < 200'000,
                  "little else is copied for a token");
           expect(on(planned.token, "gpu:0") > 0.99, "text is generated where the weights are");
         }},
        {"tiny-memory",
         [=](const Planned& planned, const Expect& expect) {
           constexpr std::uint64_t kMost = 64U << 20U;
           for (const Plan* plan : {&planned.prompt.plan, &planned.token.plan, &planned.wide}) {
             const MemoryUse* use = memory_of(*plan, "gpu:0");
             expect(use == nullptr || use->total() <= kMost, "the GPU's memory is enough");
           }
           const MemoryUse* use = memory_of(planned.token.plan, "gpu:0");
           expect(use != nullptr && use->weight_bytes > kMost / 3, "the GPU holds what it can");
           // Weights travel while the processor reads others: at 50 GB/s, as the machine's description says.
           expect(static_cast<double>(weights_copied(planned.token)) <= planned.token.plan.predicted_us * 5e4,
                  "no more weights are copied for a token than arrive meanwhile");
           for (const Step& step : planned.token.plan.steps)
             expect(step.kind == Step::Kind::compute || step.end_us - step.start_us > 9.9, "a copy takes its latency");
         }},
        {"unified",
         [=, this](const Planned& planned, const Expect& expect) {
           for (const PlannedGraph* step : {&planned.prompt, &planned.token}) {
             expect(std::ranges::none_of(step->plan.steps,
                                         [](const Step& each) { return each.kind == Step::Kind::transfer; }),
                    "nothing is copied");
             const MemoryUse* use = memory_of(step->plan, "host");
             expect(use != nullptr && step->plan.memory.size() == 1 && use->weight_bytes <= model_->weight_bytes(),
                    "weights lie there once");
           }
           expect(on(planned.prompt, "gpu:0") > 0.99, "a prompt is read on the GPU");
         }},
        {"eight-gpus",
         [=](const Planned& planned, const Expect& expect) {
           expect(on(planned.token, "gpu:0") > 0.99, "a chain runs on one GPU");
           for (int gpu = 0; gpu < 8; ++gpu) {
             const double share = share_of(planned.wide, planned.graph, fmt::format("gpu:{}", gpu));
             expect(share > 0.05 && share < 0.2, fmt::format("GPU {} does its part: {:.2f}", gpu, share));
           }
         }},
        {"cpu-only",
         [=, this](const Planned& planned, const Expect& expect) {
           expect(on(planned.prompt, "cpu") == 1 && on(planned.token, "cpu") == 1, "the processor does it all");
           double flops = 0;
           for (const Unit& unit : planned.prompt.plan.units) flops += flops_of(planned.prompt.graph, unit);
           expect(planned.prompt.plan.predicted_us > flops / 2e12 * 1e6, "a prompt takes its arithmetic");
           const double weights = static_cast<double>(model_->weight_bytes()) / 1e11 * 1e6;
           expect(planned.token.plan.predicted_us > weights && planned.token.plan.predicted_us < 1.5 * weights,
                  "a token takes what it takes to read the weights");
         }},
    };
  }

  TestFolder folder_;
  std::unique_ptr<Model> model_;
};

TEST_F(ExampleMachines, GetThePlansThatTheyShould) {
  const std::vector<std::string> broken = broken_with([](PriorRates&) {});
  EXPECT_TRUE(broken.empty()) << fmt::format("{}", fmt::join(broken, "\n"));
}

TEST_F(ExampleMachines, GetOtherPlansFromAWrongCostModel) {
  const std::pair<const char*, Mutation> mutations[] = {
      {"all compute alike",
       [](PriorRates& rates) {
         rates.flops_per_s = 1e13;
         rates.bytes_per_s = 1e12;
       }},
      {"slow is fast",
       [](PriorRates& rates) {
         rates.flops_per_s = 1e26 / rates.flops_per_s;
         rates.bytes_per_s = 1e22 / rates.bytes_per_s;
       }},
      {"memory costs nothing", [](PriorRates& rates) { rates.bytes_per_s = 1e18; }},
      {"arithmetic costs nothing", [](PriorRates& rates) { rates.flops_per_s = 1e20; }},
      {"links cost nothing",
       [](PriorRates& rates) {
         rates.link_us = 0;
         rates.link_bytes_per_s = 1e15;
       }},
      {"links are useless", [](PriorRates& rates) { rates.link_bytes_per_s = 1e5; }},
      {"ops take long to start", [](PriorRates& rates) { rates.op_us *= 1000; }},
  };
  const std::size_t count = test::kSanitized ? 1 : std::size(mutations);
  for (const auto& [what, mutate] : std::span(mutations).first(count))
    EXPECT_FALSE(broken_with(mutate).empty()) << what;
}

}  // namespace
}  // namespace shunt::models
