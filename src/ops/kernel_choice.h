// Which of several kernels runs a call: a device's rule says, or measurements of a shape near the call's.
//
// A device that has several kernels for a call lists them (Device::kernels_for), the one that its rule takes first. All
// of them keep the promise of the call's numerics. `shunt calibrate` finds out which is fastest. Plain values; any
// thread.
#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ops/arithmetic.h"
#include "ops/op.h"

namespace shunt {

// A kernel that could run a call. Names are constants of the program.
struct KernelCandidate {
  std::string_view name;
  Arithmetic arithmetic = Arithmetic::f32;  // of its products
};

// The kernel that was fastest for a shape of an op.
struct KernelChoice {
  Cost cost;  // by the op's cost rule
  std::string kernel;
};
// By choice_kind().
using KernelChoices = std::map<std::string, std::vector<KernelChoice>, std::less<>>;

// The kernel that runs a call, where a device has several.
struct ChosenKernel {
  std::string_view name;     // empty: it has one
  bool is_measured = false;  // otherwise the device's rule took it
};

// Returns whether shapes with these costs count as the same.
[[nodiscard]] constexpr bool is_same_shape(const Cost& one, const Cost& other) {
  return one.flops == other.flops && one.bytes_read == other.bytes_read && one.bytes_written == other.bytes_written;
}

// Returns kind_of() for the least exact of these kernels.
[[nodiscard]] std::string choice_kind(const OpCall& call, std::span<const KernelCandidate> candidates);

// Returns the number of the candidate that was fastest for the nearest shape of its kind; nothing if no shape with at
// most twice, and at least half, as many flops, bytes read and bytes written was measured, or that kernel is none of
// these.
[[nodiscard]] std::optional<std::size_t> measured_choice(const KernelChoices& choices, const OpCall& call,
                                                         std::span<const KernelCandidate> candidates);

}  // namespace shunt
