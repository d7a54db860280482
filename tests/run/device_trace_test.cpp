// Traces record the programs and the ops of devices of every API.
#include <string>
#include <vector>

#include "devices/each_api.h"
#include "run/program_events.h"

namespace shunt {
namespace {

class DeviceTraces : public test::EachApi {
 protected:
  void SetUp() override {
    test::EachApi::SetUp();
    for (const Device* device : devices_) ids_.push_back(device->info().id);
    devices_.clear();
    registry_ = {};
  }

  std::vector<std::string> ids_;
};

TEST_P(DeviceTraces, HaveTheProgramsOfEachDevice) {
  for (const std::string& id : ids_) test::expect_program_events(id);
}

TEST_P(DeviceTraces, HaveTheOpsOfTheFirstTwoRunsOnEachDevice) {
  for (const std::string& id : ids_) test::expect_op_events(id);
}

TEST_P(DeviceTraces, HaveOpsWithTheFaultsOfEachDevice) {
  for (const std::string& id : ids_) test::expect_faults_in_result(id);
}

SHUNT_FOR_EACH_API(DeviceTraces);

}  // namespace
}  // namespace shunt
