#include "devices/webgpu/pipeline.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

namespace {

// WebGPU refuses values of constants that a kernel does not have.
std::vector<ConstantEntry> constants_of(std::string_view wgsl, const Specialization& values) {
  static constexpr std::array<std::string_view, kSpecializationConstants> kKeys = {"0", "1", "2", "3"};
  std::vector<ConstantEntry> constants;
  for (std::size_t id = 0; id < values.size(); ++id)
    if (wgsl.find(fmt::format("@id({})", id)) != std::string_view::npos)
      constants.push_back({.key = StringView(kKeys[id]), .value = static_cast<double>(values[id])});
  return constants;
}

}  // namespace

Result<Pipeline> make_pipeline(Context& context, std::string_view name, std::string_view wgsl,
                               const Specialization& values) {
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
  const std::vector<ConstantEntry> constants = constants_of(wgsl, values);
  const ComputePipelineDescriptor descriptor{.label = StringView(name),
                                             .layout = layout.get(),
                                             .module = module.get(),
                                             .entry_point = StringView("main"),
                                             .constant_count = constants.size(),
                                             .constants = constants.data()};
  pipeline.handle = {call.DeviceCreateComputePipeline(context.handle(), &descriptor), {call.ComputePipelineRelease}};
  const auto outcome = context.close_scopes();
  if (Status made = context.settle(*outcome); !made)
    return fail(made.error().code, fmt::format("kernel {}: {}", name, made.error().message));
  return pipeline;
}

Result<const Pipeline*> Pipelines::of(const SpecializedShader& kernel) {
  auto found = pipelines_.find(kernel);
  if (found == pipelines_.end()) {
    SHUNT_TRY_ASSIGN(Pipeline made, make_pipeline(*context_, kernel.shader->name, kernel.shader->wgsl, kernel.values));
    found = pipelines_.emplace(kernel, std::move(made)).first;
  }
  return &found->second;
}

}  // namespace shunt::webgpu
