// Which ops of a run share their steps, and that results are the same as those of each op alone.
#include "devices/kernel_run.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <map>
#include <set>
#include <string>

#include "devices/discovery/registry.h"

namespace shunt {
namespace {

const CpuKernel* simd_kernel(const OpCall& call) {
  const CpuFamily& family = cpu_family(info_of(call.op).family);
  return family.simd != nullptr ? family.simd : family.scalar;
}

std::byte* address_of(const Binding& binding) {
  return binding.buffer == nullptr ? nullptr : binding.buffer->host().data() + binding.offset;
}

// Ops whose operands follow each other in one buffer of cpu:simd.
class Ops {
 public:
  explicit Ops(std::uint32_t threads)
      : threads_(threads), registry_(*open_devices({.devices = "cpu", .threads = threads})) {}

  Device& device() { return *(*select_devices(registry_, "cpu:simd"))[0]; }

  // Returns a new operand.
  const Operand* add(DType dtype, std::initializer_list<std::uint32_t> shape, TensorKind kind = TensorKind::value) {
    const Operand& operand = operands_.emplace_back(
        Operand::contiguous(dtype, shape, kind, kind == TensorKind::value ? Extent::tokens : Extent::fixed));
    bindings_[&operand] = {.offset = bytes_, .bytes = operand.span_bytes()};
    bytes_ += (operand.span_bytes() + 63) / 64 * 64;
    return &operand;
  }

  void use(Op op, std::vector<const Operand*> inputs, const Operand* output, Numerics numerics = Numerics::automatic) {
    const auto& kept = inputs_.emplace_back(std::move(inputs));
    ops_.push_back(
        {.call = {.op = op, .attributes = &attributes_, .inputs = kept, .output = output, .numerics = numerics},
         .name = "op " + std::to_string(ops_.size())});
  }

  // Multiplies x by a new weight of `rows` rows and returns the product.
  const Operand* multiply(const Operand* x, DType dtype, std::uint32_t rows, Numerics numerics = Numerics::automatic) {
    const std::uint32_t k = x->shape[1];
    const Operand* const out = add(DType::F32, {x->shape[0], rows});
    use(Op::linear, {x, add(dtype, {rows, k}, TensorKind::weight)}, out, numerics);
    return out;
  }

  // Allocates the operands, fills them and binds the ops to them.
  std::vector<ProgramOp>& bound() {
    if (buffer_) return ops_;
    buffer_ = std::move(*device().allocate(bytes_, BufferUse::values));
    fill();
    for (ProgramOp& op : ops_) {
      for (const Operand* input : op.call.inputs) op.inputs.push_back(binding(input));
      op.output = binding(op.call.output);
    }
    return ops_;
  }

  Binding binding(const Operand* operand) {
    if (operand == nullptr) return {};
    Binding binding = bindings_.at(operand);
    binding.buffer = buffer_.get();
    return binding;
  }

  // Returns how many ops each step has, and in how many phases.
  std::string steps() {
    std::string text;
    const KernelRun run(bound(), simd_kernel, address_of, threads_);
    for (const KernelRun::Step& step : run.steps()) {
      if (step.phase == 0 && step.op != 0) text += ' ';
      text += std::to_string(step.ops);
    }
    return text;
  }

  // Runs these ops in one program and returns their results.
  std::vector<std::byte> run(std::span<const ProgramOp> ops, std::uint32_t tokens) {
    auto program = device().prepare({.name = "ops", .ops = ops});
    EXPECT_TRUE(program.has_value()) << program.error().message;
    const Status done = device().submit(**program, {.parameters = {.tokens = tokens, .outputs = tokens}}).wait();
    EXPECT_TRUE(done.has_value()) << done.error().message;
    std::vector<std::byte> results;
    for (const ProgramOp& op : ops) {
      const std::byte* const begin = address_of(op.output);
      results.insert(results.end(), begin, begin + op.output.bytes);
      std::memset(address_of(op.output), 0, op.output.bytes);
    }
    return results;
  }

 private:
  // Random bits, in which no pair of bytes is a large or tiny number of 16 bits, and indices.
  void fill() {
    std::uint32_t state = 1;
    for (std::byte& byte : buffer_->host()) {
      state = state * 1664525U + 1013904223U;
      byte = static_cast<std::byte>((state >> 24U & 0x3BU) | 0x10U);
    }
    for (const auto& [operand, at] : bindings_) {
      if (operand->dtype != DType::I32) continue;
      for (std::uint32_t i = 0; i < operand->shape.elements(); ++i) {
        const auto index = static_cast<std::int32_t>(i * 5 % 7);
        std::memcpy(address_of(binding(operand)) + i * sizeof index, &index, sizeof index);
      }
    }
  }

  std::uint32_t threads_;
  Registry registry_;
  Attributes attributes_;
  std::deque<Operand> operands_;
  std::deque<std::vector<const Operand*>> inputs_;
  std::map<const Operand*, Binding> bindings_;
  std::uint64_t bytes_ = 0;
  std::unique_ptr<Buffer> buffer_;
  std::vector<ProgramOp> ops_;
};

constexpr std::uint32_t kMany = 1U << 16U;  // elements of an op that several threads share

TEST(KernelRun, OpsThatDoNotDependOnEachOtherShareAStep) {
  Ops ops(4);
  const Operand* const x = ops.add(DType::F32, {1, kMany});
  for (int op = 0; op < 3; ++op) ops.use(Op::relu, {x}, ops.add(DType::F32, {1, kMany}));
  EXPECT_EQ(ops.steps(), "3");
}

TEST(KernelRun, OpsThatReadResultsFollow) {
  Ops ops(4);
  const Operand* const x = ops.add(DType::F32, {1, kMany});
  const Operand* const y = ops.add(DType::F32, {1, kMany});
  const Operand* const z = ops.add(DType::F32, {1, kMany});
  ops.use(Op::relu, {x}, y);
  ops.use(Op::relu, {y}, z);
  EXPECT_EQ(ops.steps(), "1 1");
}

TEST(KernelRun, OpsThatOverwriteFollow) {
  Ops ops(4);
  const Operand* const x = ops.add(DType::F32, {1, kMany});
  const Operand* const y = ops.add(DType::F32, {1, kMany});
  const Operand* const z = ops.add(DType::F32, {1, kMany});
  ops.use(Op::relu, {x}, y);
  ops.use(Op::relu, {z}, x);
  ops.use(Op::relu, {z}, y);
  ops.use(Op::relu, {z}, y);
  EXPECT_EQ(ops.steps(), "1 2 1");
}

TEST(KernelRun, SmallOpsStayOnTheThreadThatIsThere) {
  Ops ops(4);
  const Operand* const x = ops.add(DType::F32, {1, 8});
  for (int op = 0; op < 2; ++op) ops.use(Op::relu, {x}, ops.add(DType::F32, {1, 8}));
  EXPECT_EQ(ops.steps(), "1 1");
}

TEST(KernelRun, AStepHasAFewOps) {
  Ops ops(2);
  const Operand* const x = ops.add(DType::F32, {1, kMany});
  for (int op = 0; op < 6; ++op) ops.use(Op::relu, {x}, ops.add(DType::F32, {1, kMany}));
  EXPECT_EQ(ops.steps(), "4 2");
}

TEST(KernelRun, ProductsOfTheSameRowsPrepareThemOnce) {
  Ops ops(2);
  const Operand* const x = ops.add(DType::F32, {64, 256});
  ops.multiply(x, DType::F16, 512, Numerics::exact);
  ops.multiply(x, DType::Q4_K, 256, Numerics::exact);
  ops.multiply(x, DType::Q6_K, 64, Numerics::exact);
  EXPECT_EQ(ops.steps(), "13");
}

TEST(KernelRun, ProductsOfOtherRowsPrepareTheirs) {
  Ops ops(2);
  const Operand* const x = ops.add(DType::F32, {64, 256});
  const Operand* const y = ops.add(DType::F32, {64, 256});
  ops.multiply(x, DType::Q4_K, 512, Numerics::exact);
  ops.multiply(y, DType::Q4_K, 512, Numerics::exact);
  EXPECT_EQ(ops.steps(), "11 11");
}

TEST(KernelRun, ProductsOfOtherWeightsPrepareTheirs) {
  Ops ops(2);
  const Operand* const x = ops.add(DType::F32, {64, 256}, TensorKind::weight);
  const Operand* const y = ops.add(DType::F32, {64, 256}, TensorKind::weight);
  ops.multiply(x, DType::Q4_K, 512, Numerics::exact);
  ops.multiply(y, DType::Q4_K, 512, Numerics::exact);
  EXPECT_EQ(ops.steps(), "11 11");
}

TEST(KernelRun, AnOptionalInputMayBeAbsentFromEither) {
  for (const bool is_first : {true, false}) {
    Ops ops(2);
    const Operand* const x = ops.add(DType::F32, {3, 1, 512});
    const Operand* const ids = ops.add(DType::I32, {3, 2});
    const Operand* const slots = ops.add(DType::I32, {8});
    for (const bool has_slots : {is_first, !is_first})
      ops.use(Op::linear_experts,
              {x, ops.add(DType::Q4_K, {8, 128, 512}, TensorKind::weight), ids, has_slots ? slots : nullptr, nullptr},
              ops.add(DType::F32, {3, 2, 128}));
    EXPECT_EQ(ops.steps(), "11 11");
  }
}

TEST(KernelRun, ProductsThatRoundOtherwisePrepareTheirs) {
  Ops ops(2);
  const Operand* const x = ops.add(DType::F32, {64, 256});
  ops.multiply(x, DType::Q4_K, 512, Numerics::fast);
  ops.multiply(x, DType::Q4_K, 512, Numerics::exact);
  const CpuKernel& kernel = *simd_kernel(ops.bound()[0].call);
  if (kernel.arithmetic(ops.bound()[0].call) == kernel.arithmetic(ops.bound()[1].call))
    GTEST_SKIP() << "this processor rounds nothing";
  EXPECT_EQ(ops.steps(), "11 11");
}

TEST(KernelRun, EachShareOfEachOpIsGivenOnce) {
  for (const std::uint32_t threads : {1U, 2U, 3U, 16U}) {
    Ops ops(threads);
    const Operand* const x = ops.add(DType::F32, {16, 256});
    ops.multiply(x, DType::Q4_K, 4096);
    ops.multiply(x, DType::Q4_K, 256);
    ops.multiply(x, DType::Q4_K, 8);
    const KernelRun run(ops.bound(), simd_kernel, address_of, threads);
    ASSERT_EQ(run.steps().back().ops, 3U) << threads;
    std::map<std::uint32_t, std::set<std::uint32_t>> seen;
    std::map<std::uint32_t, std::uint32_t> shares;
    for (std::uint32_t share = 0; share < run.steps().back().shares; ++share) {
      const KernelRun::Share found = run.share_of(run.steps().back(), share);
      EXPECT_TRUE(seen[found.op].insert(found.share).second);
      shares[found.op] = found.shares;
    }
    for (const auto& [op, numbers] : seen) {
      EXPECT_EQ(numbers.size(), shares.at(op)) << op;
      EXPECT_EQ(*numbers.rbegin() + 1, shares.at(op)) << op;
    }
  }
}

// The results of a program of all ops must be those of a program for each.
void expect_same_as_alone(Ops& ops, std::uint32_t tokens) {
  std::vector<std::byte> alone;
  for (const ProgramOp& op : ops.bound()) {
    const std::vector<std::byte> result = ops.run(std::span(&op, 1), tokens);
    alone.insert(alone.end(), result.begin(), result.end());
  }
  EXPECT_EQ(ops.run(ops.bound(), tokens), alone);
}

TEST(KernelRun, JoinedProductsAreThoseOfEachAlone) {
  for (const std::uint32_t rows : {1U, 2U, 9U, 40U, 600U})
    for (const Numerics numerics : {Numerics::exact, Numerics::automatic, Numerics::fast})
      for (const std::uint32_t threads : {1U, 2U, 5U}) {
        SCOPED_TRACE(testing::Message() << rows << " rows, numerics " << static_cast<int>(numerics) << ", " << threads
                                        << " threads");
        Ops ops(threads);
        const Operand* const x = ops.add(DType::F32, {rows, 512});
        ops.multiply(x, DType::Q4_K, 256, numerics);
        ops.multiply(x, DType::Q4_K, 64, numerics);
        ops.multiply(x, DType::Q6_K, 64, numerics);
        ops.multiply(x, DType::F16, 64, numerics);
        ops.multiply(x, DType::F32, 64, numerics);
        ops.multiply(x, DType::Q8_0, 64, numerics);
        ops.multiply(x, DType::Q5_1, 64, numerics);
        ops.multiply(x, DType::Q4_0, 64, numerics);
        ops.multiply(x, DType::MXFP4, 64, numerics);
        expect_same_as_alone(ops, rows);
        expect_same_as_alone(ops, (rows + 1) / 2);
      }
}

TEST(KernelRun, JoinedExpertsAreThoseOfEachAlone) {
  for (const std::uint32_t rows : {1U, 3U, 64U})
    for (const std::uint32_t threads : {1U, 2U, 5U}) {
      SCOPED_TRACE(testing::Message() << rows << " rows, " << threads << " threads");
      Ops ops(threads);
      const Operand* const x = ops.add(DType::F32, {rows, 1, 512});
      const Operand* const ids = ops.add(DType::I32, {rows, 2});
      for (const DType dtype : {DType::Q4_K, DType::Q4_K, DType::Q6_K})
        ops.use(Op::linear_experts, {x, ops.add(dtype, {8, 128, 512}, TensorKind::weight), ids, nullptr, nullptr},
                ops.add(DType::F32, {rows, 2, 128}));
      if (rows == 3) {
        EXPECT_EQ(ops.steps(), "13") << "they are sorted once";
      }
      expect_same_as_alone(ops, rows);
    }
}

}  // namespace
}  // namespace shunt
