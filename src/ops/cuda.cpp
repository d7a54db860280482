#include "ops/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "ops/gpu_kernels.h"
#include "ops/kernel.h"

namespace shunt {

#define SHUNT_CUDA_MODULE(name, source, family, weight) \
  extern const std::byte name##_ptx[];                  \
  extern const std::size_t name##_ptx_bytes;            \
  extern const std::byte source##_code_object[];        \
  extern const std::size_t source##_code_object_bytes;
#include "cuda_modules.def"
#undef SHUNT_CUDA_MODULE

namespace {

constexpr std::uint64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();  // along the first axis of a grid

std::string layout_refusal(const OpCall& call, std::string_view name, const Operand& operand) {
  if (operand.layout == Layout::rows) return {};
  return fmt::format("{}: {} is in layout {}, must be in layout rows", name_of(call.op), name, name_of(operand.layout));
}

// Returns what the host knows about a source.
const CudaKernel& kernel_of(std::string_view family, std::string_view source) {
  const GpuKernels& kernels = gpu_kernels(family);
  const auto named = std::ranges::find(kernels.more_cuda, source, &CudaKernel::name);
  return named == kernels.more_cuda.end() ? kernels.cuda : *named;
}

// Returns why no kernel of the family can run the call, or an empty string.
std::string family_refusal(const OpCall& call) {
  const OpInfo& row = info_of(call.op);
  if (call.inputs.size() > kMaxCudaInputs)
    return fmt::format("{}: {} inputs, and the kernel takes at most {}", row.name, call.inputs.size(), kMaxCudaInputs);
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (call.has_input(i))
      if (std::string reason = layout_refusal(call, row.inputs[i], call.input(i)); !reason.empty()) return reason;
  // Refuses what the arguments cannot describe.
  return cpu_family(row.family).scalar->supports(call);
}

std::string refusal_of(const OpCall& call, const CudaModule& module) {
  const std::string_view op = name_of(call.op);
  if (!module.weight.empty() && name_of(call.input(kCudaWeight).dtype) != module.weight)
    return fmt::format("{}: compiled for weights of {}", op, module.weight);
  if (std::string reason = module.kernel->supports(call); !reason.empty()) return reason;
  if (const std::uint64_t blocks = module.kernel->blocks(call); blocks > kMostBlocks)
    return fmt::format("{}: takes {} blocks, and a grid has at most {}", op, blocks, kMostBlocks);
  return {};
}

}  // namespace

std::span<const CudaModule> cuda_modules() {
  static const std::vector<CudaModule> kModules = {
#define SHUNT_CUDA_MODULE(name, source, family, weight) \
  {#name,                                               \
   #family,                                             \
   #weight,                                             \
   &kernel_of(#family, #source),                        \
   {name##_ptx, name##_ptx_bytes},                      \
   {source##_code_object, source##_code_object_bytes}},
#include "cuda_modules.def"
#undef SHUNT_CUDA_MODULE
  };
  return kModules;
}

CudaChoice choose_cuda(const OpCall& call) {
  const OpInfo& row = info_of(call.op);
  CudaChoice choice{.refusal = fmt::format("{}: there is no CUDA kernel for it", row.name)};
  for (const CudaModule& module : cuda_modules()) {
    if (module.family != row.family) continue;
    if (choice.module != nullptr && choice.module->kernel->rank >= module.kernel->rank) continue;
    std::string refusal = family_refusal(call);
    if (refusal.empty()) refusal = refusal_of(call, module);
    if (refusal.empty())
      choice.module = &module;
    else if (module.kernel->rank == 0)
      choice.refusal = std::move(refusal);
  }
  if (choice.module == nullptr) return choice;
  const CudaKernel& kernel = *choice.module->kernel;
  const std::string variant = kernel.variant != nullptr ? kernel.variant(call) : std::string();
  return {choice.module, fmt::format("shunt_{}{}", choice.module->name, variant), {}};
}

CudaBlock cuda_block(const OpCall& call, const CudaModule& module) {
  alignas(16) std::array<std::byte, kMaxArgumentBytes> arguments{};
  cpu_family(module.family).scalar->write_arguments(call, arguments);
  CudaBlock block;
  block.bytes.resize(sizeof(CudaCall) + arguments.size());
  std::ranges::copy(arguments, block.bytes.begin() + sizeof(CudaCall));
  if (module.kernel->constants == nullptr) return block;
  const std::vector<std::uint32_t> constants = module.kernel->constants(call);
  if (constants.empty()) return block;
  block.constants_at = block.bytes.size();
  const std::size_t bytes = constants.size() * sizeof(std::uint32_t);
  block.bytes.resize(block.constants_at + (bytes + 15) / 16 * 16);
  std::memcpy(block.bytes.data() + block.constants_at, constants.data(), bytes);
  return block;
}

}  // namespace shunt
