// Runs CPU kernels on concrete operands without a device: tensors of random numbers, views of them, and a runner that
// plays every thread of every phase in turn.
//
// The runner fills the result with a pattern and the scratch memory with NaN and surrounds both with guard bytes. A
// test thus sees which elements were written, and that nothing beyond them was. Single-threaded.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "ops/elements.h"
#include "ops/kernel.h"
#include "ops/quantize/encode.h"

namespace shunt::test {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();
inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

inline constexpr std::byte kCanary{0xA5};
inline constexpr std::size_t kGuardBytes = 256;

// A byte buffer aligned to 64 bytes, with guard bytes on both sides.
class GuardedBytes {
 public:
  explicit GuardedBytes(std::size_t size) : size_(size), storage_(size + 2 * kGuardBytes + 64, kCanary) {
    const auto start = reinterpret_cast<std::uintptr_t>(storage_.data()) + kGuardBytes;
    offset_ = kGuardBytes + (64 - start % 64) % 64;
  }
  GuardedBytes(GuardedBytes&&) = default;
  void fill(std::byte byte) { std::fill_n(data(), size_, byte); }
  [[nodiscard]] std::byte* data() { return storage_.data() + offset_; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] bool guards_are_intact() const {
    for (std::size_t i = 0; i < storage_.size(); ++i)
      if ((i < offset_ || i >= offset_ + size_) && storage_[i] != kCanary) return false;
    return true;
  }

 private:
  std::size_t size_;
  std::size_t offset_ = 0;
  std::vector<std::byte> storage_;
};

struct Tensor {
  Operand operand;
  std::vector<std::byte> bytes{};  // the storage; a view covers part of it
  std::uint64_t offset = 0;        // in elements from the start of the storage; plain dtypes only

  [[nodiscard]] const std::byte* data() const { return bytes.data() + offset * info_of(operand.dtype).block_bytes; }
};

inline Tensor tensor_of(DType dtype, const Shape& shape, TensorKind kind = TensorKind::value,
                        Extent extent = Extent::fixed) {
  Tensor tensor{.operand = Operand::contiguous(dtype, shape, kind, extent)};
  tensor.bytes.resize(bytes_of(dtype, shape).value_or(0));
  return tensor;
}

// REQUIRES: one value for each element, and whole blocks.
inline Tensor tensor_of(DType dtype, const Shape& shape, const std::vector<double>& values) {
  Tensor tensor = tensor_of(dtype, shape);
  if (info_of(dtype).kind == DTypeKind::quantized) {
    const std::vector<float> floats(values.begin(), values.end());
    encode_row(dtype, floats.data(), floats.size(), tensor.bytes.data());
    return tensor;
  }
  for (std::size_t i = 0; i < values.size(); ++i) store_element(dtype, tensor.bytes.data(), i, values[i]);
  return tensor;
}

// Random numbers between `low` and `high`. REQUIRES: whole blocks.
inline Tensor random_tensor(DType dtype, const Shape& shape, std::uint64_t seed, double low = -2, double high = 2) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> number(low, high);
  std::vector<double> values(shape.elements());
  for (double& value : values) value = number(random);
  return tensor_of(dtype, shape, values);
}

// Applies a layout op to the same bytes.
inline Tensor view_of(const Tensor& tensor, Op op, const Attributes& attributes) {
  const Operand* inputs[] = {&tensor.operand};
  auto result = infer(op, inputs, attributes);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message);
  if (!result) return tensor;
  return {.operand = result->operand, .bytes = tensor.bytes, .offset = tensor.offset + result->offset};
}

inline Tensor permuted(const Tensor& tensor, const Shape& axes) {
  return view_of(tensor, Op::permute, {{Attr::axes, axes}});
}

inline Tensor sliced(const Tensor& tensor, std::uint32_t axis, std::uint32_t begin, std::uint32_t count) {
  return view_of(tensor, Op::slice, {{Attr::axis, axis}, {Attr::begin, begin}, {Attr::count, count}});
}

// Returns the tensor with axis 0 as a bucket.
inline Tensor bucket(Tensor tensor, Extent extent = Extent::tokens) {
  tensor.operand.extent = extent;
  return tensor;
}

// Returns all elements in contiguous order. REQUIRES: a plain dtype, or a contiguous tensor.
inline std::vector<double> values_of(const Tensor& tensor) {
  std::vector<double> values;
  const Shape& shape = tensor.operand.shape;
  if (info_of(tensor.operand.dtype).kind == DTypeKind::quantized) {
    std::vector<float> floats(shape.elements());
    decode_row(tensor.operand.dtype, tensor.bytes.data(), floats.size(), floats.data());
    return {floats.begin(), floats.end()};
  }
  values.reserve(shape.elements());
  for (std::uint64_t i = 0; i < shape.elements(); ++i) {
    std::uint64_t at = 0;
    std::uint64_t rest = i;
    for (std::size_t axis = shape.rank(); axis-- > 0;) {
      at += rest % shape[axis] * tensor.operand.strides[axis];
      rest /= shape[axis];
    }
    values.push_back(load_element(tensor.operand.dtype, tensor.data(), at));
  }
  return values;
}

// Mean squared error relative to the mean square of `expected`.
inline double nmse(const std::vector<double>& actual, const std::vector<double>& expected) {
  EXPECT_EQ(actual.size(), expected.size());
  double error = 0;
  double power = 0;
  for (std::size_t i = 0; i < std::min(actual.size(), expected.size()); ++i) {
    error += (actual[i] - expected[i]) * (actual[i] - expected[i]);
    power += expected[i] * expected[i];
  }
  return error == 0 ? 0 : error / power;
}

// One use of an op: attributes, inputs (null for an omitted optional one) and parameters.
struct KernelCase {
  Op op{};
  std::vector<const Tensor*> inputs;
  Attributes attributes{};
  Parameters parameters{};
  Numerics numerics = Numerics::exact;

  [[nodiscard]] std::string text() const {
    std::string text = std::string(name_of(op)) + "(";
    for (const Tensor* input : inputs)
      text += (text.back() == '(' ? "" : ", ") +
              (input == nullptr ? "-" : std::string(name_of(input->operand.dtype)) + to_string(input->operand.shape));
    return text + ") tokens " + std::to_string(parameters.tokens) + " outputs " + std::to_string(parameters.outputs) +
           " " + std::string(name_of(numerics));
  }
};

struct KernelResult {
  std::string declined;  // why the kernel does not support the case; then nothing ran
  int code = 0;
  Tensor output{};
};

// The concrete call of a case; owns what OpCall points to.
class BoundCase {
 public:
  explicit BoundCase(const KernelCase& use) : attributes_(use.attributes) {
    for (const Tensor* input : use.inputs) inputs_.push_back(input == nullptr ? nullptr : &input->operand);
    auto result = infer(use.op, inputs_, attributes_);
    EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message);
    if (result) output_ = result->operand;
    call_ = {.op = use.op, .attributes = &attributes_, .inputs = inputs_, .output = &output_, .numerics = use.numerics};
  }
  BoundCase(const BoundCase&) = delete;
  BoundCase& operator=(const BoundCase&) = delete;
  [[nodiscard]] const OpCall& call() const { return call_; }
  [[nodiscard]] const Operand& output() const { return output_; }

 private:
  Attributes attributes_;
  std::vector<const Operand*> inputs_;
  Operand output_;
  OpCall call_;
};

// Runs `kernel` in `shares` shares, each in the scratch of another thread in each phase. State (input 0 if the op's
// result is state) is copied into the result first, and updated there in place.
inline KernelResult run_kernel(const CpuKernel& kernel, const KernelCase& use, std::uint32_t shares = 1) {
  const BoundCase bound(use);
  const OpCall& call = bound.call();
  KernelResult result{.declined = kernel.supports(call)};
  if (!result.declined.empty()) return result;

  alignas(16) std::array<std::byte, kMaxArgumentBytes> arguments{};
  kernel.write_arguments(call, arguments);
  const CpuWork work = kernel.work(call, shares);
  GuardedBytes output(bytes_of(bound.output().dtype, bound.output().shape).value_or(0));
  GuardedBytes shared(work.shared_scratch_bytes);
  std::vector<GuardedBytes> scratch;
  for (std::uint32_t share = 0; share < shares; ++share) scratch.emplace_back(work.thread_scratch_bytes);
  constexpr std::byte kNanByte{0xFF};
  shared.fill(kNanByte);
  for (GuardedBytes& own : scratch) own.fill(kNanByte);
  std::vector<const std::byte*> inputs;
  for (const Tensor* input : use.inputs) inputs.push_back(input == nullptr ? nullptr : input->data());
  if (bound.output().kind == TensorKind::state) {
    std::memcpy(output.data(), use.inputs[0]->data(), output.size());
    inputs[0] = output.data();
  }
  for (std::uint32_t phase = 0; phase < work.phases; ++phase)
    for (std::uint32_t share = 0; share < shares; ++share)
      result.code |= kernel.run({.arguments = arguments.data(),
                                 .inputs = inputs,
                                 .output = output.data(),
                                 .parameters = &use.parameters,
                                 .phase = phase,
                                 .share = share,
                                 .shares = shares,
                                 .shared_scratch = shared.data(),
                                 .thread_scratch = scratch[(share + phase) % shares].data()});
  EXPECT_TRUE(output.guards_are_intact()) << "wrote outside the result of " << use.text();
  EXPECT_TRUE(shared.guards_are_intact()) << "wrote outside the shared scratch of " << use.text();
  for (const GuardedBytes& own : scratch)
    EXPECT_TRUE(own.guards_are_intact()) << "wrote outside the scratch of a thread of " << use.text();
  result.output.operand = bound.output();
  result.output.bytes.assign(output.data(), output.data() + output.size());
  return result;
}

// Returns whether the rows of axis 0 from `valid` on still hold only the canary.
inline bool rows_are_untouched(const Tensor& output, std::uint32_t valid) {
  const std::uint32_t entries = output.operand.shape[0];
  if (entries == 0) return true;
  for (std::size_t i = output.bytes.size() / entries * valid; i < output.bytes.size(); ++i)
    if (output.bytes[i] != kCanary) return false;
  return true;
}

// Returns the first `entries` of axis 0.
inline std::vector<double> leading_values(const Tensor& output, std::uint32_t entries) {
  std::vector<double> values = values_of(output);
  if (output.operand.shape[0] != 0) values.resize(values.size() / output.operand.shape[0] * entries);
  return values;
}

}  // namespace shunt::test
