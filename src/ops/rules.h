// Shared by the rules of several ops: checks of operands, results, costs, samples and benchmark operands.
//
// A family's .cpp includes this to write its OpRule (ops/op.h). Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "ops/bench_case.h"
#include "ops/op.h"
#include "ops/sample.h"

namespace shunt {

// Returns an error of code invalid; infer() prefixes the message with the op's name.
[[nodiscard]] std::unexpected<Error> invalid(std::string message);
[[nodiscard]] std::string text_of(const Operand& operand);
[[nodiscard]] bool is_floating(const Operand& operand);
[[nodiscard]] Status need_floating(std::string_view name, const Operand& operand);
// Checks that the operand is state whose dtype is one of cache_dtypes().
[[nodiscard]] Status need_cache(std::string_view name, const Operand& operand);
[[nodiscard]] Status need_rank(std::string_view name, const Operand& operand, std::uint32_t rank);
[[nodiscard]] Status need(std::string_view name, const Operand& operand, DType dtype, const Shape& shape);
// Checks that the operand has rows and that they are contiguous, because blocks consist of neighbouring elements.
[[nodiscard]] Status need_whole_rows(std::string_view name, const Operand& operand);
// Returns whether `small` equals the last axes of `large`.
[[nodiscard]] bool is_suffix(const Shape& small, const Shape& large);
[[nodiscard]] ResultShape value(DType dtype, const Shape& shape, Extent extent);
// Returns the result of an op that makes one element from each row; a single row gives an axis of extent 1.
[[nodiscard]] ResultShape one_of_each_row(DType dtype, const Operand& x);
[[nodiscard]] Status need_elements(const Operand& x);
[[nodiscard]] bool present(InputOperands inputs, std::size_t index);

// Checks positions [tokens], sequences [tokens] and pages [sequences, pages of each].
[[nodiscard]] Status need_page_table(InputOperands inputs, std::size_t first, std::uint32_t tokens);

// Returns the bytes of all elements, in the dtype's blocks.
[[nodiscard]] double bytes_of(const Operand& operand);
// Counts no flops, one read of every input and one write of the result.
[[nodiscard]] Cost read_all_write_one(const OpCall& call);

// Picks an operand [entries, ..., columns] of a floating dtype.
[[nodiscard]] SampleBuilder::Request pick_rows(SampleBuilder& sample);
// Adds an operand that is broadcast along missing leading axes of `first`.
void add_broadcast(SampleBuilder& sample, const SampleBuilder::Request& first, bool optional, Values values);

// The tokens of a few sequences whose pages are shuffled over the state.
struct Paging {
  Entries tokens;
  std::uint32_t before = 0;  // positions that a sequence already holds
  std::uint32_t page_tokens = 1;
  std::uint32_t pages = 0;
  std::uint32_t sequence_pages = 0;
};
[[nodiscard]] Paging pick_paging(SampleBuilder& sample);
// Adds positions, sequences and pages; no two tokens share a slot.
void add_paging(SampleBuilder& sample, const Paging& paging);

// Returns the least number of elements, at least `elements`, that is a whole number of blocks.
[[nodiscard]] std::uint32_t whole_blocks(DType dtype, std::uint32_t elements);

// Adds F32 [rows, embedding] for every required input.
void bench_rows(BenchBuilder& bench);

}  // namespace shunt
