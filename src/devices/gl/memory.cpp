#include "devices/gl/memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <vector>

namespace shunt::gl {
namespace {

constexpr std::uint64_t kMostBytes = static_cast<std::uint64_t>(std::numeric_limits<GLsizeiptr>::max()) - 3;
constexpr std::uint64_t kZeroBytes = std::uint64_t{1} << 20U;

}  // namespace

Result<std::unique_ptr<GlBuffer>> GlBuffer::create(std::shared_ptr<Context> context, std::uint64_t bytes) {
  std::unique_ptr<GlBuffer> buffer(new GlBuffer(std::move(context), bytes));
  SHUNT_TRY(buffer->allocate());
  return buffer;
}

Status GlBuffer::allocate() {
  if (bytes_ > kMostBytes) return fail(Code::out_of_memory, "more than can be addressed");
  const Current current(*context_);
  SHUNT_TRY(current.status());
  // Kernels access whole words.
  const std::uint64_t whole = std::max<std::uint64_t>(4, (bytes_ + 3) / 4 * 4);
  const Functions& call = context_->call();
  call.GenBuffers(1, &name_);
  call.BindBuffer(kCopyWriteBuffer, name_);
  call.BufferData(kCopyWriteBuffer, static_cast<GLsizeiptr>(whole), nullptr, kDynamicCopy);
  SHUNT_TRY(context_->check("glBufferData"));
  return clear(whole);
}

Status GlBuffer::clear(std::uint64_t bytes) {
  const Functions& call = context_->call();
  if (call.ClearBufferData != nullptr) {
    call.ClearBufferData(kCopyWriteBuffer, kR32Ui, kRedInteger, kUnsignedInt, nullptr);
    return context_->check("glClearBufferData");
  }
  const std::vector<std::byte> zeros(std::min(bytes, kZeroBytes));
  for (std::uint64_t at = 0; at < bytes; at += zeros.size())
    SHUNT_TRY(write(at, std::span(zeros).first(std::min<std::uint64_t>(zeros.size(), bytes - at))));
  return {};
}

GlBuffer::~GlBuffer() {
  const Current current(*context_);
  if (current.status()) context_->call().DeleteBuffers(1, &name_);
}

Status GlBuffer::write(std::uint64_t offset, std::span<const std::byte> from) {
  if (from.empty()) return {};
  const Functions& call = context_->call();
  call.BindBuffer(kCopyWriteBuffer, name_);
  call.BufferSubData(kCopyWriteBuffer, static_cast<GLintptr>(offset), static_cast<GLsizeiptr>(from.size()),
                     from.data());
  return context_->check("glBufferSubData");
}

Status GlBuffer::read(std::uint64_t offset, std::span<std::byte> to) {
  if (to.empty()) return {};
  const Functions& call = context_->call();
  const auto begin = static_cast<GLintptr>(offset);
  const auto size = static_cast<GLsizeiptr>(to.size());
  call.BindBuffer(kCopyWriteBuffer, name_);
  if (call.GetBufferSubData != nullptr) {
    call.GetBufferSubData(kCopyWriteBuffer, begin, size, to.data());
    return context_->check("glGetBufferSubData");
  }
  const void* const mapped = call.MapBufferRange(kCopyWriteBuffer, begin, size, kMapRead);
  if (mapped == nullptr) {
    SHUNT_TRY(context_->check("glMapBufferRange"));
    return fail(Code::internal, "glMapBufferRange: no address, and no error");
  }
  std::memcpy(to.data(), mapped, to.size());
  if (call.UnmapBuffer(kCopyWriteBuffer) == 0) return fail(Code::device_lost, "glUnmapBuffer: the content was lost");
  return context_->check("glUnmapBuffer");
}

}  // namespace shunt::gl
