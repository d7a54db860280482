#include "devices/cpu/memory.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdio>
#include <string>

#include "base/system/cgroup.h"
#include "base/system/memory_nodes.h"
#include "base/units.h"

namespace shunt::cpu {
namespace {

// Less is for few threads, or fits their caches.
constexpr std::uint64_t kInterleavedBytes = std::uint64_t{4} << 20U;

class HostBuffer final : public Buffer {
 public:
  HostBuffer(std::byte* memory, std::uint64_t bytes, bool owned, std::shared_ptr<const void> owner = nullptr)
      : memory_(memory), bytes_(bytes), owned_(owned), owner_(std::move(owner)) {}
  ~HostBuffer() override {
    if (owned_ && bytes_ != 0) munmap(memory_, bytes_);
  }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::span<std::byte> host() override { return {memory_, bytes_}; }

 private:
  std::byte* memory_;
  std::uint64_t bytes_;
  bool owned_;
  std::shared_ptr<const void> owner_;
};

// Reads a line such as "MemAvailable:   123 kB" of /proc/meminfo.
std::optional<std::uint64_t> meminfo(const char* format) {
  std::FILE* file = std::fopen("/proc/meminfo", "re");
  if (file == nullptr) return std::nullopt;
  std::optional<std::uint64_t> found;
  char line[256];
  unsigned long long kib = 0;
  while (!found && std::fgets(line, sizeof line, file) != nullptr)
    if (std::sscanf(line, format, &kib) == 1) found = std::uint64_t{kib} * 1024;
  static_cast<void>(std::fclose(file));
  return found;
}

}  // namespace

std::optional<std::uint64_t> total_memory() { return meminfo("MemTotal: %llu kB"); }
std::optional<std::uint64_t> available_memory() {
  const auto machine = meminfo("MemAvailable: %llu kB");
  const auto group = cgroup_available_memory();
  return machine && group ? std::min(*machine, *group) : machine ? machine : group;
}

Result<std::unique_ptr<Buffer>> allocate_host(std::uint64_t bytes) {
  const auto available = available_memory();
  if (available && bytes > *available)
    return fail(Code::out_of_memory,
                fmt::format("{} of host memory wanted, {} available", in_units(bytes), in_units(*available)));
  if (bytes == 0) return std::make_unique<HostBuffer>(nullptr, 0, true);
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED)
    return fail(Code::out_of_memory, fmt::format("the system refused {} of host memory", in_units(bytes)));
  auto buffer = std::make_unique<HostBuffer>(static_cast<std::byte*>(memory), bytes, true);
  if (bytes >= kInterleavedBytes) MemoryNodes::of_this_machine().interleave(buffer->host());
  return buffer;
}

void prefer_huge_pages(std::span<std::byte> memory) {
#ifdef MADV_HUGEPAGE
  if (memory.size() <= kSmallPagesBytes) return;
  const std::span<std::byte> rest = memory.subspan(kSmallPagesBytes);
  static_cast<void>(madvise(rest.data(), rest.size(), MADV_HUGEPAGE));  // a system without them refuses
#else
  static_cast<void>(memory);
#endif
}

std::unique_ptr<Buffer> wrap_host(std::span<const std::byte> memory, std::shared_ptr<const void> owner) {
  // A Buffer has one pointer type; whether it is written depends on the programs bound to it.
  return std::make_unique<HostBuffer>(const_cast<std::byte*>(memory.data()), memory.size(), false, std::move(owner));
}

}  // namespace shunt::cpu
