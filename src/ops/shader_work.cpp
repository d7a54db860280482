#include "ops/shader_work.h"

#include <fmt/format.h>

namespace shunt {
namespace {

std::uint32_t elements_per_word(DType dtype) {
  const std::uint32_t bytes = info_of(dtype).block_bytes;
  return bytes < 4 ? 4 / bytes : 1;
}

bool is_plain(DType dtype) {
  const DTypeInfo& info = info_of(dtype);
  return info.block_elements == 1 && info.block_bytes >= 2;
}

}  // namespace

std::string plain_refusal(const OpCall& call, std::size_t input) {
  const DType dtype = call.input(input).dtype;
  if (is_plain(dtype)) return {};
  return fmt::format("{}: the shader does not read {}", name_of(call.op), name_of(dtype));
}

std::string whole_words_refusal(const OpCall& call, const Operand& written) {
  if (written.shape.columns() % elements_per_word(written.dtype) == 0) return {};
  return fmt::format("{}: the shader cannot write rows of {} elements of {}", name_of(call.op), written.shape.columns(),
                     name_of(written.dtype));
}

std::uint64_t groups_for_words(const Operand& written) {
  const std::uint32_t each = elements_per_word(written.dtype) * kShaderGroupSize;
  return (written.shape.elements() + each - 1) / each;
}

std::uint64_t group_for_each_row(const OpCall& call) { return call.output->shape.rows(); }

std::uint64_t groups_for_rows(const Operand& written) {
  const std::uint64_t rows = written.shape.rows();
  return written.shape.columns() % elements_per_word(written.dtype) == 0 ? rows : (rows + 1) / 2;
}

std::uint64_t rounds_over(std::uint64_t columns) { return (columns + kShaderGroupSize - 1) / kShaderGroupSize; }

std::uint64_t rounds_over_rows(const Operand& written, std::uint32_t times) {
  constexpr std::uint64_t kStoring = 3;  // a word, and each of its elements
  const std::uint64_t columns = written.shape.columns();
  const std::uint64_t rows = columns % elements_per_word(written.dtype) == 0 ? 1 : 2;
  return rows * (1 + times * (rounds_over(columns) + kRoundsOfAGroup) + kStoring * rounds_over(columns));
}

}  // namespace shunt
