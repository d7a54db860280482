// A run of ops as dispatches of shader kernels, which the backends of Vulkan, OpenGL, WebGPU and Metal record.
//
// A program owns one buffer of blocks: first Parameters, then for each dispatch its uniform block and its constants.
// Plain values; the buffers they name belong to the caller. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "devices/device.h"
#include "devices/hazards.h"
#include "ops/shader.h"

namespace shunt {

// Alignments are powers of two.
struct DispatchLimits {
  ShaderLimits shader;
  std::uint64_t storage_alignment_bytes = 4;   // of the offset of a storage binding
  std::uint64_t uniform_alignment_bytes = 16;  // of the offset of a uniform binding
  bool binds_whole_buffers = false;            // kernels see a whole buffer, not only the bound range
};

struct Dispatch {
  SpecializedShader kernel;
  std::string name;      // of the node
  std::uint32_t op = 0;  // index in the program
  // It touches what dispatches since the last barrier wrote, or overwrites what they read: put a barrier before it.
  bool needs_barrier = false;
  std::array<std::uint32_t, 2> grid{};   // workgroups along x and y
  std::vector<std::byte> block;          // bound at kCallBinding
  std::vector<std::uint32_t> constants;  // empty: none
  std::uint64_t first_pass_words = 0;
  std::uint64_t block_at = 0;  // in the buffer of blocks
  std::uint64_t constants_at = 0;
  std::uint32_t constants_binding = 0;
  // Bound from kOutputBinding on, in whole words. No buffer: no operand of the call, but possibly the constants.
  std::array<Binding, kMaxShaderOperands> operands;
};

struct DispatchPlan {
  std::vector<Dispatch> dispatches;  // those with work to do, in the order of the ops
  std::uint64_t block_bytes = 0;
  Hazards hazards;  // of all dispatches together
  // Writes all blocks except Parameters. REQUIRES: blocks.size() >= block_bytes.
  void write_blocks(std::span<std::byte> blocks) const;
};

// Errors: unsupported if an op has no kernel.
[[nodiscard]] Result<DispatchPlan> plan_dispatches(std::span<const ProgramOp> ops, const DispatchLimits& limits);

// Device::supports() for a device that runs shader kernels.
[[nodiscard]] Support dispatch_support(std::span<const OpCall> run, const DispatchLimits& limits);

}  // namespace shunt
