// Faults and audits on devices of an API next to the processor, with their own kind of memory.
#include <fmt/ranges.h>

#include "devices/each_api.h"
#include "models/phase_faults.h"
#include "models/short_run.h"

namespace shunt::models {
namespace {

// Faults and audits on one device of an API: the library injects them, whatever the driver is.
class DeviceFailures : public test::EachApi {};

double error_of(std::span<const float> logits, std::span<const float> expected) {
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    error += std::pow(double{logits[i]} - expected[i], 2);
    power += std::pow(double{expected[i]}, 2);
  }
  return error / power;
}

TEST_P(DeviceFailures, LeaveTheLogitsAsTheyAre) {
  const Loaded exact(kQuantizedModel, "cpu:scalar", {.context = 128, .max_sequences = 2});
  const std::vector<std::vector<Token>> tokens = short_run(*exact.session);
  const std::vector<float> expected = logits_along(*exact.session, tokens);
  const DeviceInfo& device = test::quick_ones(devices_).front()->info();
  std::size_t struck = 0;
  for (std::uint32_t seed = 0; seed < 20; ++seed) {
    std::mt19937 random(seed);
    const Work work{.prompt = 60, .token = 20};
    const std::string fault =
        fmt::format("{} {}", device.id, fault_in(kPhases[seed % std::size(kPhases)], work, random));
    SCOPED_TRACE(fmt::format("{}, {}", device.name, fault));
    bool noticed = false;
    const Loaded loaded(
        kQuantizedModel,
        Loaded::take(Runtime::create({.threads = 2,
                                      .devices = device.id + ",cpu:simd",
                                      .calibrated = false,
                                      .timeout = std::chrono::seconds(5),
                                      .faults = fault,
                                      .on_notice = [&](const std::string&) { noticed = true; }})),
        {.context = 128, .max_sequences = 2, .strategy = seed % 2 == 0 ? Strategy::gpu : Strategy::layers});
    const std::vector<float> logits = logits_along(*loaded.session, tokens);
    if (noticed) ++struck;
    ASSERT_EQ(logits.size(), expected.size());
    EXPECT_LE(error_of(logits, expected), 1e-6);
  }
  EXPECT_GE(struck, 12U) << device.name;
}

TEST_P(DeviceFailures, AreFoundByAuditsWhereADeviceIsWrongAndNowhereElse) {
  const Loaded exact(kQuantizedModel, "cpu:scalar", {.context = 128});
  const std::string id = test::quick_ones(devices_).front()->info().id;
  for (const std::string fault : {"", " wrong after 0 ops"}) {
    SCOPED_TRACE(fault);
    std::vector<std::string> notices;
    const Loaded loaded(
        kQuantizedModel,
        Loaded::take(Runtime::create({.threads = 2,
                                      .devices = id + ",cpu:simd",
                                      .calibrated = false,
                                      .trace = true,
                                      .audit = 1,
                                      .faults = fault.empty() ? "" : id + fault,
                                      .on_notice = [&](const std::string& text) { notices.push_back(text); }})),
        {.context = 128, .strategy = Strategy::gpu});
    std::vector<Token> token = prompt_ids(0);
    exact.session->truncate(0, 0);
    ASSERT_TRUE(exact.session->prefill(0, token).has_value());
    ASSERT_TRUE(loaded.session->prefill(0, token).has_value());
    // Enough for a text and one audit of each op.
    const std::size_t steps = 20 + Loaded::take(loaded.session->plan_for(1, 1))->units.size();
    for (std::size_t step = 0; step < steps; ++step) {
      token = {best_of(exact.session->logits(0))};
      EXPECT_LE(error_of(loaded.session->logits(0), exact.session->logits(0)), 1e-6) << step;
      if (exact.session->tokens(0).size() == exact.session->context()) {
        exact.session->truncate(0, 4);
        loaded.session->truncate(0, 4);
      }
      ASSERT_TRUE(exact.session->prefill(0, token).has_value());
      ASSERT_TRUE(loaded.session->prefill(0, token).has_value());
    }
    EXPECT_GE(audits_of(loaded, false), steps);
    EXPECT_EQ(audits_of(loaded, true), fault.empty() ? 0U : 1U);
    EXPECT_EQ(notices.size(), fault.empty() ? 0U : 1U) << fmt::format("{}", fmt::join(notices, "; "));
  }
}

SHUNT_FOR_APIS(DeviceFailures, (std::vector<std::string>{"vulkan", "gl"}));

}  // namespace
}  // namespace shunt::models
