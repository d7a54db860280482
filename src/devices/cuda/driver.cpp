#include "devices/cuda/driver.h"

#include <fmt/format.h>

#include <cstdlib>

namespace shunt::cuda {
namespace {

// X(number, meaning, code)
#define SHUNT_DRIVER_ERRORS(X)                                                      \
  X(1, "invalid value", internal)                                                   \
  X(2, "out of memory", out_of_memory)                                              \
  X(3, "not initialized", internal)                                                 \
  X(4, "the driver is shutting down", device_lost)                                  \
  X(34, "only a stub of the driver is installed", unsupported)                      \
  X(46, "the devices are busy or unavailable", device_lost)                         \
  X(100, "no device", unsupported)                                                  \
  X(101, "invalid device", internal)                                                \
  X(200, "invalid kernel image", internal)                                          \
  X(201, "invalid context", internal)                                               \
  X(209, "no kernel image for this GPU", unsupported)                               \
  X(214, "uncorrectable memory error", device_lost)                                 \
  X(218, "invalid PTX", internal)                                                   \
  X(220, "NVLink error", device_lost)                                               \
  X(222, "the driver is too old for this PTX", unsupported)                         \
  X(304, "error of the operating system", internal)                                 \
  X(400, "invalid handle", internal)                                                \
  X(500, "not found", internal)                                                     \
  X(600, "not ready", internal)                                                     \
  X(700, "illegal address", device_lost)                                            \
  X(701, "too few registers or threads for the kernel", internal)                   \
  X(702, "the driver ended a kernel that ran too long", timed_out)                  \
  X(709, "the context is destroyed", device_lost)                                   \
  X(710, "an assertion failed on the device", device_lost)                          \
  X(714, "stack error", device_lost)                                                \
  X(715, "illegal instruction", device_lost)                                        \
  X(716, "misaligned address", device_lost)                                         \
  X(717, "invalid address space", device_lost)                                      \
  X(718, "invalid program counter", device_lost)                                    \
  X(719, "the kernel failed", device_lost)                                          \
  X(801, "not supported", unsupported)                                              \
  X(802, "the system is not ready: start the fabric manager", unsupported)          \
  X(803, "the driver and its kernel module are of different versions", unsupported) \
  X(900, "not allowed while recording", internal)                                   \
  X(901, "the recording was spoilt", internal)                                      \
  X(999, "unknown error", device_lost)

struct Meaning {
  std::string_view words = "an error";
  Code code = Code::internal;
};

Meaning meaning_of(int number) {
  switch (number) {
#define SHUNT_CASE(value, words, code) \
  case value:                          \
    return {words, Code::code};
    SHUNT_DRIVER_ERRORS(SHUNT_CASE)
#undef SHUNT_CASE
    default:
      return {};
  }
}

constexpr const char* kCudaFunctions[] = {
#define SHUNT_DRIVER_CALL(member, cuda, hip, parameters, arguments) #cuda,
#include "devices/cuda/calls.def"
};
constexpr const char* kHipFunctions[] = {
#define SHUNT_DRIVER_CALL(member, cuda, hip, parameters, arguments) #hip,
#include "devices/cuda/calls.def"
};
constexpr AttributeNumbers kCudaAttributes = {
#define SHUNT_DRIVER_ATTRIBUTE(member, cuda, hip) .member = cuda,
#include "devices/cuda/calls.def"
};
constexpr AttributeNumbers kHipAttributes = {
#define SHUNT_DRIVER_ATTRIBUTE(member, cuda, hip) .member = hip,
#include "devices/cuda/calls.def"
};
constexpr const char* kCudaLibraries[] = {"libcuda.so.1"};
constexpr const char* kHipLibraries[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};

}  // namespace

const DriverApi& cuda_api() {
  static constexpr DriverApi kApi = {.name = "cuda",
                                     .title = "CUDA",
                                     .vendor = "NVIDIA",
                                     .functions = kCudaFunctions,
                                     .libraries = kCudaLibraries,
                                     .library_variable = "SHUNT_CUDA_LIBRARY",
                                     .install = "install NVIDIA's driver",
                                     .attributes = kCudaAttributes};
  return kApi;
}

const DriverApi& hip_api() {
  static constexpr DriverApi kApi = {.name = "hip",
                                     .title = "HIP",
                                     .vendor = "AMD",
                                     .functions = kHipFunctions,
                                     .libraries = kHipLibraries,
                                     .library_variable = "SHUNT_HIP_LIBRARY",
                                     .install = "on Debian and Ubuntu install libamdhip64-5, or AMD's ROCm",
                                     .attributes = kHipAttributes};
  return kApi;
}

std::unexpected<Error> error_of(int number, std::string_view what) {
  const Meaning meaning = meaning_of(number);
  return fail(meaning.code, fmt::format("{}: {} ({})", what, meaning.words, number));
}

Result<std::shared_ptr<const Driver>> Driver::open(const DriverApi& api) {
  std::shared_ptr<Driver> driver(new Driver);
  driver->api_ = &api;
  SHUNT_TRY(driver->load());
  if (const int result = driver->functions_.init(0); result != kSuccess)
    return fail(Code::unsupported, fmt::format("{}; {}", error_of(result, api.functions[0]).error().message,
                                               "a GPU and a driver that fits it are needed"));
  return driver;
}

Status Driver::load() {
  SHUNT_TRY_ASSIGN(const SharedLibrary library,
                   SharedLibrary::open(api_->libraries, api_->library_variable, api_->install));
  std::size_t next = 0;
  std::string missing;
#define SHUNT_DRIVER_CALL(member, cuda, hip, parameters, arguments)           \
  functions_.member = library.find<int(*) parameters>(api_->functions[next]); \
  if (functions_.member == nullptr) missing = api_->functions[next];          \
  ++next;
#define SHUNT_OPTIONAL_DRIVER_CALL(member, cuda, hip, parameters, arguments) \
  functions_.member = library.find<int(*) parameters>(api_->functions[next++]);
#include "devices/cuda/calls.def"
  simulated_ = library.find<void (*)()>("shunt_driver_is_simulated") != nullptr;
  takes_ptx_ = api_ == &cuda_api() || library.find<void (*)()>("shunt_driver_takes_ptx") != nullptr;
  if (missing.empty()) return {};
  return fail(Code::unsupported, fmt::format("{} lacks {}; install a newer driver", library.name(), missing));
}

}  // namespace shunt::cuda
