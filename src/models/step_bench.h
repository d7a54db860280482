// Times whole steps of a model by the device's own clock, in the middle of a context. One thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

#include "devices/device.h"
#include "models/session.h"

namespace shunt::models {

// The context of sessions whose steps are timed. Plans predict attention at its middle.
inline constexpr std::uint32_t kStepContext = 1024;

// Called before each step and while the context is filled, with the steps done and their total; returning false ends
// it.
using StepProgress = std::function<bool(std::size_t done, std::size_t count)>;

class StepBench {
 public:
  // All must outlive it. `steps` are expected in all. REQUIRES: `device` runs the session.
  StepBench(Session& session, const Device& device, const StepProgress& progress, std::size_t steps)
      : session_(session), device_(device), progress_(progress), steps_(steps) {}

  // Returns the microseconds of a step of so many tokens. Errors: interrupted if the progress returned false; those of
  // a step.
  [[nodiscard]] Result<double> measure_us(std::uint32_t tokens);

 private:
  [[nodiscard]] Status go_to(std::uint32_t tokens);

  Session& session_;
  const Device& device_;
  const StepProgress& progress_;
  std::size_t steps_;
  std::size_t done_ = 0;
};

}  // namespace shunt::models
