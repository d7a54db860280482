#include "devices/webgpu/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace shunt::webgpu {

std::vector<KernelBinding> bindings_of(std::string_view wgsl) {
  constexpr std::string_view kBinding = "@binding(";
  constexpr std::string_view kVariable = "var<";
  constexpr std::string_view kUniformSpace = "uniform";
  std::vector<KernelBinding> bindings;
  for (std::size_t at = wgsl.find(kBinding); at != std::string_view::npos; at = wgsl.find(kBinding, at)) {
    at += kBinding.size();
    KernelBinding binding;
    std::from_chars(wgsl.data() + at, wgsl.data() + wgsl.size(), binding.number);
    at = std::min(wgsl.find(kVariable, at), wgsl.size() - kVariable.size()) + kVariable.size();
    binding.type = wgsl.substr(at).starts_with(kUniformSpace) ? BufferBindingType::uniform : BufferBindingType::storage;
    bindings.push_back(binding);
  }
  return bindings;
}

Result<Pipeline> make_pipeline(Context& context, std::string_view name, std::string_view wgsl) {
  const Functions& call = context.call();
  Pipeline pipeline{.bindings = bindings_of(wgsl)};
  std::vector<BindGroupLayoutEntry> entries;
  for (const KernelBinding& binding : pipeline.bindings) {
    BindGroupLayoutEntry entry;
    entry.binding = binding.number;
    entry.buffer.type = binding.type;
    entries.push_back(entry);
  }
  context.open_scopes();
  const BindGroupLayoutDescriptor groups{.entry_count = entries.size(), .entries = entries.data()};
  pipeline.layout = {call.DeviceCreateBindGroupLayout(context.handle(), &groups), {call.BindGroupLayoutRelease}};
  const BindGroupLayoutHandle layout_handle = pipeline.layout.get();
  const PipelineLayoutDescriptor layouts{.layout_count = 1, .layouts = &layout_handle};
  const Owned<PipelineLayoutHandle> layout(call.DeviceCreatePipelineLayout(context.handle(), &layouts),
                                           {call.PipelineLayoutRelease});
  ShaderSourceWgsl source;
  source.code = StringView(wgsl);
  const ShaderModuleDescriptor modules{.next = &source.chain, .label = StringView(name)};
  const Owned<ShaderModuleHandle> module(call.DeviceCreateShaderModule(context.handle(), &modules),
                                         {call.ShaderModuleRelease});
  const ComputePipelineDescriptor descriptor{
      .label = StringView(name), .layout = layout.get(), .module = module.get(), .entry_point = StringView("main")};
  pipeline.handle = {call.DeviceCreateComputePipeline(context.handle(), &descriptor), {call.ComputePipelineRelease}};
  const auto outcome = context.close_scopes();
  if (Status made = context.settle(*outcome); !made)
    return fail(made.error().code, fmt::format("kernel {}: {}", name, made.error().message));
  return pipeline;
}

Result<const Pipeline*> Pipelines::of(const Shader& shader) {
  std::optional<Pipeline>& pipeline = pipelines_[static_cast<std::size_t>(&shader - shaders().data())];
  if (!pipeline) {
    SHUNT_TRY_ASSIGN(pipeline, make_pipeline(*context_, shader.family, shader.wgsl));
  }
  return &*pipeline;
}

}  // namespace shunt::webgpu
