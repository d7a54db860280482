// The CPU's memory is WebAssembly's: it grows up to 4 GiB and never shrinks.
#include "devices/cpu/memory.h"

#include <fmt/format.h>

#include <cstdlib>
#include <cstring>
#include <memory>

namespace shunt::cpu {
namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{4} << 30U;
constexpr std::uint64_t kPageBytes = 65536;
constexpr std::size_t kAlignment = 64;

struct Free {
  void operator()(std::byte* memory) const { std::free(memory); }
};

class HostBuffer final : public Buffer {
 public:
  HostBuffer(std::span<std::byte> memory, std::unique_ptr<std::byte, Free> owned,
             std::shared_ptr<const void> owner = nullptr)
      : memory_(memory), owned_(std::move(owned)), owner_(std::move(owner)) {}

  [[nodiscard]] std::uint64_t bytes() const override { return memory_.size(); }
  [[nodiscard]] std::span<std::byte> host() override { return memory_; }

 private:
  std::span<std::byte> memory_;
  std::unique_ptr<std::byte, Free> owned_;
  std::shared_ptr<const void> owner_;
};

}  // namespace

std::optional<std::uint64_t> total_memory() { return kMostBytes; }
// Freed memory counts as taken: only the allocator knows of it.
std::optional<std::uint64_t> available_memory() { return kMostBytes - __builtin_wasm_memory_size(0) * kPageBytes; }

Result<std::unique_ptr<Buffer>> allocate_host(std::uint64_t bytes) {
  const auto out_of_memory = [&] {
    return fail(Code::out_of_memory, fmt::format("the browser refused {} bytes; WebAssembly has {} of {} bytes left",
                                                 bytes, *available_memory(), kMostBytes));
  };
  if (bytes > kMostBytes - kAlignment) return out_of_memory();
  const std::size_t whole = (static_cast<std::size_t>(bytes) + kAlignment - 1) / kAlignment * kAlignment;
  std::unique_ptr<std::byte, Free> memory;
  if (whole != 0) {
    memory.reset(static_cast<std::byte*>(std::aligned_alloc(kAlignment, whole)));
    if (memory == nullptr) return out_of_memory();
    std::memset(memory.get(), 0, whole);
  }
  const std::span<std::byte> span(memory.get(), static_cast<std::size_t>(bytes));
  return std::make_unique<HostBuffer>(span, std::move(memory));
}

void prefer_huge_pages(std::span<std::byte>) {}

std::unique_ptr<Buffer> wrap_host(std::span<const std::byte> memory, std::shared_ptr<const void> owner) {
  // A Buffer has one pointer type; weights are only ever read through it.
  return std::make_unique<HostBuffer>(std::span(const_cast<std::byte*>(memory.data()), memory.size()), nullptr,
                                      std::move(owner));
}

}  // namespace shunt::cpu
