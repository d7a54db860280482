// One call of an array function: the caller's memory, its extents, and the graph that computes such calls.
//
// Plain values that point into the caller's memory. Graphs are made for a bucket of rows, so that calls of many sizes
// share one. Pure functions; any thread.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/graph.h"

namespace shunt::arrays {

// X(name, op, inputs)
#define SHUNT_ARRAY_FUNCTIONS(X) \
  X(add, add, 2)                 \
  X(multiply, mul, 2)            \
  X(matmul, linear, 2)           \
  X(dot, dot, 2)                 \
  X(sum, reduce_sum, 1)          \
  X(softmax, softmax, 1)

enum class Function : std::uint8_t {
#define SHUNT_ARRAY_FUNCTION(name, op, inputs) name,
  SHUNT_ARRAY_FUNCTIONS(SHUNT_ARRAY_FUNCTION)
#undef SHUNT_ARRAY_FUNCTION
};
[[nodiscard]] std::string_view name_of(Function function);
[[nodiscard]] Op op_of(Function function);
[[nodiscard]] std::size_t inputs_of(Function function);
// Returns whether the result is one number: devices then sum rows, and the caller's thread adds up their sums.
[[nodiscard]] bool is_reduction(Function function);

// The sizes that a graph is made for.
struct Bucket {
  Function function{};
  std::uint32_t rows = 0;     // capacity; 0 for sums of less than a row
  std::uint32_t columns = 0;  // of a row of the first input
  std::uint32_t outputs = 0;  // columns of the product; matmul only
  Numerics numerics = Numerics::exact;
  friend bool operator==(const Bucket&, const Bucket&) = default;
};

// Elements per row of a sum's input.
inline constexpr std::uint32_t kSumColumns = 1024;

struct Task {
  Function function{};
  std::span<const float> a;
  std::span<const float> b;  // empty if the function has one input
  std::span<float> out;
  std::uint32_t rows = 0;     // computed together; for sums, the whole rows
  std::uint32_t columns = 0;  // as in Bucket
  std::uint32_t outputs = 0;
  Numerics numerics = Numerics::exact;

  [[nodiscard]] Bucket bucket() const {
    return {function, rows == 0 ? 0 : std::bit_ceil(rows), columns, outputs, numerics};
  }
  // The size that its time depends on, among calls of one function: elements, or products of a matmul.
  [[nodiscard]] std::uint64_t units() const;
  [[nodiscard]] std::uint64_t bytes() const { return (a.size() + b.size() + out.size()) * sizeof(float); }
  // Elements that the device returns: for sums one per row, and one for the rest.
  [[nodiscard]] std::size_t results() const { return is_reduction(function) ? std::size_t{rows} + 1 : out.size(); }
  // The last elements of a sum's input, which do not fill a row.
  [[nodiscard]] std::span<const float> rest_of(std::span<const float> input) const {
    return input.subspan(std::size_t{rows} * columns);
  }
  // "add of 100 elements"
  [[nodiscard]] std::string text() const;
};

// Errors: invalid for sizes that do not match, with the numbers.
[[nodiscard]] Result<Task> elementwise(Function function, std::span<const float> a, std::span<const float> b,
                                       std::span<float> out);
[[nodiscard]] Result<Task> product(std::span<const float> a, std::span<const float> b, std::uint64_t rows,
                                   std::uint64_t inner, std::uint64_t columns, std::span<float> out);
[[nodiscard]] Result<Task> reduction(Function function, std::span<const float> a, std::span<const float> b, float& out);
[[nodiscard]] Result<Task> softmax(std::span<const float> x, std::uint64_t columns, std::span<float> out);

// Returns whether the call is empty and needs no device; if so, writes the result.
[[nodiscard]] bool fill_if_empty(const Task& work);

// Makes a graph with inputs "a" and "b" with extent tokens, except that "b" of a matmul is transposed. Sums also have
// "a rest" and "b rest" of a row each. The outputs are in the order of Task::results().
[[nodiscard]] Result<Graph> graph_for(const Bucket& bucket);

// Writes the device's results to where the caller wants them.
void commit(const Task& work, std::span<const float> results);

}  // namespace shunt::arrays
