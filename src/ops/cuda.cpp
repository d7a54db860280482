#include "ops/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include "ops/gpu_kernels.h"
#include "ops/kernel.h"

namespace shunt {

#define SHUNT_CUDA_MODULE(family)                \
  extern const std::byte family##_ptx[];         \
  extern const std::size_t family##_ptx_bytes;   \
  extern const std::byte family##_code_object[]; \
  extern const std::size_t family##_code_object_bytes;
#include "cuda_modules.def"
#undef SHUNT_CUDA_MODULE

namespace {

constexpr std::uint64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();  // along the first axis of a grid

std::string layout_refusal(const OpCall& call, std::string_view name, const Operand& operand) {
  if (operand.layout == Layout::rows) return {};
  return fmt::format("{}: {} is in layout {}, must be in layout rows", name_of(call.op), name, name_of(operand.layout));
}

std::string refusal_of(const OpCall& call, const CudaModule& module) {
  const OpInfo& row = info_of(call.op);
  if (call.inputs.size() > kMaxCudaInputs)
    return fmt::format("{}: {} inputs, and the kernel takes at most {}", row.name, call.inputs.size(), kMaxCudaInputs);
  for (std::size_t i = 0; i < call.inputs.size(); ++i)
    if (call.has_input(i))
      if (std::string reason = layout_refusal(call, row.inputs[i], call.input(i)); !reason.empty()) return reason;
  // Refuses what the arguments cannot describe.
  if (std::string reason = cpu_family(row.family).scalar->supports(call); !reason.empty()) return reason;
  if (std::string reason = module.kernel->supports(call); !reason.empty()) return reason;
  if (const std::uint64_t blocks = module.kernel->blocks(call); blocks > kMostBlocks)
    return fmt::format("{}: takes {} blocks, and a grid has at most {}", row.name, blocks, kMostBlocks);
  return {};
}

}  // namespace

std::span<const CudaModule> cuda_modules() {
  static const std::vector<CudaModule> kModules = {
#define SHUNT_CUDA_MODULE(family)      \
  {#family,                            \
   &gpu_kernels(#family).cuda,         \
   {family##_ptx, family##_ptx_bytes}, \
   {family##_code_object, family##_code_object_bytes}},
#include "cuda_modules.def"
#undef SHUNT_CUDA_MODULE
  };
  return kModules;
}

CudaChoice choose_cuda(const OpCall& call) {
  const OpInfo& row = info_of(call.op);
  const auto module = std::ranges::find(cuda_modules(), row.family, &CudaModule::family);
  if (module == cuda_modules().end()) return {nullptr, fmt::format("{}: there is no CUDA kernel for it", row.name)};
  if (std::string refusal = refusal_of(call, *module); !refusal.empty()) return {nullptr, std::move(refusal)};
  return {&*module, {}};
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
