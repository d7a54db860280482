// Products of token rows and the rows of a weight, as all ops that multiply on the processor compute them
// (row_products_simd.cpp).
//
// Few token rows go to a row kernel, in words or F32; many go to a tile kernel, in BF16, bytes, words or F32, as the
// numerics allow and the processor can. What widens, packs or rounds the token rows comes first.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ops/kernel.h"
#include "ops/linear/few_rows.h"
#include "ops/linear/linear.h"

namespace shunt {

// How token rows are multiplied.
struct ProductRule {
  std::uint32_t word_rows = 0;        // up to so many are multiplied in words by the row kernel
  Arithmetic many = Arithmetic::f32;  // of more than few

  // Returns whether so many rows are few.
  [[nodiscard]] constexpr bool is_few(DType weight, std::size_t rows) const {
    return rows <= few_rows_beside(many_of(weight, rows));
  }
  // Returns the arithmetic of so many rows.
  [[nodiscard]] constexpr Arithmetic arithmetic(DType weight, std::size_t rows) const {
    if (!is_few(weight, rows)) return many_of(weight, rows);
    return rows <= word_rows ? Arithmetic::words : Arithmetic::f32;
  }
  bool operator==(const ProductRule&) const = default;

 private:
  [[nodiscard]] constexpr Arithmetic many_of(DType weight, std::size_t rows) const {
    return arithmetic_of_rows(many, rounds_weight(weight), rows);
  }
};

// Returns how a call multiplies `rows` token rows at most by its second input, with `k` columns. Exact numerics stay
// with F32, since three products of BF16 are as exact but differ in the last bits.
[[nodiscard]] ProductRule product_rule(const OpCall& call, std::uint64_t rows, std::uint64_t k);
// Returns the least exact arithmetic of the rule.
[[nodiscard]] Arithmetic arithmetic_of(const ProductRule& rule);
// Returns whether token rows are prepared alike for weights of two dtypes.
[[nodiscard]] bool prepares_alike(const ProductRule& rule, DType one, DType other);

// Where token rows are that are multiplied together.
class TokenRows {
 public:
  TokenRows() = default;
  TokenRows(const TokenRows&) = delete;
  TokenRows& operator=(const TokenRows&) = delete;

  [[nodiscard]] virtual const std::byte* x(std::size_t row) const = 0;
  [[nodiscard]] virtual const float* residual(std::size_t row) const = 0;  // null: there is none
  [[nodiscard]] virtual float* out(std::size_t row) const = 0;

 protected:
  ~TokenRows() = default;
};

struct RowProduct {
  const TokenRows& tokens;
  std::size_t rows;        // 1 to kBatchRows
  const LinearArgs& args;  // k, dtypes, bytes of the weight's rows
  ProductRule rule;
  const std::byte* weight;
  std::byte* prepared;  // prepared_bytes(), aligned to 64 bytes
  std::byte* scratch;   // of the thread, product_scratch()

  [[nodiscard]] DType x_dtype() const { return static_cast<DType>(args.x_dtype); }
  [[nodiscard]] DType weight_dtype() const { return static_cast<DType>(args.weight_dtype); }
  [[nodiscard]] bool is_few() const { return rule.is_few(weight_dtype(), rows); }
  [[nodiscard]] Arithmetic arithmetic() const { return rule.arithmetic(weight_dtype(), rows); }
};

// Returns whether up to so many rows are prepared before they are multiplied.
[[nodiscard]] bool prepares(const LinearArgs& args, const ProductRule& rule, std::uint64_t rows);
// Returns the bytes that `rows` token rows or fewer take when they are prepared, a multiple of 64.
[[nodiscard]] std::uint64_t prepared_bytes(const LinearArgs& args, const ProductRule& rule, std::uint64_t rows);
// Returns the scratch of a thread that prepares and multiplies `rows` token rows or fewer.
[[nodiscard]] std::uint64_t product_scratch(const LinearArgs& args, const ProductRule& rule, std::uint64_t rows);

// Returns in how many items the rows are prepared, in any order and by any thread; 0: they are used as they are.
[[nodiscard]] std::uint64_t prepare_items(const RowProduct& product);
void prepare_rows(const RowProduct& product, Range items);

// Returns the weight rows at whose multiples a product should be cut.
[[nodiscard]] std::uint64_t weight_grain(const RowProduct& product);
// Computes some weight rows. REQUIRES: the rows are prepared.
void multiply_rows(const RowProduct& product, Range weight_rows);

}  // namespace shunt
