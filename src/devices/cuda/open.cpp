// The two rows that share this folder: CUDA, and HIP, whose driver has the same shape.
#include <fmt/format.h>

#include <algorithm>

#include "devices/cuda/device.h"
#include "devices/cuda/program.h"
#include "devices/registry.h"

namespace shunt {
namespace cuda {
namespace {

std::string missing_kernels(const DriverApi& api) {
  if (&api == &cuda_api()) return "built without CUDA: this build has no kernels for it, as clang++-19 was missing";
  return "built without HIP: this build has no kernels for it, as hipcc was missing";
}

BackendReport open(const DriverApi& api) {
  BackendReport report{.api = std::string(api.name)};
  const auto driver = Driver::open(api);
  const auto has_image = [&](const CudaModule& module) { return !image_for(**driver, module).empty(); };
  if (driver && std::ranges::none_of(cuda_modules(), has_image)) {
    report.absent_because = missing_kernels(api);
    return report;
  }
  if (!driver) {
    report.absent_because = driver.error().message;
    return report;
  }
  int count = 0;
  if (const int result = (*driver)->call().device_count(&count); result != kSuccess) {
    report.absent_because = error_of(result, "counting devices").error().message;
    return report;
  }
  report.absent_because = fmt::format("{}'s driver finds no device", api.vendor);
  for (int ordinal = 0; ordinal < count; ++ordinal) {
    auto device = make_cuda_device(*driver, ordinal);
    if (device)
      report.devices.push_back(std::move(*device));
    else
      report.absent_because = device.error().message;
  }
  return report;
}

}  // namespace
}  // namespace cuda

Result<BackendReport> open_cuda(const OpenOptions&) { return cuda::open(cuda::cuda_api()); }
Result<BackendReport> open_hip(const OpenOptions&) { return cuda::open(cuda::hip_api()); }

}  // namespace shunt
