// Host memory as device buffers: page-aligned, zeroed, and backed by the system only where it is touched, by all memory
// nodes in turn if it is large.
#pragma once

#include <memory>
#include <optional>
#include <span>

#include "devices/device.h"

namespace shunt::cpu {

// Errors: out_of_memory, with the sizes requested and free.
[[nodiscard]] Result<std::unique_ptr<Buffer>> allocate_host(std::uint64_t bytes);
// Asks the system for huge pages behind the first kSmallPagesBytes, for memory that fills up from its start: reading
// much of it takes fewer translations of addresses, and filling little of it no more memory.
void prefer_huge_pages(std::span<std::byte> memory);
inline constexpr std::size_t kSmallPagesBytes = std::size_t{2} << 20U;
// `owner`, or else the caller, keeps the memory alive. Only programs that bind it as an output write to it.
[[nodiscard]] std::unique_ptr<Buffer> wrap_host(std::span<const std::byte> memory, std::shared_ptr<const void> owner);

// In bytes; nullopt if the system does not report it. The machine's memory, and what this process can still take of it.
[[nodiscard]] std::optional<std::uint64_t> total_memory();
[[nodiscard]] std::optional<std::uint64_t> available_memory();

}  // namespace shunt::cpu
