// How many tokens of a prompt a session reads in one step.
#include "devices/discovery/registry.h"
#include "devices/sim/device.h"
#include "models/reference.h"
#include "run/opened_devices.h"

namespace shunt::models {
namespace {

constexpr std::uint32_t kPrompt = 600;

// A GPU whose programs take `launch_us` besides the time of their arithmetic, which it does not do.
std::unique_ptr<Runtime> gpu_with_launches(double launch_us, std::uint64_t memory_bytes = std::uint64_t{1} << 30U) {
  const sim::Spec gpu{.id = "gpu:0",
                      .type = DeviceType::discrete,
                      .computes = false,
                      .launch_us = launch_us,
                      .op_us = 0,
                      .rate = {.flops_per_s = 1e12, .bytes_per_s = 1e15},
                      .memory_bytes = memory_bytes};
  BackendReport report{.api = "sim"};
  report.devices = sim::make_sim_devices(std::vector{gpu}, std::make_shared<sim::VirtualClock>());
  Registry registry;
  registry.backends.push_back(std::move(report));
  return runtime_over(std::move(registry), std::make_unique<trace::Recorder>(0));
}

struct Read {
  std::vector<std::size_t> done;  // tokens, after each step
  Runner::Memory memory;
};

Read read_prompt(std::unique_ptr<Runtime> on, std::uint32_t max_batch_tokens = 0) {
  Loaded loaded(kTrainedModel, std::move(on), {.context = 2048, .max_batch_tokens = max_batch_tokens});
  const std::vector<Token> prompt(kPrompt, 3);
  Read read;
  const Status status = loaded.session->prefill(0, prompt, [&](std::size_t done) {
    read.done.push_back(done);
    return true;
  });
  EXPECT_TRUE(status.has_value()) << status.error().message;
  read.memory = loaded.session->memory();
  return read;
}

using Steps = std::vector<std::size_t>;

TEST(PromptSteps, AreLargerWhereATokenTakesLessTimeSo) {
  EXPECT_EQ(read_prompt(gpu_with_launches(1e3)).done, Steps{kPrompt});
}

TEST(PromptSteps, AreOfTheUsualSizeWhereNothingIsGained) {
  EXPECT_EQ(read_prompt(gpu_with_launches(0)).done, (Steps{kUsualStepTokens, kPrompt}));
  EXPECT_EQ(read_prompt(gpu_with_launches(5e6)).done, (Steps{kUsualStepTokens, kPrompt}))
      << "steps of 5 s are too long";
}

TEST(PromptSteps, AreOfTheUsualSizeWhereThereIsNoMemoryForMore) {
  const Runner::Memory used = read_prompt(gpu_with_launches(1e3), kUsualStepTokens).memory;
  const std::uint64_t bytes = used.copied_weights + used.state + used.programs;
  EXPECT_EQ(read_prompt(gpu_with_launches(1e3, bytes + bytes / 8)).done, (Steps{kUsualStepTokens, kPrompt}));
}

TEST(PromptSteps, AreNoLargerThanWasAskedFor) {
  EXPECT_EQ(read_prompt(gpu_with_launches(1e3), 550).done, (Steps{550, kPrompt}));
}

}  // namespace
}  // namespace shunt::models
