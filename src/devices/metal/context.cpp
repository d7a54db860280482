#include "devices/metal/context.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace shunt::metal {
namespace {

constexpr std::uint64_t kSharedStorage = 0;  // MTLResourceStorageModeShared, cached and tracked by default
// The alignment that Intel and AMD GPUs require of a buffer's offset in the constant address space; Apple's require
// less.
constexpr std::uint64_t kConstantAlignment = 256;

}  // namespace

Result<std::shared_ptr<Context>> Context::create(std::shared_ptr<const ObjectiveC> runtime, Owned device) {
  std::shared_ptr<Context> context(new Context(std::move(runtime), std::move(device)));
  const Pool pool(context->runtime());
  const Messages& call = context->call();
  context->name_ = context->runtime().text(call.name(context->device()));
  context->limits_ = {.shader = {.language = ShaderLanguage::msl,
                                 .largest_binding_bytes = call.largest_buffer_bytes(context->device())},
                      .uniform_alignment_bytes = kConstantAlignment};
  context->queue_ = context->runtime().own(call.new_queue(context->device()));
  if (!context->queue_) return fail(Code::unsupported, fmt::format("{} grants no command queue", context->name_));
  return context;
}

Result<std::unique_ptr<MetalBuffer>> MetalBuffer::create(std::shared_ptr<const Context> context, std::uint64_t bytes) {
  const Pool pool(context->runtime());
  const Messages& call = context->call();
  const std::uint64_t words = std::max<std::uint64_t>(4, (bytes + 3) / 4 * 4);  // Metal has no empty buffers
  Owned buffer = context->runtime().own(call.new_buffer(context->device(), words, kSharedStorage));
  void* const memory = call.contents(buffer.get());
  if (memory == nullptr) return fail(Code::out_of_memory, "Metal gives no buffer");
  std::memset(memory, 0, words);  // Metal does not zero it
  const std::span host(static_cast<std::byte*>(memory), bytes);
  return std::unique_ptr<MetalBuffer>(new MetalBuffer(std::move(context), std::move(buffer), host));
}

}  // namespace shunt::metal
