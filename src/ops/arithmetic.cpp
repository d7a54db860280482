#include "ops/arithmetic.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace shunt {
namespace {

constexpr ArithmeticInfo kArithmetics[] = {
#define SHUNT_ARITHMETIC(name, error, meaning) {#name, error, meaning},
#include "ops/arithmetics.def"
};

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr NumericsBounds kBounds[] = {
    /* exact */ {.nmse = 1e-4, .mean_kl = 1.5e-4, .perplexity = kUnbounded},
    /* automatic */ {.nmse = kUnbounded, .mean_kl = 1.5e-4, .perplexity = kUnbounded},
    /* fast */ {.nmse = kUnbounded, .mean_kl = 1e-3, .perplexity = 3e-3},
};

// Returns the largest error that is small beside what a format has made of the numbers that were stored in it.
double error_beside(DType dtype) {
  switch (dtype) {
    case DType::F32:
      return info_of(Arithmetic::f32).error;
    case DType::F16:
    case DType::BF16:
      return info_of(Arithmetic::halves).error;
    case DType::Q8_0:
      return info_of(Arithmetic::bf16).error;
    default:
      return info_of(Arithmetic::bytes).error;
  }
}

bool is_stored(const Operand* input) {
  return input != nullptr && input->shape.rank() > 1 &&
         (input->kind == TensorKind::weight || input->kind == TensorKind::state);
}

// Returns the largest error that automatic numerics allow: that of the best format among weights and caches.
double automatic_error(const OpCall& call) {
  double most = info_of(Arithmetic::bytes).error;
  bool reads_stored = false;
  for (const Operand* const input : call.inputs) {
    if (!is_stored(input)) continue;
    reads_stored = true;
    most = std::min(most, error_beside(input->dtype));
  }
  return reads_stored ? most : info_of(Arithmetic::f32).error;
}

}  // namespace

const ArithmeticInfo& info_of(Arithmetic arithmetic) { return kArithmetics[static_cast<std::size_t>(arithmetic)]; }
std::span<const ArithmeticInfo> arithmetics() { return kArithmetics; }

std::string words_of(Arithmetic arithmetic) {
  return arithmetic == Arithmetic::f32 ? "" : fmt::format(" in {}", info_of(arithmetic).name);
}

Arithmetic least_exact(Arithmetic a, Arithmetic b) { return info_of(a).error < info_of(b).error ? b : a; }

std::string kind_of(const OpCall& call, Arithmetic arithmetic) {
  std::string kind(name_of(call.op));
  std::span<const Operand* const> inputs = call.inputs;
  while (!inputs.empty() && inputs.back() == nullptr) inputs = inputs.first(inputs.size() - 1);
  for (const Operand* input : inputs) {
    kind += ' ';
    kind += input == nullptr ? "-" : name_of(input->dtype);
  }
  kind += " -> ";
  kind += name_of(call.output->dtype);
  return kind + words_of(arithmetic);
}

Arithmetic arithmetic_of(std::string_view kind) {
  for (std::size_t index = 0; index < arithmetics().size(); ++index) {
    const auto arithmetic = static_cast<Arithmetic>(index);
    if (const std::string words = words_of(arithmetic); !words.empty() && kind.ends_with(words)) return arithmetic;
  }
  return Arithmetic::f32;
}

bool allows(const OpCall& call, Arithmetic arithmetic) {
  switch (call.numerics) {
    case Numerics::exact:
      return info_of(arithmetic).error <= info_of(Arithmetic::f32).error;
    case Numerics::automatic:
      return info_of(arithmetic).error <= automatic_error(call);
    case Numerics::fast:
      return true;
  }
  return false;
}

const NumericsBounds& bounds_of(Numerics numerics) { return kBounds[static_cast<std::size_t>(numerics)]; }

}  // namespace shunt
