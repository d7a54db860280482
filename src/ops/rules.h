// What the rules of several ops share: checks of operands, results, costs, samples and benchmark operands.
//
// A family's .cpp includes this to write its OpRule (ops/op.h). Pure functions; any thread.
#pragma once

#include <string>
#include <string_view>

#include "ops/bench_case.h"
#include "ops/op.h"
#include "ops/sample.h"

namespace shunt {

// An error of code invalid; infer() puts the op's name before the message.
[[nodiscard]] std::unexpected<Error> invalid(std::string message);
[[nodiscard]] std::string text_of(const Operand& operand);
[[nodiscard]] bool is_floating(const Operand& operand);
[[nodiscard]] Status need_floating(std::string_view name, const Operand& operand);
[[nodiscard]] Status need_rank(std::string_view name, const Operand& operand, std::uint32_t rank);
[[nodiscard]] Status need(std::string_view name, const Operand& operand, DType dtype, const Shape& shape);
// Blocks are made of neighbouring elements of one row.
[[nodiscard]] Status need_whole_rows(std::string_view name, const Operand& operand);
// `small` equals the last axes of `large`.
[[nodiscard]] bool is_suffix(const Shape& small, const Shape& large);
[[nodiscard]] ResultShape value(DType dtype, const Shape& shape, Extent extent);
// What an op that makes one element of each row gives: a row alone becomes an axis of one.
[[nodiscard]] ResultShape one_of_each_row(DType dtype, const Operand& x);
[[nodiscard]] Status need_elements(const Operand& x);
[[nodiscard]] bool present(InputOperands inputs, std::size_t index);

// positions [tokens], sequences [tokens], pages [sequences, pages of each]
[[nodiscard]] Status need_page_table(InputOperands inputs, std::size_t first, std::uint32_t tokens);

// Of all elements, in the dtype's blocks.
[[nodiscard]] double bytes_of(const Operand& operand);
// No flops; every input read once.
[[nodiscard]] Cost read_all_write_one(const OpCall& call);

// [entries, ..., columns] floats, sometimes of rank 1.
[[nodiscard]] SampleBuilder::Request pick_rows(SampleBuilder& sample);
// Adds a further operand that is broadcast along missing leading axes of `first`.
void add_broadcast(SampleBuilder& sample, const SampleBuilder::Request& first, bool optional, Values values);

// Tokens of a few sequences whose pages are shuffled over the state.
struct Paging {
  Entries tokens;
  std::uint32_t before = 0;  // positions that a sequence holds already
  std::uint32_t page_tokens = 1;
  std::uint32_t pages = 0;
  std::uint32_t sequence_pages = 0;
};
[[nodiscard]] Paging pick_paging(SampleBuilder& sample);
// Adds positions, sequences and pages; no two tokens have the same place.
void add_paging(SampleBuilder& sample, const Paging& paging);

// Every required input is F32 [rows, embedding].
void bench_rows(BenchBuilder& bench);

}  // namespace shunt
