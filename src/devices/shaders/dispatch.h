// A run of ops as dispatches of shader kernels: what the backends of Vulkan, OpenGL, WebGPU and Metal record.
//
// A program owns one buffer of blocks: Parameters at its beginning, then for each dispatch its uniform block and its
// constants. Plain values; the buffers that they name belong to the caller. Any thread.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "devices/device.h"
#include "devices/shaders/hazards.h"
#include "ops/shader.h"

namespace shunt {

// Alignments are powers of two.
struct DispatchLimits {
  ShaderLimits shader;
  std::uint64_t storage_alignment_bytes = 4;   // of the offset of a storage binding
  std::uint64_t uniform_alignment_bytes = 16;  // of the offset of a uniform binding
  bool binds_whole_buffers = false;            // kernels see all of a buffer, not only what is bound
};

struct Dispatch {
  SpecializedShader kernel;
  std::string name;      // of the node
  std::uint32_t op = 0;  // of the program's, by number
  // It reads or overwrites what dispatches since the last barrier wrote or read: one goes before it.
  bool needs_barrier = false;
  std::array<std::uint32_t, 2> grid{};   // workgroups along x and y
  std::vector<std::byte> block;          // content of the binding kCallBinding
  std::vector<std::uint32_t> constants;  // empty: none
  std::uint64_t first_pass_words = 0;
  std::uint64_t block_at = 0;  // in the buffer of blocks
  std::uint64_t constants_at = 0;
  std::uint32_t constants_binding = 0;
  // What is bound at kOutputBinding and on, in whole words; no buffer: nothing of the call, but perhaps the constants.
  std::array<Binding, kMaxShaderOperands> operands;
};

struct DispatchPlan {
  std::vector<Dispatch> dispatches;  // those that have work to do, in the order of the ops
  std::uint64_t block_bytes = 0;
  Hazards hazards;  // of all dispatches together
  // Puts all but the Parameters in place. REQUIRES: blocks.size() >= block_bytes.
  void write_blocks(std::span<std::byte> blocks) const;
};

// Errors: unsupported where an op has no kernel.
[[nodiscard]] Result<DispatchPlan> plan_dispatches(std::span<const ProgramOp> ops, const DispatchLimits& limits);

// Device::supports() of a device that runs shader kernels.
[[nodiscard]] Support dispatch_support(std::span<const OpCall> run, const DispatchLimits& limits);

}  // namespace shunt
