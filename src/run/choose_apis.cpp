#include "run/choose_apis.h"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "plan/planner.h"

namespace shunt {
namespace {

// The work done through one API of some GPUs.
struct Trial {
  std::string api;
  std::string ids;  // of its devices
  std::unique_ptr<BucketPlanner> planner;
  Result<PredictedWork> work;
  double counted_us = 0;
};

Trial try_api(std::string_view api, const SharedGpus& gpus, DevicePool& device_pool, std::optional<double> margin,
              const PlannerFor& planner_for) {
  device_pool.use_api(gpus, api);
  const DevicePool::Offered offered = device_pool.offered(gpus, api);
  Trial trial{.api = std::string(api), .ids = offered.ids, .planner = planner_for(device_pool.devices()), .work = {}};
  trial.work = trial.planner->predicted_work();
  trial.counted_us = trial.work ? trial.work->us * (1 + margin_or_default(margin, offered.are_measured))
                                : std::numeric_limits<double>::infinity();
  return trial;
}

OtherApi passed_over(const Trial& other, const Trial& used) {
  OtherApi api{.used = used.ids, .other = other.ids, .work = {}, .why = {}};
  if (used.work) {
    api.work = used.work->what;
    api.used_us = used.work->us;
  }
  if (other.work)
    api.other_us = other.work->us;
  else
    api.why = other.work.error().message;
  return api;
}

}  // namespace

std::unique_ptr<BucketPlanner> choose_apis(DevicePool& device_pool, std::optional<double> margin,
                                           const PlannerFor& planner_for) {
  std::unique_ptr<BucketPlanner> planner;
  std::vector<OtherApi> others;
  for (const SharedGpus& gpus : device_pool.shared_gpus()) {
    std::vector<Trial> trials;
    for (const std::string& api : gpus.apis) trials.push_back(try_api(api, gpus, device_pool, margin, planner_for));
    const auto best = std::ranges::min_element(trials, {}, &Trial::counted_us);
    device_pool.use_api(gpus, best->api);
    planner = std::move(best->planner);
    for (const Trial& trial : trials)
      if (&trial != &*best) others.push_back(passed_over(trial, *best));
  }
  device_pool.set_other_apis(std::move(others));
  return planner == nullptr ? planner_for(device_pool.devices()) : std::move(planner);
}

}  // namespace shunt
