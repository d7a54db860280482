#include <fmt/format.h>

#include <fstream>

#include "base/system/shared_library.h"
#include "devices/cpu/memory.h"
#include "devices/sim/spec.h"

namespace shunt {
namespace {

std::optional<std::uint64_t> number_in(const std::string& file) {
  std::ifstream stream(file);
  std::uint64_t number = 0;
  if (stream >> number) return number;
  return std::nullopt;
}

// As Linux's amdgpu driver reports it: https://docs.kernel.org/gpu/amdgpu/driver-misc.html.
std::optional<std::uint64_t> free_of_amd(const std::string& pci_address) {
  const std::string folder = fmt::format("/sys/bus/pci/devices/{}/", pci_address);
  const auto total = number_in(folder + "mem_info_vram_total");
  const auto used = number_in(folder + "mem_info_vram_used");
  if (!total || !used || *used > *total) return std::nullopt;
  return *total - *used;
}

// NVIDIA's management library, which needs no context: https://docs.nvidia.com/deploy/nvml-api/.
class Nvml {
 public:
  Nvml() {
    const auto library =
        SharedLibrary::open("libnvidia-ml.so.1", "SHUNT_NVML_LIBRARY", "it comes with NVIDIA's driver");
    if (!library) return;
    const auto init = library->find<int (*)()>("nvmlInit_v2");
    find_ = library->find<int (*)(const char*, void**)>("nvmlDeviceGetHandleByPciBusId_v2");
    ask_ = library->find<int (*)(void*, Memory*)>("nvmlDeviceGetMemoryInfo");
    end_ = library->find<int (*)()>("nvmlShutdown");
    if (end_ != nullptr) started_ = init != nullptr && find_ != nullptr && ask_ != nullptr && init() == 0;
  }
  ~Nvml() {
    if (started_) static_cast<void>(end_());
  }
  Nvml(const Nvml&) = delete;
  Nvml& operator=(const Nvml&) = delete;

  [[nodiscard]] std::optional<std::uint64_t> free_of(const std::string& pci_address) const {
    void* device = nullptr;
    Memory memory;
    if (!started_ || find_(pci_address.c_str(), &device) != 0 || ask_(device, &memory) != 0) return std::nullopt;
    return memory.free_bytes;
  }

 private:
  struct Memory {
    unsigned long long total_bytes = 0;
    unsigned long long free_bytes = 0;
    unsigned long long used_bytes = 0;
  };
  int (*find_)(const char* pci_address, void** device) = nullptr;
  int (*ask_)(void* device, Memory* memory) = nullptr;
  int (*end_)() = nullptr;
  bool started_ = false;
};

}  // namespace

std::map<std::string, std::uint64_t> free_memory(std::span<const DeviceInfo> devices) {
  std::map<std::string, std::uint64_t> found;
  std::optional<Nvml> nvidia;  // started once, and only if there is such a GPU
  const auto ask = [&](const DeviceInfo& device) -> std::optional<std::uint64_t> {
    if (device.vendor == sim::kVendor) return device.memory_bytes;
    if (device.memory_resource == "host") return cpu::available_memory();
    if (device.pci_address.empty()) return std::nullopt;
    if (const auto bytes = free_of_amd(device.pci_address)) return bytes;
    if (!device.hardware.starts_with("10de:")) return std::nullopt;
    if (!nvidia) nvidia.emplace();
    return nvidia->free_of(device.pci_address);
  };
  for (const DeviceInfo& device : devices)
    if (!found.contains(device.memory_resource))
      if (const auto bytes = ask(device)) found.emplace(device.memory_resource, *bytes);
  return found;
}

}  // namespace shunt
