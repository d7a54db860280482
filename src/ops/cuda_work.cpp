#include "ops/cuda_work.h"

#include <fmt/format.h>

namespace shunt {

std::string floating_refusal(const OpCall& call, std::size_t input) {
  const DTypeInfo& info = info_of(call.input(input).dtype);
  if (info.kind == DTypeKind::floating) return {};
  return fmt::format("{}: the CUDA kernel takes floating {}, not {}", name_of(call.op), info_of(call.op).inputs[input],
                     info.name);
}

std::uint64_t blocks_for_elements(std::uint64_t elements) { return (elements + kCudaGroupSize - 1) / kCudaGroupSize; }

}  // namespace shunt
