#include "ops/reference.h"

#include <fmt/format.h>

#include <array>
#include <cstring>

#include "ops/expansion.h"
#include "ops/kernel.h"

namespace shunt {
namespace {

struct alignas(64) ScratchLine {
  std::byte bytes[64];
};

class Scratch {
 public:
  explicit Scratch(std::uint64_t bytes) : lines_((bytes + 63) / 64) {}
  [[nodiscard]] std::byte* data() { return lines_.empty() ? nullptr : lines_.front().bytes; }

 private:
  std::vector<ScratchLine> lines_;
};

Status run_kernel(const CpuKernel& kernel, const OpCall& call, std::span<const std::byte* const> inputs,
                  std::byte* output) {
  const CpuWork work = kernel.work(call, 1);
  Scratch shared(work.shared_scratch_bytes);
  Scratch own(work.thread_scratch_bytes);
  alignas(16) std::array<std::byte, kMaxArgumentBytes> arguments{};
  kernel.write_arguments(call, arguments);
  const Parameters parameters;
  CpuCall run{.arguments = arguments.data(),
              .inputs = inputs,
              .output = output,
              .parameters = &parameters,
              .shared_scratch = shared.data(),
              .thread_scratch = own.data()};
  for (run.phase = 0; run.phase < work.phases; ++run.phase)
    if (const int error = kernel.run(run); error != 0)
      return fail(Code::internal, fmt::format("{}: the reference kernel failed with {}", to_string(call), error));
  return {};
}

Result<HostTensor> run_primitive(Op op, const Attributes& attributes, std::span<const HostTensor* const> inputs) {
  std::vector<const Operand*> operands;
  std::vector<const std::byte*> bytes;
  for (const HostTensor* input : inputs) {
    operands.push_back(input == nullptr ? nullptr : &input->operand);
    bytes.push_back(input == nullptr ? nullptr : input->bytes.data());
  }
  SHUNT_TRY_ASSIGN(const ResultShape shape, infer(op, operands, attributes));
  const OpCall call{.op = op, .attributes = &attributes, .inputs = operands, .output = &shape.operand};
  const CpuKernel& kernel = *cpu_family(info_of(op).family).scalar;
  if (std::string reason = kernel.supports(call); !reason.empty())
    return fail(Code::unsupported, fmt::format("{}: {}", to_string(call), reason));
  HostTensor result{.operand = shape.operand};
  if (shape.operand.kind == TensorKind::state) {
    result.bytes = inputs[0]->bytes;
    bytes[0] = result.bytes.data();
  } else {
    SHUNT_TRY_ASSIGN(const std::uint64_t size, bytes_of(shape.operand.dtype, shape.operand.shape));
    result.bytes.resize(size);
  }
  SHUNT_TRY(run_kernel(kernel, call, bytes, result.bytes.data()));
  return result;
}

Result<HostTensor> run_expansion(const Expansion& expansion, const Attributes& attributes,
                                 std::span<const HostTensor* const> inputs) {
  std::vector<HostTensor> inner(expansion.arguments.size());
  std::vector<const HostTensor*> arguments;
  for (std::size_t index = 0; index < inner.size(); ++index) {
    const Expansion& argument = expansion.arguments[index];
    if (argument.is_input()) {
      arguments.push_back(inputs[argument.input]);
      continue;
    }
    SHUNT_TRY_ASSIGN(inner[index], run_expansion(argument, attributes, inputs));
    arguments.push_back(&inner[index]);
  }
  return run_primitive(expansion.op, attributes_for(expansion.op, attributes), arguments);
}

}  // namespace

HostTensor plain_copy(const Operand& from, std::span<const std::byte> storage, std::uint64_t offset,
                      std::uint32_t rows) {
  Shape shape = from.shape;
  if (shape.rank() > 0) shape.set(0, rows);
  HostTensor copy{.operand = Operand::contiguous(from.dtype, shape, from.kind)};
  copy.bytes.resize(bytes_of(from.dtype, shape).value_or(0));
  const DTypeInfo& info = info_of(from.dtype);
  const std::uint64_t blocks = copy.bytes.size() / info.block_bytes;
  for (std::uint64_t block = 0; block < blocks; ++block) {
    std::uint64_t rest = block * info.block_elements;
    std::uint64_t at = offset;
    for (std::size_t axis = shape.rank(); axis-- > 0;) {
      at += rest % shape[axis] * from.strides[axis];
      rest /= shape[axis];
    }
    std::memcpy(copy.bytes.data() + block * info.block_bytes,
                storage.data() + at / info.block_elements * info.block_bytes, info.block_bytes);
  }
  return copy;
}

Result<HostTensor> run_reference(Op op, const Attributes& attributes, std::span<const HostTensor* const> inputs) {
  if (info_of(op).is_fused()) return run_expansion(expansion_of(op), attributes, inputs);
  return run_primitive(op, attributes, inputs);
}

}  // namespace shunt
