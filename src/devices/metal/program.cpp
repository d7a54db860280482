#include "devices/metal/program.h"

#include <fmt/format.h>

#include <cstring>

namespace shunt::metal {
namespace {

constexpr std::uint64_t kLanguageVersion = (2U << 16U) + 3;  // MTLLanguageVersion2_3, as in cmake/shaders.cmake
constexpr std::uint64_t kTypeOfConstants = 33;               // MTLDataTypeUInt
constexpr Size kThreads = {kShaderGroupSize, 1, 1};

}  // namespace

Pipelines::Pipelines(std::shared_ptr<const Context> context) : context_(std::move(context)) {}

Result<std::unique_ptr<Pipelines>> Pipelines::create(std::shared_ptr<const Context> context) {
  std::unique_ptr<Pipelines> pipelines(new Pipelines(context));
  SHUNT_TRY_ASSIGN(pipelines->nothing_, MetalBuffer::create(std::move(context), 16));
  return pipelines;
}

Result<Id> Pipelines::of(const SpecializedShader& kernel) {
  Owned& pipeline = pipelines_[kernel];
  if (!pipeline) {
    SHUNT_TRY_ASSIGN(pipeline, compile(kernel));
  }
  return pipeline.get();
}

Result<Owned> Pipelines::compile(const SpecializedShader& kernel) const {
  const ObjectiveC& runtime = context_->runtime();
  const Messages& call = context_->call();
  const Pool pool(runtime);
  const auto refused = [&](std::string_view stage, Id error) {
    return fail(Code::internal, fmt::format("kernel {} on {}: {}: {}", kernel.shader->name, context_->name(), stage,
                                            runtime.describe(error)));
  };
  const Owned options = runtime.new_options();
  // By default Metal assumes that there are no infinities or NaN.
  call.set_fast_math(options.get(), false);
  call.set_language_version(options.get(), kLanguageVersion);
  Id error = nullptr;
  const Id source = runtime.string(std::string(kernel.shader->msl));
  const Owned library = runtime.own(call.new_library(context_->device(), source, options.get(), &error));
  if (!library) return refused("newLibraryWithSource", error);
  const Owned constants = runtime.new_constants();
  for (std::size_t id = 0; id < kSpecializationConstants; ++id)
    call.set_constant(constants.get(), &kernel.values[id], kTypeOfConstants, id);
  const Owned function =
      runtime.own(call.new_function(library.get(), runtime.string(kMslEntry), constants.get(), &error));
  if (!function) return refused(fmt::format("it has no function {}", kMslEntry), error);
  Owned pipeline = runtime.own(call.new_pipeline(context_->device(), function.get(), &error));
  if (!pipeline) return refused("newComputePipelineState", error);
  if (const std::uint64_t most = call.most_threads(pipeline.get()); most < kShaderGroupSize)
    return refused(fmt::format("{} threads to a group, and {} are needed", most, kShaderGroupSize), nullptr);
  return pipeline;
}

Result<std::unique_ptr<MetalProgram>> MetalProgram::create(std::shared_ptr<const Context> context, Pipelines& pipelines,
                                                           const ProgramRequest& request) {
  SHUNT_TRY_ASSIGN(const DispatchPlan plan, plan_dispatches(request.ops, context->limits()));
  std::unique_ptr<MetalProgram> program(new MetalProgram(std::move(context)));
  program->name_ = request.name;
  SHUNT_TRY_ASSIGN(program->blocks_, MetalBuffer::create(program->context_, plan.block_bytes));
  plan.write_blocks(program->blocks_->host());
  for (const Dispatch& dispatch : plan.dispatches) {
    SHUNT_TRY_ASSIGN(const Id pipeline, pipelines.of(dispatch.kernel));
    program->steps_.push_back({.pipeline = pipeline,
                               .groups = {dispatch.grid[0], dispatch.grid[1], 1},
                               .bound = program->bindings_of(dispatch, pipelines.nothing()),
                               .op = dispatch.op});
  }
  return program;
}

MetalProgram::Bindings MetalProgram::bindings_of(const Dispatch& dispatch, Id nothing) const {
  Bindings bound;
  bound[kCallBinding] = {blocks_->handle(), dispatch.block_at};
  bound[kParametersBinding] = {blocks_->handle(), 0};
  for (std::uint32_t operand = 0; operand < kMaxShaderOperands; ++operand) {
    const Binding& binding = dispatch.operands[operand];
    bound[kOutputBinding + operand] = {nothing, 0};
    if (binding.buffer != nullptr)
      bound[kOutputBinding + operand] = {static_cast<MetalBuffer*>(binding.buffer)->handle(), binding.offset};
  }
  if (!dispatch.constants.empty()) bound[dispatch.constants_binding] = {blocks_->handle(), dispatch.constants_at};
  return bound;
}

Result<Owned> MetalProgram::submit(const Submission& submission) {
  const ObjectiveC& runtime = context_->runtime();
  const Messages& call = context_->call();
  const Pool pool(runtime);
  std::memcpy(blocks_->host().data(), &submission.parameters, sizeof(submission.parameters));
  const Id commands = call.command_buffer(context_->queue());
  const Id encoder = call.encoder(commands);
  if (encoder == nullptr) return fail(Code::internal, "Metal gives no command buffer");
  encode(encoder, submission);
  call.end_encoding(encoder);
  call.commit(commands);
  return runtime.keep(commands);
}

// No barriers: this kind of encoder runs its dispatches in order, and each sees what earlier ones wrote.
void MetalProgram::encode(Id encoder, const Submission& submission) const {
  const Messages& call = context_->call();
  Bindings last;  // stays bound between dispatches
  for (const Launch& step : steps_) {
    if (!submission.includes(step.op)) continue;
    call.set_pipeline(encoder, step.pipeline);
    for (std::uint64_t binding = 0; binding < kShaderBindings; ++binding)
      if (step.bound[binding] != last[binding])
        call.set_buffer(encoder, step.bound[binding].buffer, step.bound[binding].offset, binding);
    last = step.bound;
    call.dispatch(encoder, step.groups, kThreads);
  }
}

}  // namespace shunt::metal
