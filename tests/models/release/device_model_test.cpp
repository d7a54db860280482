// The trained model on every device other than the CPU.
#include "devices/each_api.h"
#include "models/short_run.h"

namespace shunt::models {
namespace {

class DeviceModel : public test::EachApi {
 protected:
  void expect_the_scalar_result(const std::string& path) const {
    for (const Device* device : devices_) {
      SCOPED_TRACE(device->info().id);
      const Loaded loaded(path, device->info().id, {.context = 128, .max_sequences = 2});
      expect_the_scalar_devices_run(*loaded.session, path);
    }
  }
};

TEST_P(DeviceModel, SaysWhatTheScalarCpuSaysFromF16) { expect_the_scalar_result(kTrainedModel); }

TEST_P(DeviceModel, SaysWhatTheScalarCpuSaysFromQ8) { expect_the_scalar_result(kQuantizedModel); }

SHUNT_FOR_EACH_API(DeviceModel);

}  // namespace
}  // namespace shunt::models
