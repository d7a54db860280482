// Times matmul: dtype x shape x token rows, on one thread or several. Counters: arithmetic (FLOP/s) and
// weight bytes read per second.
//   matmul_bench --benchmark_filter='Q4_0.*/n:1/' [--threads=2] [--target=AVX2]
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <memory>
#include <new>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "ops/simd_targets.h"
// After simd_targets.h:
#include "hwy/targets.h"
#include "ops/kernel.h"
#include "ops/quantize/blocks.h"

namespace shunt {
namespace {

struct AlignedDelete {
  void operator()(std::byte* p) const { ::operator delete(p, std::align_val_t{64}); }
};
using Memory = std::unique_ptr<std::byte, AlignedDelete>;

Memory allocate(std::uint64_t bytes) {
  Memory memory(static_cast<std::byte*>(::operator new(bytes, std::align_val_t{64})));
  std::memset(memory.get(), 0, bytes);
  return memory;
}

// Random bytes, but every 16-bit number neither tiny nor infinite, whatever the dtype.
void fill_weights(std::byte* weights, std::uint64_t bytes) {
  std::mt19937_64 random(1);
  for (std::uint64_t i = 0; i + 8 <= bytes; i += 8) {
    const std::uint64_t word = (random() & 0x3BFF3BFF3BFF3BFFU) | 0x2000200020002000U;
    std::memcpy(weights + i, &word, 8);
  }
}

struct Shape3 {
  std::uint32_t m, k;
};

void multiply(benchmark::State& state, DType dtype, Shape3 shape, std::uint32_t rows, std::uint32_t threads) {
  const Operand x = Operand::contiguous(DType::F32, Shape{rows, shape.k});
  const Operand weight = Operand::contiguous(dtype, Shape{shape.m, shape.k}, TensorKind::weight);
  const Operand result = Operand::contiguous(DType::F32, Shape{rows, shape.m});
  const Operand* operands[] = {&x, &weight};
  const Attributes none;
  const OpCall op{.op = Op::matmul, .attributes = &none, .inputs = operands, .output = &result};
  const CpuKernel& kernel = *cpu_family("matmul").simd;
  const CpuWork work = kernel.work(op, threads);
  const Memory xs = allocate(x.span_bytes());
  const Memory weights = allocate(weight.span_bytes());
  const Memory out = allocate(result.span_bytes());
  const Memory shared = allocate(work.shared_scratch_bytes);
  fill_weights(weights.get(), weight.span_bytes());
  for (std::uint64_t i = 0; i < x.shape.elements(); ++i)
    reinterpret_cast<float*>(xs.get())[i] = static_cast<float>(i % 17) - 8;
  alignas(16) std::array<std::byte, kMaxArgumentBytes> arguments;
  kernel.write_arguments(op, arguments);
  const std::byte* inputs[] = {xs.get(), weights.get()};
  const Parameters parameters;
  std::vector<Memory> scratch;
  for (std::uint32_t t = 0; t < threads; ++t) scratch.push_back(allocate(work.thread_scratch_bytes));
  const auto run = [&](std::uint32_t phase, std::uint32_t thread) {
    CpuCall call;
    call.arguments = arguments.data();
    call.inputs = inputs;
    call.output = out.get();
    call.parameters = &parameters;
    call.phase = phase;
    call.thread = thread;
    call.threads = threads;
    call.shared_scratch = shared.get();
    call.thread_scratch = scratch[thread].get();
    kernel.run(call);
  };
  for (auto _ : state) {
    for (std::uint32_t phase = 0; phase < work.phases; ++phase) {
      std::vector<std::jthread> others;
      for (std::uint32_t t = 1; t < threads; ++t) others.emplace_back(run, phase, t);
      run(phase, 0);
    }
    benchmark::ClobberMemory();
  }
  const double flops = 2.0 * shape.m * shape.k * rows;
  state.counters["FLOP/s"] = benchmark::Counter(flops, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["B/s"] =
      benchmark::Counter(static_cast<double>(weight.span_bytes()), benchmark::Counter::kIsIterationInvariantRate);
}

// What a plain read of the same memory reaches: the bound of n = 1.
void read_memory(benchmark::State& state, std::uint32_t threads) {
  constexpr std::uint64_t kBytes = std::uint64_t{512} << 20;
  const Memory memory = allocate(kBytes);
  std::vector<std::uint64_t> sums(threads * 8);
  const auto run = [&](std::uint32_t thread) {
    const Range range = share_of(kBytes / 8, thread, threads, 8);
    const auto* words = reinterpret_cast<const std::uint64_t*>(memory.get());
    std::uint64_t sum = 0;
    for (std::uint64_t i = range.begin; i < range.end; ++i) sum += words[i];
    sums[thread * 8] = sum;
  };
  for (auto _ : state) {
    std::vector<std::jthread> others;
    for (std::uint32_t t = 1; t < threads; ++t) others.emplace_back(run, t);
    run(0);
    others.clear();
    benchmark::DoNotOptimize(sums.data());
    benchmark::ClobberMemory();
  }
  state.counters["B/s"] =
      benchmark::Counter(static_cast<double>(kBytes), benchmark::Counter::kIsIterationInvariantRate);
}

// One thread is timed by its processor time, so that a busy machine disturbs less.
void timed(benchmark::internal::Benchmark* bench, std::uint32_t threads) {
  bench->Unit(benchmark::kMicrosecond);
  if (threads > 1) bench->UseRealTime();
}

void register_all(std::uint32_t threads) {
  timed(benchmark::RegisterBenchmark("read_memory", read_memory, threads), threads);
  for (std::size_t i = 0; i < dtypes().size(); ++i) {
    if (dtypes()[i].kind == DTypeKind::integer) continue;
    for (const Shape3 shape : {Shape3{2816, 1024}, Shape3{32000, 1024}, Shape3{4096, 14336}})
      for (const std::uint32_t rows : {1U, 2U, 4U, 8U, 16U, 24U, 32U, 512U})
        timed(benchmark::RegisterBenchmark(
                  fmt::format("matmul/{}/m:{}/k:{}/n:{}/", dtypes()[i].name, shape.m, shape.k, rows).c_str(), multiply,
                  static_cast<DType>(i), shape, rows, threads),
              threads);
  }
}

}  // namespace
}  // namespace shunt

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  std::uint32_t threads = 1;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument.starts_with("--threads=")) threads = static_cast<std::uint32_t>(std::atoi(argv[i] + 10));
    for (const std::int64_t target : hwy::SupportedAndGeneratedTargets())
      if (argument == fmt::format("--target={}", hwy::TargetName(target))) hwy::SetSupportedTargetsForTest(target);
  }
  shunt::register_all(threads == 0 ? 1 : threads);
  benchmark::RunSpecifiedBenchmarks();
}
