// The two backends in this folder: CUDA, and HIP, whose driver has the same shape.
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "devices/backend.h"
#include "devices/cuda/device.h"
#include "devices/cuda/program.h"

namespace shunt {
namespace cuda {
namespace {

// Returns whether this build contains kernels in a form.
bool is_built(std::span<const std::byte> CudaModule::* form) {
  return std::ranges::any_of(cuda_modules(), [&](const CudaModule& module) { return !(module.*form).empty(); });
}

std::string not_built(const DriverApi& api) {
  const bool is_cuda = &api == &cuda_api();
  return fmt::format("built without {}: {} was missing, which compiles its kernels; install {} and build again",
                     api.title, is_cuda ? "clang++-19" : "hipcc",
                     is_cuda ? "clang-19" : "hipcc, libamdhip64-dev and rocm-device-libs");
}

BackendReport open(const DriverApi& api, const OpenOptions& options) {
  BackendReport report{.api = std::string(api.name), .devices = {}};
  const bool takes_ptx = &api == &cuda_api() ||
                         SharedLibrary::named_by(api.library_variable) != nullptr;  // a library that replaces HIP's may
  report.stop(StartStage::not_built, not_built(api));
  if (!is_built(takes_ptx ? &CudaModule::ptx : &CudaModule::code_object)) return report;
  auto driver = Driver::open(api);
  if (!driver) {
    report.stop(std::move(driver).error());
    return report;
  }
  if (!is_built((*driver)->takes_ptx() ? &CudaModule::ptx : &CudaModule::code_object)) return report;
  int count = 0;
  if (const int result = (*driver)->call().device_count(&count); result != kSuccess) {
    report.stop(error_of(result, "counting devices").error());
    return report;
  }
  report.stop(StartStage::no_device, fmt::format("{}'s driver finds no device", api.vendor));
  for (int ordinal = 0; ordinal < count; ++ordinal) report.add(make_cuda_device(*driver, ordinal, options));
  return report;
}

}  // namespace
}  // namespace cuda

Result<BackendReport> open_cuda(const OpenOptions& options) { return cuda::open(cuda::cuda_api(), options); }
Result<BackendReport> open_hip(const OpenOptions& options) { return cuda::open(cuda::hip_api(), options); }

}  // namespace shunt
