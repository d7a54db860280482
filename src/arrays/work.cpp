#include "arrays/work.h"

#include <fmt/format.h>

#include <algorithm>

namespace shunt::arrays {
namespace {

// The row length in graphs of elementwise functions: a bucket then fits any size to within one row.
constexpr std::uint32_t kElementwiseColumns = 256;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 31U;

std::unexpected<Error> refuse(Function function, std::string_view why) {
  return fail(Code::invalid, fmt::format("{}: {}", name_of(function), why));
}

// Checks for the wanted size, and for a limit that keeps all numbers in kernels below 2^32.
Status need(Function function, std::string_view name, std::uint64_t elements, std::uint64_t wanted) {
  if (elements != wanted)
    return refuse(function, fmt::format("{} has {} elements, must have {}", name, elements, wanted));
  if (elements > kMostElements)
    return refuse(function, fmt::format("{} has {} elements, at most {} can be", name, elements, kMostElements));
  return {};
}

std::uint32_t rows_of(std::uint64_t elements, std::uint32_t columns) {
  return static_cast<std::uint32_t>((elements + columns - 1) / columns);
}

}  // namespace

std::string_view name_of(Function function) {
  constexpr std::string_view kNames[] = {
#define SHUNT_ARRAY_FUNCTION(name, op, inputs) #name,
      SHUNT_ARRAY_FUNCTIONS(SHUNT_ARRAY_FUNCTION)
#undef SHUNT_ARRAY_FUNCTION
  };
  return kNames[static_cast<std::size_t>(function)];
}

Op op_of(Function function) {
  constexpr Op kOps[] = {
#define SHUNT_ARRAY_FUNCTION(name, op, inputs) Op::op,
      SHUNT_ARRAY_FUNCTIONS(SHUNT_ARRAY_FUNCTION)
#undef SHUNT_ARRAY_FUNCTION
  };
  return kOps[static_cast<std::size_t>(function)];
}

std::size_t inputs_of(Function function) {
  constexpr std::size_t kInputs[] = {
#define SHUNT_ARRAY_FUNCTION(name, op, inputs) inputs,
      SHUNT_ARRAY_FUNCTIONS(SHUNT_ARRAY_FUNCTION)
#undef SHUNT_ARRAY_FUNCTION
  };
  return kInputs[static_cast<std::size_t>(function)];
}

bool is_reduction(Function function) { return function == Function::dot || function == Function::sum; }

std::uint64_t Task::units() const {
  return function == Function::matmul ? std::uint64_t{rows} * columns * outputs : a.size();
}

std::string Task::text() const {
  if (function == Function::matmul)
    return fmt::format("matmul of [{}, {}] and [{}, {}]", rows, columns, columns, outputs);
  return fmt::format("{} of {} elements", name_of(function), a.size());
}

Result<Task> elementwise(Function function, std::span<const float> a, std::span<const float> b, std::span<float> out) {
  SHUNT_TRY(need(function, "b", b.size(), a.size()));
  SHUNT_TRY(need(function, "the result", out.size(), a.size()));
  return Task{.function = function,
              .a = a,
              .b = b,
              .out = out,
              .rows = rows_of(a.size(), kElementwiseColumns),
              .columns = kElementwiseColumns};
}

Result<Task> product(std::span<const float> a, std::span<const float> b, std::uint64_t rows, std::uint64_t inner,
                     std::uint64_t columns, std::span<float> out) {
  for (const std::uint64_t extent : {rows, inner, columns})
    if (extent > kMostElements)
      return refuse(Function::matmul, fmt::format("an extent of {}, at most {} can be", extent, kMostElements));
  SHUNT_TRY(need(Function::matmul, "a", a.size(), rows * inner));
  SHUNT_TRY(need(Function::matmul, "b", b.size(), inner * columns));
  SHUNT_TRY(need(Function::matmul, "the result", out.size(), rows * columns));
  return Task{.function = Function::matmul,
              .a = a,
              .b = b,
              .out = out,
              .rows = static_cast<std::uint32_t>(rows),
              .columns = static_cast<std::uint32_t>(inner),
              .outputs = static_cast<std::uint32_t>(columns)};
}

Result<Task> reduction(Function function, std::span<const float> a, std::span<const float> b, float& out) {
  SHUNT_TRY(need(function, "a", a.size(), a.size()));
  if (inputs_of(function) == 2) SHUNT_TRY(need(function, "b", b.size(), a.size()));
  return Task{.function = function,
              .a = a,
              .b = b,
              .out = {&out, 1},
              .rows = static_cast<std::uint32_t>(a.size() / kSumColumns),
              .columns = kSumColumns};
}

Result<Task> softmax(std::span<const float> x, std::uint64_t columns, std::span<float> out) {
  SHUNT_TRY(need(Function::softmax, "the result", out.size(), x.size()));
  if (x.empty()) return Task{.function = Function::softmax};
  if (columns == 0 || x.size() % columns != 0)
    return refuse(Function::softmax, fmt::format("{} elements are not whole rows of {} columns", x.size(), columns));
  return Task{.function = Function::softmax,
              .a = x,
              .b = {},
              .out = out,
              .rows = static_cast<std::uint32_t>(x.size() / columns),
              .columns = static_cast<std::uint32_t>(columns)};
}

bool fill_if_empty(const Task& work) {
  if (!work.a.empty() && (work.function != Function::matmul || !work.b.empty())) return false;
  std::ranges::fill(work.out, 0.0F);
  return true;
}

namespace {

Tensor apply(GraphBuilder& graph, Function function, Tensor a, Tensor b) {
  switch (function) {
    case Function::add:
      return graph.add(a, b);
    case Function::multiply:
      return graph.mul(a, b);
    case Function::matmul:
      return graph.linear(a, b);
    case Function::dot:
      return graph.dot(a, b);
    case Function::sum:
      return graph.reduce_sum(a);
    case Function::softmax:
      return graph.softmax(a, {});
  }
  return {};
}

}  // namespace

Result<Graph> graph_for(const Bucket& bucket) {
  GraphBuilder graph;
  const bool has_b = inputs_of(bucket.function) == 2;
  if (bucket.rows != 0) {
    const Shape shape{bucket.rows, bucket.columns};
    const bool product = bucket.function == Function::matmul;
    const Tensor a = graph.input("a", DType::F32, shape, Extent::tokens);
    const Tensor b = !has_b    ? Tensor{}
                     : product ? graph.input("b", DType::F32, {bucket.outputs, bucket.columns})
                               : graph.input("b", DType::F32, shape, Extent::tokens);
    graph.output(apply(graph, bucket.function, a, b));
  }
  if (is_reduction(bucket.function)) {
    const Tensor a = graph.input("a rest", DType::F32, {1, bucket.columns});
    const Tensor b = has_b ? graph.input("b rest", DType::F32, {1, bucket.columns}) : Tensor{};
    graph.output(apply(graph, bucket.function, a, b));
  }
  SHUNT_TRY_ASSIGN(Graph finished, std::move(graph).finish());
  finished.set_numerics(bucket.numerics);
  return finished;
}

void commit(const Task& work, std::span<const float> results) {
  if (!is_reduction(work.function)) {
    std::ranges::copy(results, work.out.begin());
    return;
  }
  double total = 0;
  for (const float part : results) total += static_cast<double>(part);
  work.out[0] = static_cast<float>(total);
}

}  // namespace shunt::arrays
