#include "devices/cuda/gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <set>

namespace shunt::cuda {
namespace {

constexpr const char* kTarget = "SHUNT_CUDA_TARGET";

// GPUs that run the newest kernels of this build may be taken for still newer ones, which run them too.
bool runs_kernels_of(std::uint32_t own, std::uint32_t named) {
  return std::ranges::none_of(cuda_modules(), [&](const CudaModule& module) {
    return module.is_for_one ? module.capability == named && named != own
                             : module.capability <= named && module.capability > own;
  });
}

Result<std::uint32_t> nvidia_capability(std::uint32_t own) {
  // NOLINTNEXTLINE(concurrency-mt-unsafe): the environment is set before threads are
  const char* const variable = std::getenv(kTarget);
  const std::string_view text = variable == nullptr ? "" : variable;
  if (text.empty()) return own;
  std::uint32_t named = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), named);
  if (error != std::errc() || end != text.data() + text.size() || named < 10)
    return fail(Code::invalid, fmt::format("{} is \"{}\", which is no compute capability; set it to a number such as "
                                           "80, for 8.0, or unset it",
                                           kTarget, text));
  if (!runs_kernels_of(own, named))
    return fail(Code::invalid,
                fmt::format("{} is {}, whose kernels a GPU of compute capability {}.{} cannot run; set it "
                            "to an older one, or unset it",
                            kTarget, named, own / 10, own % 10));
  return named;
}

// Returns the most bytes of shared memory that a block has on NVIDIA's GPUs of that capability and, of those that are
// not listed, on older ones: https://docs.nvidia.com/cuda/cuda-c-programming-guide/#compute-capabilities.
std::uint32_t shared_bytes_of(std::uint32_t capability) {
  struct Row {
    std::uint32_t from;  // capability
    std::uint32_t kib;
  };
  constexpr Row kRows[] = {{120, 99}, {90, 227}, {89, 99}, {87, 163}, {86, 99}, {80, 163}, {75, 64}, {0, 48}};
  return std::ranges::find_if(kRows, [&](const Row& row) { return capability >= row.from; })->kib * 1024;
}

// Returns "gfx90a" of "gfx90a:sramecc+:xnack-".
Result<std::string> amd_gfx(const Driver& driver, int device) {
  constexpr std::string_view kCall = "hipGetDeviceProperties";
  HipProperties properties{};
  if (driver.call().properties == nullptr)
    return fail(Code::unsupported,
                fmt::format("the driver lacks {}, which tells the GPU's kind; install a newer one", kCall));
  SHUNT_TRY(check(driver.call().properties(&properties, device), kCall));
  const std::string_view name(properties.gfx, strnlen(properties.gfx, sizeof(properties.gfx)));
  if (!name.starts_with("gfx"))
    return fail(Code::unsupported, fmt::format("{} says that the GPU is a \"{}\", which has no gfx number; install a "
                                               "newer driver",
                                               kCall, name));
  return std::string(name.substr(0, name.find(':')));
}

Status refuse_without_code_objects(std::string_view gfx) {
  std::set<std::string_view> built;
  for (const CudaModule& module : cuda_modules())
    built.insert(module.code_object_for.begin(), module.code_object_for.end());
  if (built.contains(gfx)) return {};
  return fail(Code::unsupported, fmt::format("this build has kernels for {}, not for {}; build one with "
                                             "-DSHUNT_HIP_ARCHITECTURES={}",
                                             fmt::join(built, ", "), gfx, gfx));
}

}  // namespace

int attribute_of(const Driver& driver, int device, int number) {
  int value = 0;
  return driver.call().device_attribute(&value, number, device) == kSuccess ? value : 0;
}

Result<CudaGpu> gpu_of(const Driver& driver, int device) {
  const AttributeNumbers& numbers = driver.api().attributes;
  const auto number = [&](int attribute) {
    return static_cast<std::uint32_t>(std::max(0, attribute_of(driver, device, attribute)));
  };
  CudaGpu gpu{.multiprocessors = number(numbers.compute_units),
              .shared_bytes = number(numbers.most_shared_memory_bytes)};
  if (driver.takes_ptx()) {
    SHUNT_TRY_ASSIGN(gpu.capability,
                     nvidia_capability(number(numbers.capability_major) * 10 + number(numbers.capability_minor)));
    gpu.shared_bytes = std::min(gpu.shared_bytes, shared_bytes_of(gpu.capability));
  } else {
    SHUNT_TRY_ASSIGN(gpu.gfx, amd_gfx(driver, device));
    SHUNT_TRY(refuse_without_code_objects(gpu.gfx));
  }
  return gpu;
}

}  // namespace shunt::cuda
