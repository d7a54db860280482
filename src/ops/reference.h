// Runs ops on host memory with the scalar reference kernels, without a device: what other results are held
// against. A fused row is run as its expansion. Single-threaded; plain values.
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

// The first `rows` entries of axis 0 of an operand that begins `offset` elements into `storage`, as a plain tensor.
[[nodiscard]] HostTensor plain_copy(const Operand& from, std::span<const std::byte> storage, std::uint64_t offset,
                                    std::uint32_t rows);

// The result of one use of an op; null where an optional input is absent. An op whose result is state gives the
// new state and leaves the old one as it was. Errors: those of infer(); unsupported where the reference declines.
[[nodiscard]] Result<HostTensor> run_reference(Op op, const Attributes& attributes,
                                               std::span<const HostTensor* const> inputs);

}  // namespace shunt
