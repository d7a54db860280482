// What a module of SPIR-V asks of the device and of the call that run it, read from its words with trust in none of
// them.
//
// Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ops/shader.h"

namespace shunt {

// A compute shader's needs.
struct SpirvNeeds {
  std::array<std::uint32_t, 3> group{1, 1, 1};  // invocations of a workgroup along each axis
  std::uint64_t shared_bytes = 0;
  bool f16 = false;
  bool integer_dot = false;
  bool subgroups = false;
  Specialization defaults{};  // of the constants with these ids

  [[nodiscard]] std::uint64_t group_size() const { return std::uint64_t{group[0]} * group[1] * group[2]; }
};

// Checks a whole module for a kernel with so many inputs: that its words are whole instructions of a version that
// Vulkan 1.1 takes, its one entry point is a compute shader called main, it asks for nothing that kernels cannot have,
// and what it binds is what a call binds (shader.h). It does not check what its functions do. Errors: invalid, with the
// place; unsupported for capabilities.
[[nodiscard]] Result<SpirvNeeds> check_spirv(std::span<const std::uint32_t> words, std::uint32_t inputs);

// Empty, or why a device with these limits cannot run it.
[[nodiscard]] std::string needs_refusal(const SpirvNeeds& needs, const ShaderLimits& limits);

}  // namespace shunt
