#include "devices/webgpu/commands.h"

namespace shunt::webgpu {

Owned<BindGroupHandle> make_group(const Context& context, const Pipeline& pipeline,
                                  std::span<const BindGroupEntry> entries) {
  const BindGroupDescriptor descriptor{
      .layout = pipeline.layout.get(), .entry_count = entries.size(), .entries = entries.data()};
  return {context.call().DeviceCreateBindGroup(context.handle(), &descriptor), {context.call().BindGroupRelease}};
}

Commands::Commands(const Context& context)
    : context_(context),
      encoder_(context.call().DeviceCreateCommandEncoder(context.handle(), nullptr),
               {context.call().CommandEncoderRelease}) {}

void Commands::dispatch(const Pipeline& pipeline, BindGroupHandle group, std::array<std::uint32_t, 2> grid) {
  const Functions& call = context_.call();
  if (pass_ == nullptr)
    pass_ = {call.CommandEncoderBeginComputePass(encoder_.get(), nullptr), {call.ComputePassEncoderRelease}};
  call.ComputePassEncoderSetPipeline(pass_.get(), pipeline.handle.get());
  call.ComputePassEncoderSetBindGroup(pass_.get(), 0, group, 0, nullptr);
  call.ComputePassEncoderDispatchWorkgroups(pass_.get(), grid[0], grid[1], 1);
}

void Commands::copy(BufferHandle from, std::uint64_t from_offset, BufferHandle to, std::uint64_t to_offset,
                    std::uint64_t bytes) {
  end_pass();
  context_.call().CommandEncoderCopyBufferToBuffer(encoder_.get(), from, from_offset, to, to_offset, bytes);
}

void Commands::submit() {
  const Functions& call = context_.call();
  end_pass();
  const Owned<CommandBufferHandle> finished(call.CommandEncoderFinish(encoder_.get(), nullptr),
                                            {call.CommandBufferRelease});
  const CommandBufferHandle handle = finished.get();
  call.QueueSubmit(context_.queue(), 1, &handle);
}

void Commands::end_pass() {
  if (pass_ == nullptr) return;
  context_.call().ComputePassEncoderEnd(pass_.get());
  pass_.reset();
}

}  // namespace shunt::webgpu
