// The trained model on every device other than the CPU: from F16 on each, and from Q8_0 on SwiftShader only through
// WebGPU, as it compiles kernels slowly and Vulkan has another driver.
#include "devices/each_api.h"
#include "models/short_run.h"

namespace shunt::models {
namespace {

class DeviceModel : public test::EachApi {
 protected:
  static void expect_the_scalar_result(std::span<Device* const> devices, const std::string& path) {
    for (const Device* device : devices) {
      SCOPED_TRACE(device->info().id);
      const Loaded loaded(path, device->info().id, {.context = 128, .max_sequences = 2});
      expect_the_scalar_devices_run(*loaded.session, path);
    }
  }
};

TEST_P(DeviceModel, SaysWhatTheScalarCpuSaysFromF16) { expect_the_scalar_result(devices_, kTrainedModel); }

TEST_P(DeviceModel, SaysWhatTheScalarCpuSaysFromQ8) {
  expect_the_scalar_result(test::quick_ones(devices_), kQuantizedModel);
}

SHUNT_FOR_EACH_API(DeviceModel);

}  // namespace
}  // namespace shunt::models
