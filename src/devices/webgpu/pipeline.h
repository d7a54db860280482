// Compute pipelines of WGSL kernels, whose layouts hold exactly what a kernel binds.
//
// Pipelines are owned by the device and shared by its programs. One thread at a time.
#pragma once

#include <map>
#include <string_view>
#include <vector>

#include "devices/webgpu/context.h"
#include "ops/shader.h"

namespace shunt::webgpu {

// One `@group(0) @binding(number) var<...>` of a kernel.
struct KernelBinding {
  std::uint32_t number = 0;
  BufferBindingType type = BufferBindingType::unused;
};

// Returns a kernel's bindings. REQUIRES: `wgsl` declares uniform and read_write storage buffers, as naga writes them.
[[nodiscard]] std::vector<KernelBinding> bindings_of(std::string_view wgsl);

struct Pipeline {
  std::vector<KernelBinding> bindings;
  Owned<BindGroupLayoutHandle> layout;
  Owned<ComputePipelineHandle> handle;
};
// Errors: internal, with the validation message.
[[nodiscard]] Result<Pipeline> make_pipeline(Context& context, std::string_view name, std::string_view wgsl,
                                             const Specialization& values = {});

// The kernels of ops, each compiled on first use.
class Pipelines {
 public:
  explicit Pipelines(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  // The result lives as long as this.
  [[nodiscard]] Result<const Pipeline*> of(const SpecializedShader& kernel);

 private:
  std::shared_ptr<Context> context_;
  std::map<SpecializedShader, Pipeline> pipelines_;
};

}  // namespace shunt::webgpu
