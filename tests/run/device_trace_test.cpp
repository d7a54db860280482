// A trace has the programs of devices of every API.
#include <string>
#include <vector>

#include "devices/each_api.h"
#include "run/program_events.h"

namespace shunt {
namespace {

class DeviceTraces : public test::EachApi {};

TEST_P(DeviceTraces, HaveTheProgramsOfEachDevice) {
  std::vector<std::string> ids;
  for (const Device* device : devices_) ids.push_back(device->info().id);
  registry_ = {};
  for (const std::string& id : ids) test::expect_program_events(id);
}

SHUNT_FOR_EACH_API(DeviceTraces);

}  // namespace
}  // namespace shunt
