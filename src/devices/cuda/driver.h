// The driver API of CUDA, and HIP's of the same shape: the calls in use, from a library opened at run time.
//
// The declarations are our own (calls.def), so that no toolkit is needed. Plain tables of pointers; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/system/shared_library.h"
#include "devices/cuda/handles.h"

namespace shunt::cuda {

struct DriverFunctions {
#define SHUNT_DRIVER_CALL(member, cuda, hip, parameters, arguments) int(*member) parameters = nullptr;
#include "devices/cuda/calls.def"
};

inline constexpr int kSuccess = 0;
inline constexpr int kNotReady = 600;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr int kUsualPriority = 0;  // of streams
inline constexpr int kHighPriority = -1;
inline constexpr unsigned kReadOnlyMapping = 8 | 2;  // of registered memory: it may be a file that is mapped to be read
inline constexpr unsigned kEventWithTime = 0;
inline constexpr unsigned kEventWithoutTime = 2;
inline constexpr int kStartsEarly = 6;      // an attribute of launches
inline constexpr int kMostSharedBytes = 8;  // an attribute of functions
inline constexpr int kCaptureRelaxed = 2;   // lets a driver load kernels during capture

// The numbers of the device attributes in use, which differ between the APIs.
struct AttributeNumbers {
#define SHUNT_DRIVER_ATTRIBUTE(member, cuda, hip) int member;
#include "devices/cuda/calls.def"
};

// CUDA or HIP.
struct DriverApi {
  std::string_view name;  // of the backend
  std::string_view title;
  std::string_view vendor;
  std::span<const char* const> functions;  // in the order of the table
  std::span<const char* const> libraries;  // tried in this order
  const char* library_variable;            // names a library to open instead
  std::string_view install;
  AttributeNumbers attributes;
};
[[nodiscard]] const DriverApi& cuda_api();
[[nodiscard]] const DriverApi& hip_api();

// Makes the error "what: out of memory (2)" with the matching code. REQUIRES: `number` is an error.
[[nodiscard]] std::unexpected<Error> error_of(int number, std::string_view what);
[[nodiscard]] inline Status check(int number, std::string_view what) {
  if (number == kSuccess) return {};
  return error_of(number, what);
}

// The library, initialized. It stays loaded until the process ends, because its own threads may run.
class Driver {
 public:
  // Errors: unsupported, with the stage where it stopped and what would help.
  [[nodiscard]] static Result<std::shared_ptr<const Driver>> open(const DriverApi& api);

  [[nodiscard]] const DriverApi& api() const { return *api_; }
  [[nodiscard]] const DriverFunctions& call() const { return functions_; }
  // Returns whether the library computes on the CPU, as it tells by exporting shunt_driver_is_simulated.
  [[nodiscard]] bool simulated() const { return simulated_; }
  // Returns whether it takes PTX: CUDA does, and a HIP over CUDA that exports shunt_driver_takes_ptx.
  [[nodiscard]] bool takes_ptx() const { return takes_ptx_; }

 private:
  Driver() = default;
  [[nodiscard]] Status load();

  const DriverApi* api_ = nullptr;
  DriverFunctions functions_;
  bool simulated_ = false;
  bool takes_ptx_ = false;
};

}  // namespace shunt::cuda
