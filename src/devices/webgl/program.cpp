#include "devices/webgl/program.h"

#include <algorithm>
#include <cstring>

namespace shunt::webgl {
namespace {

constexpr std::uint64_t kWordBytes = sizeof(std::uint32_t);
constexpr std::uint64_t kRowBytes = kRowWords * kWordBytes;

// The scratch rectangle drawn to instead of `area` of a target: the same columns, the first rows.
Rectangle in_scratch(const Rectangle& area) { return {area.x, 0, area.width, area.height}; }

std::uint64_t scratch_bytes_of(const Rectangle& area) {
  if (area.height > 1) return static_cast<std::uint64_t>(area.height) * kRowBytes;
  return static_cast<std::uint64_t>(area.x + area.width) * kWordBytes;
}

// Bytes that an op's first pass needs. Returns 0 if they exceed a texture; the kernel then works without a first pass.
std::uint64_t first_pass_bytes(std::uint64_t words, std::uint64_t most) {
  if (words == 0 || words > most / kWordBytes) return 0;
  return scratch_bytes_of(rectangle_of(0, words));
}

}  // namespace

std::uint64_t WebglProgram::scratch_bytes_of(const OpCall& call, const Shader& shader, std::uint64_t most) {
  const ShaderKernel& kernel = *shader.kernel;
  std::uint64_t bytes = (call.output->span_bytes() + kRowBytes - 1) / kRowBytes * kRowBytes + kRowBytes;
  if (kernel.constants != nullptr) bytes += kernel.constants(call).size() * kWordBytes;
  if (kernel.first_pass_words != nullptr) bytes += first_pass_bytes(kernel.first_pass_words(call), most);
  return bytes;
}

Result<std::unique_ptr<WebglProgram>> WebglProgram::create(std::shared_ptr<Context> context, Kernels& kernels,
                                                           const ProgramRequest& request) {
  SHUNT_TRY_ASSIGN(DispatchPlan plan, plan_dispatches(request.ops, context->limits()));
  std::unique_ptr<WebglProgram> program(new WebglProgram(std::move(context), kernels));
  program->name_ = request.name;
  for (const Dispatch& dispatch : plan.dispatches) SHUNT_TRY(program->add(dispatch));
  SHUNT_TRY(program->allocate_scratch());
  SHUNT_TRY(program->upload(plan));
  return program;
}

Status WebglProgram::add(Dispatch dispatch) {
  SHUNT_TRY_ASSIGN(const Kernel kernel, kernels_.of(dispatch.kernel));
  const Binding& output = dispatch.operands[0];
  Launch step{.kernel = kernel, .target = static_cast<const Texture*>(output.buffer)};
  if (kernel.scatters)
    step.area = step.target->whole();
  else
    step.area = rectangle_of(output.offset / kWordBytes, output.bytes / kWordBytes);
  step.reads_target = std::ranges::any_of(std::span(dispatch.operands).subspan(1),
                                          [&](const Binding& input) { return input.buffer == output.buffer; });
  if (!dispatch.constants.empty()) {
    SHUNT_TRY_ASSIGN(step.constants, constants_of(dispatch));
  }
  if (kernel.first_pass != 0 &&
      first_pass_bytes(dispatch.first_pass_words, context_->limits().shader.largest_binding_bytes) > 0)
    step.first_pass = rectangle_of(0, dispatch.first_pass_words);
  step.dispatch = std::move(dispatch);
  steps_.push_back(std::move(step));
  return {};
}

Result<const Texture*> WebglProgram::constants_of(const Dispatch& dispatch) {
  const auto known = std::ranges::find(constants_, dispatch.constants);
  if (known != constants_.end()) return constants_textures_[static_cast<std::size_t>(known - constants_.begin())].get();
  const auto bytes = std::as_bytes(std::span(dispatch.constants));
  SHUNT_TRY_ASSIGN(std::unique_ptr<Texture> texture, Texture::create(context_, bytes.size()));
  SHUNT_TRY(texture->write(0, bytes));
  scratch_bytes_ += bytes.size();
  constants_.push_back(dispatch.constants);
  constants_textures_.push_back(std::move(texture));
  return constants_textures_.back().get();
}

Status WebglProgram::allocate_scratch() {
  std::uint64_t bytes = 0;
  std::uint64_t first_bytes = 0;
  for (const Launch& step : steps_) {
    if (!step.kernel.scatters || step.reads_target) bytes = std::max(bytes, webgl::scratch_bytes_of(step.area));
    if (step.first_pass.height > 0) first_bytes = std::max(first_bytes, webgl::scratch_bytes_of(step.first_pass));
  }
  const auto allocate = [this](std::unique_ptr<Texture>& texture, std::uint64_t size) -> Status {
    if (size == 0) return {};
    SHUNT_TRY_ASSIGN(texture, Texture::create(context_, size));
    scratch_bytes_ += size;
    return {};
  };
  SHUNT_TRY(allocate(scratch_, bytes));
  return allocate(first_pass_, first_bytes);
}

Status WebglProgram::upload(const DispatchPlan& plan) {
  std::vector<std::byte> blocks(plan.block_bytes);
  plan.write_blocks(blocks);
  for (const Launch& step : steps_) {
    const auto put_offset = [&](std::uint64_t operand, std::uint32_t value) {
      std::memcpy(blocks.data() + step.dispatch.block_at + operand * kWordBytes, &value, sizeof(value));
    };
    // Unused offsets carry what kernels must know (ops/texture.glsl).
    if (step.kernel.scatters) put_offset(1, static_cast<std::uint32_t>(step.area.height));
    if (step.first_pass.height > 0) put_offset(kFirstPassBinding - kOutputBinding, 1);
  }
  const Functions& call = context_->call();
  call.GenBuffers(1, &blocks_);
  call.BindBuffer(kUniformBuffer, blocks_);
  call.BufferData(kUniformBuffer, static_cast<GLsizeiptr>(blocks.size()), blocks.data(), kDynamicDraw);
  scratch_bytes_ += blocks.size();
  return context_->check("bufferData");
}

WebglProgram::~WebglProgram() {
  if (done_ != nullptr) context_->call().DeleteSync(done_);
  if (blocks_ != 0) context_->call().DeleteBuffers(1, &blocks_);
}

void WebglProgram::bind(const Launch& step, GLuint program, const Texture* first_pass) const {
  const Functions& call = context_->call();
  const Dispatch& dispatch = step.dispatch;
  call.UseProgram(program);
  call.BindBufferRange(kUniformBuffer, kCallBinding, blocks_, static_cast<GLintptr>(dispatch.block_at),
                       static_cast<GLsizeiptr>(dispatch.block.size()));
  call.BindBufferRange(kUniformBuffer, kParametersBinding, blocks_, 0, sizeof(Parameters));
  for (std::uint32_t operand = 0; operand < kMaxShaderOperands; ++operand) {
    const auto* texture = static_cast<const Texture*>(dispatch.operands[operand].buffer);
    // Points do not read what they write, and a texture being drawn to must not be bound.
    if (operand == 0 && step.kernel.scatters) texture = nullptr;
    if (step.constants != nullptr && kOutputBinding + operand == dispatch.constants_binding) texture = step.constants;
    if (first_pass != nullptr && kOutputBinding + operand == kFirstPassBinding) texture = first_pass;
    call.ActiveTexture(kTexture0 + operand);
    call.BindTexture(kTexture2D, texture == nullptr ? kernels_.nothing().name() : texture->name());
  }
}

void WebglProgram::draw_first_pass(const Launch& step) const {
  const Functions& call = context_->call();
  const Rectangle& area = step.first_pass;
  bind(step, step.kernel.first_pass, nullptr);
  call.BindFramebuffer(kFramebuffer, first_pass_->framebuffer());
  call.Viewport(area.x, area.y, area.width, area.height);
  call.DrawArrays(kTriangles, 0, 3);
}

void WebglProgram::draw(const Launch& step) const {
  const Functions& call = context_->call();
  const Rectangle scratch = in_scratch(step.area);
  const bool in_place = step.kernel.scatters && !step.reads_target;
  const bool has_first_pass = step.first_pass.height > 0;
  if (has_first_pass) draw_first_pass(step);
  if (step.kernel.scatters && !in_place) scratch_->copy(*step.target, step.area, scratch);
  bind(step, step.kernel.program, has_first_pass ? first_pass_.get() : nullptr);
  call.BindFramebuffer(kFramebuffer, in_place ? step.target->framebuffer() : scratch_->framebuffer());
  if (step.kernel.scatters) {
    call.Viewport(0, 0, static_cast<GLsizei>(kRowWords), step.area.height);
    const std::uint32_t invocations = step.dispatch.grid[0] * step.dispatch.grid[1] * kShaderGroupSize;
    call.DrawArrays(kPoints, 0, static_cast<GLsizei>(invocations));
  } else {
    call.Viewport(scratch.x, scratch.y, scratch.width, scratch.height);
    call.DrawArrays(kTriangles, 0, 3);
  }
  if (!in_place) step.target->copy(*scratch_, scratch, step.area);
}

Status WebglProgram::submit(const Submission& submission, const Deadline& deadline) {
  const Functions& call = context_->call();
  call.BindBuffer(kUniformBuffer, blocks_);
  call.BufferSubData(kUniformBuffer, 0, sizeof(submission.parameters), &submission.parameters);
  was_cut_short_ = false;
  for (const Launch& step : steps_) {
    if (!submission.includes(step.dispatch.op)) continue;
    was_cut_short_ = has_passed(deadline);
    if (was_cut_short_) break;
    draw(step);
  }
  if (done_ != nullptr) call.DeleteSync(done_);
  done_ = call.FenceSync(kSyncGpuCommandsComplete, 0);
  call.Flush();
  return context_->check("drawArrays");
}

Result<bool> WebglProgram::has_ended() const {
  const Functions& call = context_->call();
  GLint status = kUnsignaled;
  if (call.IsContextLost() == 0) {
    GLsizei length = 0;
    call.GetSynciv(done_, kSyncStatus, 1, &length, &status);
    if (status == kUnsignaled) return false;
  }
  SHUNT_TRY(context_->check("getSyncParameter"));
  return true;
}

}  // namespace shunt::webgl
