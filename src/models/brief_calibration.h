// Measures devices before a model runs, where nobody has and where so much is to be done that it can pay.
//
// A plain function; one thread at a time.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <vector>

#include "models/model.h"
#include "plan/cost.h"
#include "run/fleet.h"
#include "shunt/model.h"

namespace shunt::models {

// What a session is to do.
struct Work {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t generated_tokens = 0;
};

struct BriefCalibration {
  const Model& model;
  const Runtime& runtime;
  const Fleet& fleet;
  const SessionOptions& options;
  std::uint32_t context = 0;
  Work work;
  const std::atomic<bool>* interrupted = nullptr;  // null: it cannot be
};

// What the fleet's devices take, in their order, with what was measured now, which is kept for later runs; nothing
// where that cannot pay, and where it was interrupted. The user hears of it before.
[[nodiscard]] std::optional<std::vector<DeviceCost>> calibrate_for(const BriefCalibration& request);

}  // namespace shunt::models
