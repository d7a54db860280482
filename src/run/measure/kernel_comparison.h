// Finds out which of a device's kernels is fastest for an op, where it has several (ops/kernel_choice.h).
//
// Each runs alone, in turns with the others. Another kernel than the one that the device's rule takes must win by
// kLeastKernelGain and the uncertainty of both times. One thread; plain functions.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "devices/device.h"
#include "ops/bench_case.h"
#include "run/measure/op_bench.h"
#include "run/measure/steady.h"

namespace shunt {

inline constexpr double kLeastKernelGain = 0.03;

struct KernelTime {
  std::string kernel;
  Steady us;  // of one use
};

// The result for one shape.
struct KernelComparison {
  std::string kind;  // choice_kind()
  KernelChoice choice;
  std::uint32_t tokens = 0;       // BenchCase::rows
  std::vector<KernelTime> times;  // of the kernel by rule, then of the others

  [[nodiscard]] const std::string& by_rule() const { return times.front().kernel; }
  [[nodiscard]] bool is_by_rule() const { return choice.kernel == by_rule(); }
};
// "attention F32 F16 F16 I32 I32 I32 -> F32 in halves, 64 tokens: attention_split 15.3 us, attention_tile 12.1 us"
[[nodiscard]] std::string to_text(const KernelComparison& comparison);

// Returns the comparisons, with the kernel by rule in place of each choice that whole steps do not confirm.
using ConfirmKernels = std::function<Result<std::vector<KernelComparison>>(std::vector<KernelComparison> comparisons)>;

// Compares the kernels that the device has for a case. Nothing if it has one, or lacks memory. `memory_bytes` and
// `memory`: as for OpBench::create(). Errors: those of a run.
[[nodiscard]] Result<std::optional<KernelComparison>> compare_kernels(const BenchCase& use, Device& device,
                                                                      std::uint64_t memory_bytes, BenchMemory* memory,
                                                                      const SteadyOptions& options);

// Adds choices, each in place of an earlier one for the same shape.
void add_choices(std::span<const KernelComparison> comparisons, KernelChoices& choices);

}  // namespace shunt
