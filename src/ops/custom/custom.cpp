#include "ops/custom/custom.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstring>

#include "ops/rules.h"

namespace shunt {
namespace {

constexpr std::size_t kMaxNameBytes = 64;
constexpr std::uint64_t kMaxItems = std::uint64_t{1} << 31U;  // so that the numbers of idle invocations fit 32 bits too
constexpr std::uint64_t kMaxGroups = std::uint64_t{1}
                                     << 31U;  // the most in a grid of two axes (devices/shaders/dispatch.cpp)
constexpr std::uint64_t kItemsTogether = 64;  // neighbouring items that stay on one thread

struct alignas(16) AlignedArguments {
  std::array<std::byte, kMaxKernelArgumentBytes> bytes{};
};

// A use that owns copies of its operands and arguments.
struct Use {
  std::shared_ptr<const UserKernel> kernel;
  std::vector<Operand> inputs;
  Operand result;
  AlignedArguments arguments;

  Use(std::shared_ptr<const UserKernel> of, InputOperands operands, const Attributes& attributes)
      : kernel(std::move(of)) {
    for (const Operand* operand : operands) inputs.push_back(*operand);
    const auto given = attributes.bytes(Attr::arguments);
    std::ranges::copy(given.first(std::min(given.size(), kMaxKernelArgumentBytes)), arguments.bytes.begin());
  }
  explicit Use(const OpCall& call) : Use(call.attributes->user_kernel(Attr::code), call.inputs, *call.attributes) {
    result = *call.output;
  }

  [[nodiscard]] KernelUse get() const {
    return {inputs, std::span(arguments.bytes).first(kernel->description().argument_bytes)};
  }
};

CustomArgs arguments_of(const Use& use) {
  CustomArgs args{};
  const auto set = [&](std::size_t place, const Operand& operand) {
    for (std::size_t axis = 0; axis < kMaxRank; ++axis)
      args.extents[place][axis] = axis < operand.shape.rank() ? operand.shape[axis] : 1;
  };
  set(0, use.result);
  for (std::size_t input = 0; input < use.inputs.size(); ++input) set(input + 1, use.inputs[input]);
  args.items = static_cast<std::uint32_t>(use.kernel->items(use.get(), use.result));
  args.entries = use.result.shape.rank() == 0 ? 1 : use.result.shape[0];
  const bool counts = args.entries != 0 && args.items % args.entries == 0;
  args.extent = static_cast<std::uint32_t>(counts ? use.result.extent : Extent::fixed);
  std::ranges::copy(use.arguments.bytes, args.arguments);
  return args;
}

std::string supports(const OpCall& call) {
  const KernelDescription& description = kernel_of(call).description();
  if (description.cpu != nullptr) return {};
  return fmt::format("{}: the kernel has no function for the processor", description.name);
}

CpuWork work(const OpCall&, std::uint32_t) { return {}; }

void write_arguments(const OpCall& call, std::span<std::byte, kMaxArgumentBytes> out) {
  const CustomArgs args = arguments_of(Use(call));
  std::memcpy(out.data(), &args, sizeof(args));
}

std::shared_ptr<const void> context(const OpCall& call) { return std::make_shared<const Use>(call); }

int run(const CpuCall& call) {
  const Use& use = *static_cast<const Use*>(call.context);
  const std::uint64_t items = valid_items(call.args<CustomArgs>(), *call.parameters);
  const std::uint64_t grain = items >= kItemsTogether * call.shares ? kItemsTogether : 1;
  const Range share = share_of(items, call.share, call.shares, grain);
  if (share.begin == share.end) return 0;
  Status status = use.kernel->description().cpu({.use = use.get(),
                                                 .result = use.result,
                                                 .input_data = call.inputs,
                                                 .result_data = call.output,
                                                 .parameters = *call.parameters,
                                                 .begin = share.begin,
                                                 .end = share.end});
  if (status) return 0;
  if (call.failure != nullptr) *call.failure = std::move(status);
  return 1;
}

std::string shader_supports(const OpCall&) { return {}; }
std::uint64_t shader_groups(const OpCall& call) {
  const Use use(call);
  return use.kernel->groups(use.get(), use.result);
}
Specialization shader_specialization(const OpCall& call) { return kernel_of(call).needs().defaults; }
constexpr ShaderKernel kShaderKernel{
    .supports = shader_supports, .groups = shader_groups, .specialization = shader_specialization};

Status check_inputs(const UserKernel& kernel, InputOperands inputs, const Attributes& attributes) {
  const KernelDescription& description = kernel.description();
  if (inputs.size() != description.inputs)
    return fail(Code::invalid, fmt::format("takes {} inputs, got {}", description.inputs, inputs.size()));
  for (std::size_t index = 0; index < inputs.size(); ++index) {
    if (inputs[index] == nullptr) return fail(Code::invalid, fmt::format("input {} is missing", index));
    if (!inputs[index]->is_contiguous())
      return fail(Code::invalid, fmt::format("input {} is a view that is not contiguous; copy it first", index));
  }
  const std::size_t bytes = attributes.bytes(Attr::arguments).size();
  if (bytes != description.argument_bytes)
    return fail(Code::invalid, fmt::format("takes {} bytes of arguments, got {}", description.argument_bytes, bytes));
  return {};
}

Status check_result(const Operand& result) {
  if (result.kind != TensorKind::value || !result.is_contiguous())
    return fail(Code::invalid, "its shape rule answers a result that is no contiguous value");
  SHUNT_TRY(bytes_of(result.dtype, result.shape));
  return {};
}

Status check_work(const UserKernel& kernel, const KernelUse& use, const Operand& result) {
  if (const std::uint64_t items = kernel.items(use, result); items > kMaxItems)
    return fail(Code::invalid, fmt::format("{} items, and there can be {}", items, kMaxItems));
  const std::uint64_t groups = spirv_of(kernel).empty() ? 0 : kernel.groups(use, result);
  if (groups > kMaxGroups)
    return fail(Code::invalid, fmt::format("{} workgroups, and there can be {}", groups, kMaxGroups));
  return {};
}

Result<ResultShape> infer_result(const std::shared_ptr<const UserKernel>& kernel, InputOperands inputs,
                                 const Attributes& attributes) {
  SHUNT_TRY(check_inputs(*kernel, inputs, attributes));
  const Use use(kernel, inputs, attributes);
  SHUNT_TRY_ASSIGN(Operand result, kernel->description().result(use.get()));
  SHUNT_TRY(check_result(result));
  SHUNT_TRY(check_work(*kernel, use.get(), result));
  return ResultShape{.operand = std::move(result)};
}

Result<ResultShape> result_shape(InputOperands inputs, const Attributes& attributes) {
  const std::shared_ptr<const UserKernel>& kernel = attributes.user_kernel(Attr::code);
  if (kernel == nullptr) return fail(Code::invalid, "there is no kernel; give one as the attribute code");
  auto result = infer_result(kernel, inputs, attributes);
  if (!result) return fail_at(kernel->description().name, std::move(result).error());
  return result;
}

Cost cost_of(const OpCall& call) {
  Cost cost = read_all_write_one(call);
  cost.flops = kernel_of(call).flops(call);
  return cost;
}

}  // namespace

// There are no samples: only the caller knows what the kernel accepts.
extern const OpRule custom_rule{.shape = result_shape, .cost = cost_of};
extern const CpuKernel custom_scalar;
const CpuKernel custom_scalar{supports, work, write_arguments, run, context};

std::string_view custom_name(const Attributes& attributes) {
  const auto* kernel = std::get_if<std::shared_ptr<const UserKernel>>(&attributes.get(Attr::code));
  return kernel == nullptr || *kernel == nullptr ? name_of(Op::custom) : (*kernel)->description().name;
}

std::uint64_t valid_items(const CustomArgs& args, const Parameters& parameters) {
  if (args.entries == 0) return args.items;
  return args.extent == 0 ? args.items
                          : std::uint64_t{args.items / args.entries} *
                                valid_rows(args.entries, static_cast<Extent>(args.extent), parameters);
}

UserKernel::UserKernel(KernelDescription description, const SpirvNeeds& needs)
    : description_(std::move(description)), needs_(needs) {
  shader_ = {.name = description_.name, .family = info_of(Op::custom).family, .kernel = &kShaderKernel};
  shader_.spirv = description_.spirv;
}

std::string UserKernel::device_refusal(const ShaderLimits& limits) const {
  std::string why;
  if (description_.spirv.empty())
    why = "the kernel has no GLSL or SPIR-V";
  else if (!shader_.is_in(limits.language))
    why = "kernels of the caller's are SPIR-V, which Vulkan alone takes";
  else
    why = needs_refusal(needs_, limits);
  return why.empty() ? why : fmt::format("{}: {}", description_.name, why);
}

std::uint64_t UserKernel::items(const KernelUse& use, const Operand& result) const {
  return description_.items == nullptr ? result.shape.elements() : description_.items(use, result);
}

std::uint64_t UserKernel::groups(const KernelUse& use, const Operand& result) const {
  if (description_.groups != nullptr) return description_.groups(use, result);
  const std::uint64_t each = needs_.group_size();
  return (items(use, result) + each - 1) / each;
}

double UserKernel::flops(const OpCall& call) const {
  const Use use(call);
  return description_.flops_per_item * static_cast<double>(items(use.get(), use.result));
}

const UserKernel& kernel_of(const OpCall& call) { return *call.attributes->user_kernel(Attr::code); }

Status check_kernel(const KernelDescription& description) {
  const auto refuse = [&](std::string_view what) {
    return fail(Code::invalid, fmt::format("kernel \"{}\": {}", description.name, what));
  };
  const auto is_plain = [](unsigned char letter) { return std::isalnum(letter) != 0 || letter == '_'; };
  if (description.name.empty() || description.name.size() > kMaxNameBytes ||
      !std::ranges::all_of(description.name, is_plain))
    return refuse(fmt::format("a name is 1 to {} letters, digits and _", kMaxNameBytes));
  if (description.inputs == 0 || description.inputs > kMaxKernelInputs)
    return refuse(fmt::format("{} inputs, and there can be 1 to {}", description.inputs, kMaxKernelInputs));
  if (description.argument_bytes > kMaxKernelArgumentBytes)
    return refuse(
        fmt::format("{} bytes of arguments, and there can be {}", description.argument_bytes, kMaxKernelArgumentBytes));
  if (description.result == nullptr) return refuse("there is no function that says what the result is");
  if (!description.glsl.empty() && !description.spirv.empty())
    return refuse("it has GLSL and SPIR-V; give one of them");
  if (description.glsl.empty() && description.spirv.empty() && description.cpu == nullptr)
    return refuse("nothing can run it: give GLSL, SPIR-V or a function for the processor");
  return {};
}

std::span<const std::uint32_t> spirv_of(const UserKernel& kernel) { return kernel.shader().spirv; }

}  // namespace shunt
