#include "devices/webgpu/buffer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "devices/webgpu/commands.h"

namespace shunt::webgpu {
namespace {

constexpr std::string_view kPatchKernel = R"(
struct Patch { word: u32, kept: u32, bits: u32, unused: u32 }
@group(0) @binding(0) var<uniform> patch_of: Patch;
@group(0) @binding(1) var<storage, read_write> words: array<u32>;
@compute @workgroup_size(1) fn main() {
  words[patch_of.word] = (words[patch_of.word] & patch_of.kept) | patch_of.bits;
}
)";

}  // namespace

Result<std::unique_ptr<WebGpuBuffer>> WebGpuBuffer::create(std::shared_ptr<Context> context, std::uint64_t bytes,
                                                           BufferUsage usage) {
  if (bytes > context->largest_buffer_bytes())
    return fail(Code::out_of_memory, fmt::format("a buffer can have {} at most", context->largest_buffer_bytes()));
  std::unique_ptr<WebGpuBuffer> buffer(new WebGpuBuffer(context, bytes));
  const BufferDescriptor descriptor{.usage = usage, .bytes = buffer->allocated_bytes()};
  context->open_scopes();
  buffer->handle_ = context->call().DeviceCreateBuffer(context->handle(), &descriptor);
  const auto outcome = context->close_scopes();
  SHUNT_TRY(context->settle(*outcome));
  return buffer;
}

WebGpuBuffer::~WebGpuBuffer() {
  if (handle_ == nullptr) return;
  context_->call().BufferDestroy(handle_);
  context_->call().BufferRelease(handle_);
}

std::uint64_t WebGpuBuffer::allocated_bytes() const { return std::max<std::uint64_t>(16, whole_words(bytes_)); }

Result<std::unique_ptr<Writer>> Writer::create(std::shared_ptr<Context> context) {
  std::unique_ptr<Writer> writer(new Writer(context));
  SHUNT_TRY_ASSIGN(Pipeline pipeline, make_pipeline(*context, "tail of a write", kPatchKernel));
  writer->pipeline_ = std::move(pipeline);
  SHUNT_TRY_ASSIGN(writer->patch_, WebGpuBuffer::create(std::move(context), 16, kUniform | kCopyTarget));
  return writer;
}

void Writer::write(const WebGpuBuffer& to, std::uint64_t offset, std::span<const std::byte> from) {
  const std::size_t whole = from.size() / 4 * 4;
  if (whole != 0) context_->call().QueueWriteBuffer(context_->queue(), to.handle(), offset, from.data(), whole);
  if (whole != from.size()) write_tail(to, offset + whole, from.subspan(whole));
}

// REQUIRES: 1 to 3 bytes.
void Writer::write_tail(const WebGpuBuffer& to, std::uint64_t offset, std::span<const std::byte> from) {
  const std::uint64_t begin = offset / kAlignment * kAlignment;
  std::uint32_t bits = 0;
  std::memcpy(&bits, from.data(), from.size());
  const std::array<std::uint32_t, 4> patch{static_cast<std::uint32_t>((offset - begin) / 4),
                                           ~std::uint32_t{0} << (8 * from.size()), bits, 0};
  context_->call().QueueWriteBuffer(context_->queue(), patch_->handle(), 0, patch.data(), sizeof(patch));
  const std::array<BindGroupEntry, 2> entries{
      BindGroupEntry{.binding = 0, .buffer = patch_->handle(), .bytes = sizeof(patch)},
      BindGroupEntry{.binding = 1,
                     .buffer = to.handle(),
                     .offset = begin,
                     .bytes = std::min(kAlignment, to.allocated_bytes() - begin)}};
  const Owned<BindGroupHandle> group = make_group(*context_, pipeline_, entries);
  Commands commands(*context_);
  commands.dispatch(pipeline_, group.get(), {1, 1});
  commands.submit();
}

}  // namespace shunt::webgpu
