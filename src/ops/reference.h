// Runs ops on host memory with the scalar reference kernels, without a device. Other results are compared with
// these. A fused op runs as its expansion. Single-threaded; plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ops/op.h"

namespace shunt {

struct HostTensor {
  Operand operand;  // contiguous, axis 0 not a bucket
  std::vector<std::byte> bytes;
};

// Copies the first `rows` entries of axis 0 of an operand that begins `offset` elements into `storage`.
[[nodiscard]] HostTensor plain_copy(const Operand& from, std::span<const std::byte> storage, std::uint64_t offset,
                                    std::uint32_t rows);

// Returns the result of one use of an op; an absent optional input is null. An op whose result is state returns the
// new state and does not change the old one. Errors: those of infer(); unsupported if the reference declines.
[[nodiscard]] Result<HostTensor> run_reference(Op op, const Attributes& attributes,
                                               std::span<const HostTensor* const> inputs);

}  // namespace shunt
