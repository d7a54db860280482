// Reads from a SPIR-V module what it needs of the device and of the call that run it. None of its words is trusted.
//
// Pure functions; any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "ops/shader.h"

namespace shunt {

// The needs of a compute shader.
struct SpirvNeeds {
  std::array<std::uint32_t, 3> group{1, 1, 1};  // invocations of a workgroup along each axis
  std::uint64_t shared_bytes = 0;
  bool f16 = false;
  bool integer_dot = false;
  bool subgroups = false;
  Specialization defaults{};  // of the specialization constants, by id

  [[nodiscard]] std::uint64_t group_size() const { return std::uint64_t{group[0]} * group[1] * group[2]; }
};

// Checks a whole module for a kernel with `inputs` inputs. Its words must be whole instructions of a version that
// Vulkan 1.1 accepts, and its one entry point a compute shader called main. It must ask for nothing that kernels cannot
// have, and bind what a call binds (shader.h). Function bodies are not checked. Errors: invalid, with the position;
// unsupported for capabilities.
[[nodiscard]] Result<SpirvNeeds> check_spirv(std::span<const std::uint32_t> words, std::uint32_t inputs);

// Returns an empty string, or why a device with these limits cannot run the module.
[[nodiscard]] std::string needs_refusal(const SpirvNeeds& needs, const ShaderLimits& limits);

}  // namespace shunt
