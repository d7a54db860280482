#include "bench_planning.h"

#include <fmt/format.h>

#include <array>
#include <filesystem>
#include <memory>
#include <utility>
#include <vector>

#include "base/stopwatch.h"
#include "devices/sim/device.h"
#include "loading.h"
#include "models/session.h"
#include "plan/planner.h"

namespace shunt::cli {
namespace {

// A chain with side branches over x [4096, 16], with five ops per link.
Result<Graph> many_ops() {
  constexpr int kLinks = 2000;
  GraphBuilder builder;
  Tensor main = builder.input("x", DType::F32, {4096, 16}, Extent::tokens);
  Tensor side = builder.scale(main, {{Attr::factor, 0.5F}});
  for (int link = 0; link < kLinks; ++link) {
    const Tensor next = builder.add(builder.silu(main), side);
    side = builder.sub(builder.mul(main, side), builder.rms_norm(next));
    main = next;
  }
  builder.output(builder.add(main, side));
  return std::move(builder).finish();
}

// Four simulated devices, each faster than the one before.
std::vector<std::unique_ptr<Device>> four_devices() {
  std::array<sim::Spec, 4> specs;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    specs[i].id = fmt::format("sim:{}", i);
    specs[i].rate.bytes_per_s = 1e10 * static_cast<double>(i + 1);
  }
  specs[0].memory_pool = kHostPool;
  return sim::make_sim_devices(specs, std::make_shared<sim::VirtualClock>());
}

}  // namespace

Result<Round> planning() {
  SHUNT_TRY_ASSIGN(Graph made, many_ops());
  const auto graph = std::make_shared<const Graph>(std::move(made));
  const auto devices = std::make_shared<const std::vector<std::unique_ptr<Device>>>(four_devices());
  return [graph, devices]() -> Result<double> {
    std::vector<Device*> candidates;
    for (const std::unique_ptr<Device>& device : *devices) candidates.push_back(device.get());
    const Stopwatch watch;
    SHUNT_TRY_ASSIGN(const Plan plan, make_plan({.graph = graph.get(), .devices = candidates}));
    return watch.seconds() * 1e6 / static_cast<double>(graph->nodes().size());
  };
}

Result<Round> finding_plans() {
  struct Planned {
    std::unique_ptr<models::Model> model;
    std::unique_ptr<Runtime> runtime;
    std::unique_ptr<models::Session> session;
  };
  const auto planned = std::make_shared<Planned>();
  SHUNT_TRY_ASSIGN(planned->model, random_model("micro", "F16", std::filesystem::temp_directory_path()));
  SHUNT_TRY_ASSIGN(planned->runtime, Runtime::create({.threads = 1, .devices = "cpu:simd", .calibrated = false}));
  SHUNT_TRY_ASSIGN(planned->session, models::Session::create(*planned->model, *planned->runtime, {.context = 64}));
  return [planned]() -> Result<double> {
    constexpr std::uint32_t kTimes = 10'000;
    SHUNT_TRY_ASSIGN(const Plan* plan, planned->session->plan_for(1, 1));
    const Stopwatch watch;
    for (std::uint32_t i = 0; i < kTimes; ++i) SHUNT_TRY(planned->session->plan_for(1, 1));
    return watch.seconds() * 1e9 / kTimes / static_cast<double>(plan->units.size());
  };
}

}  // namespace shunt::cli
