// What the shader kernels of several families ask of their operands, and how they split their work. Pure functions.
#pragma once

#include <cstdint>
#include <string>

#include "ops/shader.h"

namespace shunt {

// Empty, or why an input's elements cannot be read: those of 32 and 16 bits can.
[[nodiscard]] std::string plain_refusal(const OpCall& call, std::size_t input);
// Empty, or why rows of this operand, which the kernel writes, share 32-bit words.
[[nodiscard]] std::string whole_words_refusal(const OpCall& call, const Operand& written);

// Workgroups whose invocations write a word each: ops/words.glsl, ops/bits.glsl.
[[nodiscard]] std::uint64_t groups_for_words(const Operand& written);
// Workgroups that write whole rows: ops/row_groups.glsl.
[[nodiscard]] std::uint64_t groups_for_rows(const Operand& written);

}  // namespace shunt
