// Commands for a device's queue: recorded once, submitted once. One thread at a time.
#pragma once

#include <array>
#include <span>

#include "devices/webgpu/context.h"
#include "devices/webgpu/pipeline.h"

namespace shunt::webgpu {

[[nodiscard]] Owned<BindGroupHandle> make_group(const Context& context, const Pipeline& pipeline,
                                                std::span<const BindGroupEntry> entries);

// WebGPU orders commands that use the same memory.
class Commands {
 public:
  explicit Commands(const Context& context);

  void dispatch(const Pipeline& pipeline, BindGroupHandle group, std::array<std::uint32_t, 2> grid);
  // REQUIRES: offsets and bytes are multiples of 4, and the buffers differ.
  void copy(BufferHandle from, std::uint64_t from_offset, BufferHandle to, std::uint64_t to_offset,
            std::uint64_t bytes);
  void submit();

 private:
  void end_pass();

  const Context& context_;
  Owned<CommandEncoderHandle> encoder_;
  Owned<ComputePassEncoderHandle> pass_;  // for consecutive dispatches; null: none is open
};

}  // namespace shunt::webgpu
