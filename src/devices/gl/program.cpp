#include "devices/gl/program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "devices/shaders/gl_names.h"

namespace shunt::gl {
namespace {

constexpr std::uint64_t kNothingBytes = 16;

}  // namespace

Kernels::Kernels(std::shared_ptr<Context> context) : context_(std::move(context)) {}

Result<std::unique_ptr<Kernels>> Kernels::create(std::shared_ptr<Context> context) {
  std::unique_ptr<Kernels> kernels(new Kernels(context));
  SHUNT_TRY_ASSIGN(kernels->nothing_, GlBuffer::create(std::move(context), kNothingBytes));
  return kernels;
}

Kernels::~Kernels() {
  const Current current(*context_);
  if (!current.status()) return;
  for (const auto& [kernel, program] : programs_) context_->call().DeleteProgram(program);
}

Result<GLuint> Kernels::of(const SpecializedShader& kernel) {
  GLuint& program = programs_[kernel];
  if (program == 0) {
    SHUNT_TRY_ASSIGN(program, compile(kernel));
  }
  return program;
}

Result<GLuint> Kernels::compile(const SpecializedShader& kernel) const {
  const Functions& call = context_->call();
  const std::string source = specialized(source_of(*kernel.shader, context_->api()), kernel.values);
  const GLchar* const text = source.data();
  const auto length = static_cast<GLint>(source.size());
  const GLuint object = call.CreateShader(kComputeShader);
  const GLuint program = call.CreateProgram();
  call.ShaderSource(object, 1, &text, &length);
  call.CompileShader(object);
  std::string why;
  if (!gl_succeeded(object, kCompileStatus, call.GetShaderiv)) {
    why = "it does not compile: " + gl_log_of(object, call.GetShaderiv, call.GetShaderInfoLog);
  } else {
    call.AttachShader(program, object);
    call.LinkProgram(program);
    if (!gl_succeeded(program, kLinkStatus, call.GetProgramiv))
      why = "it does not link: " + gl_log_of(program, call.GetProgramiv, call.GetProgramInfoLog);
  }
  call.DeleteShader(object);
  Status done = context_->check("glLinkProgram");
  if (done && !why.empty()) done = fail(Code::internal, why);
  if (done) return program;
  call.DeleteProgram(program);
  return fail_at(fmt::format("kernel {} on {}", kernel.shader->name, context_->description().renderer),
                 std::move(done).error());
}

Result<std::unique_ptr<GlProgram>> GlProgram::create(std::shared_ptr<Context> context, Kernels& kernels,
                                                     const ProgramRequest& request) {
  SHUNT_TRY_ASSIGN(DispatchPlan plan, plan_dispatches(request.ops, context->description().limits));
  std::unique_ptr<GlProgram> program(new GlProgram(std::move(context), kernels));
  const Current current(*program->context_);
  SHUNT_TRY(current.status());
  program->name_ = request.name;
  SHUNT_TRY_ASSIGN(program->blocks_, GlBuffer::create(program->context_, plan.block_bytes));
  std::vector<std::byte> blocks(plan.block_bytes);
  plan.write_blocks(blocks);
  SHUNT_TRY(program->blocks_->write(0, blocks));
  for (Dispatch& dispatch : plan.dispatches) {
    SHUNT_TRY_ASSIGN(const GLuint kernel, kernels.of(dispatch.kernel));
    program->steps_.push_back({std::move(dispatch), kernel});
  }
  return program;
}

GlProgram::~GlProgram() {
  const Current current(*context_);
  if (current.status()) context_->call().DeleteSync(done_);
}

void GlProgram::dispatch(const Launch& step) const {
  const Functions& call = context_->call();
  const auto bind = [&](GLenum target, std::uint32_t binding, GLuint buffer, std::uint64_t offset,
                        std::uint64_t bytes) {
    call.BindBufferRange(target, binding, buffer, static_cast<GLintptr>(offset), static_cast<GLsizeiptr>(bytes));
  };
  const Dispatch& planned = step.dispatch;
  if (planned.needs_barrier) call.MemoryBarrier(kShaderStorageBarrier);
  call.UseProgram(step.kernel);
  bind(kUniformBuffer, kCallBinding, blocks_->name(), planned.block_at, planned.block.size());
  bind(kUniformBuffer, kParametersBinding, blocks_->name(), 0, sizeof(Parameters));
  for (std::uint32_t operand = 0; operand < kMaxShaderOperands; ++operand) {
    const Binding& binding = planned.operands[operand];
    const std::uint32_t number = kOutputBinding + operand;
    if (!planned.constants.empty() && number == planned.constants_binding)
      bind(kShaderStorageBuffer, number, blocks_->name(), planned.constants_at,
           planned.constants.size() * sizeof(std::uint32_t));
    else if (binding.buffer == nullptr)
      bind(kShaderStorageBuffer, number, kernels_.nothing(), 0, kNothingBytes);
    else
      bind(kShaderStorageBuffer, number, static_cast<const GlBuffer*>(binding.buffer)->name(), binding.offset,
           binding.bytes);
  }
  call.DispatchCompute(planned.grid[0], planned.grid[1], 1);
}

Status GlProgram::submit(const Submission& submission, const Deadline& deadline) {
  const Functions& call = context_->call();
  SHUNT_TRY(blocks_->write(0, std::as_bytes(std::span(&submission.parameters, 1))));
  was_cut_short_ = false;
  for (const Launch& step : steps_) {
    if (!submission.includes(step.dispatch.op)) continue;
    was_cut_short_ = has_passed(deadline);
    if (was_cut_short_) break;
    dispatch(step);
  }
  call.MemoryBarrier(kAllBarriers);
  call.DeleteSync(done_);
  done_ = call.FenceSync(kSyncGpuCommandsComplete, 0);
  call.Flush();
  return context_->check("glDispatchCompute");
}

Result<bool> GlProgram::wait(std::uint64_t nanoseconds) const {
  const GLenum result = context_->call().ClientWaitSync(done_, kSyncFlushCommands, nanoseconds);
  SHUNT_TRY(context_->check_alive());
  SHUNT_TRY(context_->check("glClientWaitSync"));
  if (result == kTimeoutExpired) return false;
  if (result == kAlreadySignaled || result == kConditionSatisfied) return true;
  return fail(Code::internal, fmt::format("glClientWaitSync answered {:#06x}", result));
}

}  // namespace shunt::gl
