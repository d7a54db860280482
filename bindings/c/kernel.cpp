// The functions of shunt/shunt.h that make custom kernels.
#include "shunt/kernel.h"

#include <algorithm>
#include <array>

#include "report.h"

namespace {

using shunt::Code;
using shunt::Result;
using shunt::Status;
using shunt::c::need;
using shunt::c::refuse;

shunt_operand operand_to(const shunt::Operand& from) {
  return {.dtype = static_cast<shunt_dtype>(from.dtype),
          .shape = shunt::c::shape_to(from.shape),
          .extent = static_cast<shunt_extent>(from.extent)};
}

Result<shunt::Operand> operand_of(const shunt_operand& from) {
  SHUNT_TRY_ASSIGN(const shunt::DType dtype, shunt::c::dtype_of(from.dtype));
  SHUNT_TRY_ASSIGN(const shunt::Shape shape, shunt::c::shape_of(from.shape));
  SHUNT_TRY_ASSIGN(const shunt::Extent extent, shunt::c::extent_of(from.extent));
  return shunt::Operand::contiguous(dtype, shape, shunt::TensorKind::value, extent);
}

// A use as a C struct; it contains pointers into itself.
struct Use {
  explicit Use(const shunt::KernelUse& from) {
    std::ranges::transform(from.inputs, inputs.begin(), operand_to);
    use = {.inputs = inputs.data(),
           .input_count = from.inputs.size(),
           .arguments = {from.arguments.data(), from.arguments.size()}};
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  std::array<shunt_operand, shunt::kMaxKernelInputs> inputs{};
  shunt_kernel_use use{};
};

Status outcome_of(const char* why) { return why == nullptr ? Status{} : shunt::fail(Code::invalid, why); }

template <class Count>
std::function<std::uint64_t(const shunt::KernelUse&, const shunt::Operand&)> count_with(Count count, void* user) {
  if (count == nullptr) return nullptr;
  return [count, user](const shunt::KernelUse& from, const shunt::Operand& result) {
    const Use use(from);
    const shunt_operand operand = operand_to(result);
    return count(&use.use, &operand, user);
  };
}

// REQUIRES: `from` has a name and describes its result.
shunt::KernelDescription description_of(const shunt_kernel_description& from, std::span<const std::uint32_t> spirv) {
  shunt::KernelDescription description{.name = from.name, .inputs = from.inputs, .argument_bytes = from.argument_bytes};
  if (from.glsl != nullptr) description.glsl = from.glsl;
  description.spirv.assign(spirv.begin(), spirv.end());
  description.result = [call = from.result, user = from.user](const shunt::KernelUse& of) -> Result<shunt::Operand> {
    const Use use(of);
    shunt_operand result{};
    SHUNT_TRY(outcome_of(call(&use.use, &result, user)));
    return operand_of(result);
  };
  if (from.cpu != nullptr)
    description.cpu = [call = from.cpu, user = from.user](const shunt::KernelWork& of) {
      const Use use(of.use);
      std::array<const void*, shunt::kMaxKernelInputs> data{};
      std::ranges::copy(of.input_data, data.begin());
      const shunt_kernel_work work{.use = use.use,
                                   .result = operand_to(of.result),
                                   .input_data = data.data(),
                                   .result_data = of.result_data,
                                   .parameters = {of.parameters.tokens, of.parameters.outputs, of.parameters.positions},
                                   .begin = of.begin,
                                   .end = of.end};
      return outcome_of(call(&work, user));
    };
  description.items = count_with(from.items, from.user);
  description.groups = count_with(from.groups, from.user);
  if (from.flops_per_item > 0) description.flops_per_item = from.flops_per_item;
  return description;
}

Result<shunt_kernel*> create(const shunt_kernel_description* from) {
  SHUNT_TRY(need(from, "the description"));
  SHUNT_TRY(need(from->name, "the name of the kernel"));
  if (from->result == nullptr) return shunt::fail(Code::invalid, "the function that says what the result is is NULL");
  SHUNT_TRY_ASSIGN(const std::span<const std::uint32_t> spirv,
                   shunt::c::array_of(from->spirv, from->spirv_words, "the module of SPIR-V"));
  SHUNT_TRY_ASSIGN(auto kernel, shunt::make_kernel(description_of(*from, spirv)));
  return std::make_unique<shunt_kernel>(std::move(kernel)).release();
}

}  // namespace

shunt_kernel* shunt_kernel_create(const shunt_kernel_description* description, shunt_error* error) try {
  const auto kernel = create(description);
  if (!kernel) return refuse(kernel, error);
  static_cast<void>(shunt::c::report({}, error));
  return *kernel;
}
SHUNT_C_END(error)

void shunt_kernel_free(shunt_kernel* kernel) { const std::unique_ptr<shunt_kernel> ended(kernel); }

const char* shunt_kernel_prelude(void) { return shunt::kernel_prelude().data(); }
