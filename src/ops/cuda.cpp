#include "ops/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <tuple>
#include <utility>

#include "ops/gpu_kernels.h"
#include "ops/kernel.h"

namespace shunt {

#define SHUNT_CUDA_MODULE(symbol, name, source, family, part, capability, is_for_one) \
  extern const std::byte symbol##_ptx[];                                              \
  extern const std::size_t symbol##_ptx_bytes;                                        \
  extern const std::byte source##_code_object[];                                      \
  extern const std::size_t source##_code_object_bytes;
#include "cuda_modules.def"
#undef SHUNT_CUDA_MODULE

namespace {

constexpr std::uint64_t kMostBlocks = std::numeric_limits<std::int32_t>::max();  // along the first axis of a grid

// Returns what the host knows about the kernels of a source. Not called in a build without such kernels.
[[maybe_unused]] std::vector<const CudaKernel*> kernels_of(std::string_view family, std::string_view source) {
  const GpuKernels& kernels = gpu_kernels(family);
  std::vector<const CudaKernel*> found;
  if (source == family) found.push_back(&kernels.cuda);
  for (const CudaKernel& kernel : kernels.more_cuda)
    if (kernel.name == source) found.push_back(&kernel);
  return found;
}

// Returns why no kernel of the family can run the call, or an empty string.
std::string family_refusal(const OpCall& call) {
  const OpInfo& row = info_of(call.op);
  if (call.inputs.size() > kMaxCudaInputs)
    return fmt::format("{}: {} inputs, and the kernel takes at most {}", row.name, call.inputs.size(), kMaxCudaInputs);
  // Refuses what the arguments cannot describe.
  return cpu_family(row.family).scalar->supports(call);
}

bool is_of_family(const CudaKernel& kernel, const CudaModule& module, std::string_view family) {
  return (kernel.family.empty() ? module.family : kernel.family) == family;
}

bool is_better(const OpCall& call, const CudaModule& module, const CudaKernel& kernel, const CudaEntry& than) {
  const auto rank = [&](const CudaModule& of, const CudaKernel& its) {
    const bool yields = its.yields != nullptr && its.yields(call);
    return std::tuple(its.rank > 0, !yields, its.rank, of.capability, of.is_for_one);
  };
  return rank(module, kernel) > rank(*than.module, *than.kernel);
}

bool runs_on(const CudaModule& module, const CudaGpu& gpu) {
  // All forms of a source have its code object, also the one whose kernels start early, which AMD's never do.
  if (!gpu.gfx.empty())
    return !CudaEntry{&module, nullptr, {}}.starts_early() &&
           std::ranges::find(module.code_object_for, gpu.gfx) != module.code_object_for.end();
  return module.is_for_one ? gpu.capability == module.capability : gpu.capability >= module.capability;
}

std::string refusal_of(const OpCall& call, const CudaKernel& kernel, const CudaGpu& gpu) {
  if (std::string reason = kernel.supports(call); !reason.empty()) return reason;
  if (kernel.shared_bytes != nullptr && kernel.shared_bytes(call) > gpu.shared_bytes)
    return fmt::format("{}: takes {} bytes of shared memory, and a block has at most {}", name_of(call.op),
                       kernel.shared_bytes(call), gpu.shared_bytes);
  const auto needed = kernel.most_blocks == 0 ? kernel.blocks : kernel.least_blocks;
  if (const std::uint64_t blocks = needed == nullptr ? 1 : needed(call); blocks > kMostBlocks)
    return fmt::format("{}: takes {} blocks, and a grid has at most {}", name_of(call.op), blocks, kMostBlocks);
  return {};
}

CudaEntry entry_of(const CudaModule& module, const CudaKernel& kernel, const OpCall& call) {
  const std::string variant = kernel.variant != nullptr ? kernel.variant(call) : std::string();
  return {&module, &kernel, fmt::format("shunt_{}{}", module.name, variant)};
}

// REQUIRES: modules of their names are built wherever the one of the kernel that needs them is.
std::vector<CudaEntry> entries_before(const CudaKernel& kernel, const OpCall& call, const CudaGpu& gpu) {
  if (kernel.before == nullptr) return {};
  std::vector<CudaEntry> entries = entries_before(*kernel.before, call, gpu);
  CudaEntry entry;
  for (const CudaModule& module : cuda_modules())
    if (module.name == kernel.before->name && runs_on(module, gpu) &&
        (entry.module == nullptr || is_better(call, module, *kernel.before, entry)))
      entry = entry_of(module, *kernel.before, call);
  entries.push_back(std::move(entry));
  return entries;
}

// The best kernel of each source that can run a call, in the order of the rule.
struct Feasible {
  std::vector<CudaEntry> entries;
  std::string refusal;  // if there are none

  void add(const OpCall& call, const CudaModule& module, const CudaKernel& kernel) {
    CudaEntry entry = entry_of(module, kernel, call);
    const auto same = std::ranges::find(entries, entry.source(), &CudaEntry::source);
    if (same == entries.end())
      entries.push_back(std::move(entry));
    else if (is_better(call, module, kernel, *same))
      *same = std::move(entry);
  }
  // Returns those that may compete: what runs any call is no match for kernels that were made for it.
  [[nodiscard]] std::vector<KernelCandidate> candidates() const {
    std::vector<KernelCandidate> found;
    for (const CudaEntry& entry : entries)
      if (entry.kernel->rank > 0) found.push_back({entry.source(), entry.kernel->arithmetic});
    return found.size() > 1 ? found : std::vector<KernelCandidate>();
  }
};

Feasible feasible_kernels(const OpCall& call, const CudaGpu& gpu, Layout weights) {
  const OpInfo& row = info_of(call.op);
  Feasible found{.entries = {}, .refusal = fmt::format("{}: there is no CUDA kernel for it", row.name)};
  if (std::ranges::find(cuda_modules(), row.family, &CudaModule::family) == cuda_modules().end()) return found;
  if (std::string refusal = family_refusal(call); !refusal.empty()) {
    found.refusal = std::move(refusal);
    return found;
  }
  for (const CudaModule& module : cuda_modules()) {
    if (!runs_on(module, gpu)) continue;
    for (const CudaKernel* const kernel : module.kernels) {
      if (!is_of_family(*kernel, module, row.family) || (kernel->is_for_one && !module.is_for_one)) continue;
      if (kernel->weights != weights || !allows(call, kernel->arithmetic)) continue;
      if (!module.part.empty() && kernel->part(call) != module.part) continue;
      if (std::string refusal = refusal_of(call, *kernel, gpu); refusal.empty())
        found.add(call, module, *kernel);
      else if (kernel->rank == 0)
        found.refusal = std::move(refusal);
    }
  }
  std::ranges::stable_sort(found.entries, [&](const CudaEntry& one, const CudaEntry& other) {
    return is_better(call, *one.module, *one.kernel, other);
  });
  return found;
}

}  // namespace

std::span<const CudaModule> cuda_modules() {
  static const std::vector<CudaModule> kModules = {
#define SHUNT_CUDA_MODULE(symbol, name, source, family, part, capability, is_for_one) \
  {#name,                                                                             \
   #family,                                                                           \
   #part,                                                                             \
   capability,                                                                        \
   is_for_one,                                                                        \
   kernels_of(#family, #source),                                                      \
   {symbol##_ptx, symbol##_ptx_bytes},                                                \
   {source##_code_object, source##_code_object_bytes},                                \
   gpus_of_code_object({source##_code_object, source##_code_object_bytes})},
#include "cuda_modules.def"
#undef SHUNT_CUDA_MODULE
  };
  return kModules;
}

// The form is that of https://clang.llvm.org/docs/ClangOffloadBundler.html: a count, then for each form its offset, its
// bytes, and what it is for, "hipv4-amdgcn-amd-amdhsa--gfx90a".
std::vector<std::string_view> gpus_of_code_object(std::span<const std::byte> code_object) {
  constexpr std::string_view kMagic = "__CLANG_OFFLOAD_BUNDLE__";
  const std::string_view text(reinterpret_cast<const char*>(code_object.data()), code_object.size());
  std::vector<std::string_view> gpus;
  std::size_t at = kMagic.size();
  const auto number = [&]() -> std::uint64_t {
    std::uint64_t value = 0;
    if (text.size() < sizeof(value) || at > text.size() - sizeof(value)) return 0;
    std::memcpy(&value, text.data() + at, sizeof(value));
    at += sizeof(value);
    return value;
  };
  if (!text.starts_with(kMagic)) return gpus;
  for (std::uint64_t left = number(); left != 0; --left) {
    at += 2 * sizeof(std::uint64_t);
    const std::uint64_t characters = number();
    if (characters == 0 || at > text.size() || characters > text.size() - at) return gpus;
    const std::string_view target = text.substr(at, characters);
    if (const std::size_t gfx = target.rfind("gfx"); gfx != std::string_view::npos) gpus.push_back(target.substr(gfx));
    at += characters;
  }
  return gpus;
}

bool has_matrix_kernels(const CudaGpu& gpu) {
  return std::ranges::any_of(cuda_modules(),
                             [&](const CudaModule& module) { return module.capability != 0 && runs_on(module, gpu); });
}

std::uint64_t most_blocks_of(const CudaKernel& kernel, const CudaGpu& gpu) {
  return kernel.most_blocks == 0 ? kMostBlocks : std::uint64_t{kernel.most_blocks} * gpu.multiprocessors;
}

std::vector<KernelCandidate> cuda_candidates(const OpCall& call, const CudaGpu& gpu, Layout weights) {
  return feasible_kernels(call, gpu, weights).candidates();
}

CudaChoice choose_cuda(const OpCall& call, const CudaGpu& gpu, Layout weights, const CudaPreference& preference) {
  Feasible found = feasible_kernels(call, gpu, weights);
  if (found.entries.empty()) return {.main = {}, .before = {}, .refusal = std::move(found.refusal), .use = {}};
  CudaChoice choice{.main = found.entries.front(), .before = {}, .refusal = {}, .use = {}};
  if (const std::vector<KernelCandidate> candidates = found.candidates(); !candidates.empty()) {
    const auto named = std::ranges::find(candidates, preference.named, &KernelCandidate::name);
    std::optional<std::size_t> chosen;
    if (named != candidates.end())
      chosen = static_cast<std::size_t>(named - candidates.begin());
    else if (preference.measured != nullptr)
      chosen = measured_choice(*preference.measured, call, candidates);
    choice.use = {.name = candidates[chosen.value_or(0)].name, .is_measured = chosen.has_value()};
    choice.main = *std::ranges::find(found.entries, choice.use.name, &CudaEntry::source);
  }
  choice.before = entries_before(*choice.main.kernel, call, gpu);
  return choice;
}

CudaEntry joint_entry(const CudaKernel& kernel, const OpCall& first, const OpCall& next, const CudaGpu& gpu) {
  std::string name = kernel.joint == nullptr ? std::string() : kernel.joint(first, next);
  if (name.empty()) return {};
  for (const CudaModule& module : cuda_modules())
    if (module.name == kernel.joint_source && runs_on(module, gpu)) return {&module, &kernel, std::move(name)};
  return {};
}

CudaBlock cuda_block(const OpCall& call, const CudaEntry& entry) {
  alignas(16) std::array<std::byte, kMaxArgumentBytes> arguments{};
  cpu_family(entry.module->family).scalar->write_arguments(call, arguments);
  static_assert(kCudaArgumentBytes == kMaxArgumentBytes);
  CudaBlock block;
  block.bytes.resize(sizeof(CudaCall) + arguments.size());
  std::ranges::copy(arguments, block.bytes.begin() + sizeof(CudaCall));
  if (entry.kernel->constants == nullptr) return block;
  const std::vector<std::uint32_t> constants = entry.kernel->constants(call);
  if (constants.empty()) return block;
  block.constants_at = block.bytes.size();
  const std::size_t bytes = constants.size() * sizeof(std::uint32_t);
  block.bytes.resize(block.constants_at + (bytes + 15) / 16 * 16);
  std::memcpy(block.bytes.data() + block.constants_at, constants.data(), bytes);
  return block;
}

}  // namespace shunt
