// Layers of a model alternate between the processor and the first device of each API.
#include "devices/each_api.h"
#include "models/short_run.h"

namespace shunt::models {
namespace {

class MixedWithEachApi : public test::EachApi {};

TEST_P(MixedWithEachApi, LayersInTurnGiveTheTextOfOneDevice) {
  const SessionOptions in_turn{.context = 64, .max_sequences = 2, .strategy = Strategy::layers};
  Loaded loaded(kQuantizedModel, "cpu:simd," + devices_.front()->info().id, in_turn);
  expect_the_scalar_devices_run(*loaded.session, kQuantizedModel);
  for (const std::uint32_t tokens : {16U, 1U}) {
    const Plan& plan = *Loaded::take(loaded.session->plan_for(tokens, 1));
    EXPECT_GT(std::ranges::count(plan.steps, Step::Kind::transfer, &Step::kind), 0);
  }
}

SHUNT_FOR_EACH_API(MixedWithEachApi);

}  // namespace
}  // namespace shunt::models
