// Host memory as device buffers: page-aligned, zeroed, and taken from the system only where it is touched.
#pragma once

#include <memory>
#include <optional>

#include "devices/device.h"

namespace shunt::cpu {

// Errors: out_of_memory with what was asked and what is free.
[[nodiscard]] Result<std::unique_ptr<Buffer>> allocate_host(std::uint64_t bytes);
// `owner` keeps the memory, or the caller; only programs that have it as the place of a result write it.
[[nodiscard]] std::unique_ptr<Buffer> wrap_host(std::span<const std::byte> memory, std::shared_ptr<const void> owner);

// In bytes; nothing where the system does not tell. All of the machine's, and what this process can still take of it.
[[nodiscard]] std::optional<std::uint64_t> total_memory();
[[nodiscard]] std::optional<std::uint64_t> available_memory();

}  // namespace shunt::cpu
