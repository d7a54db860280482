#include "models/step_bench.h"

#include <vector>

namespace shunt::models {
namespace {

Status ended_by_progress() { return fail(Code::interrupted, "interrupted"); }

}  // namespace

Result<double> StepBench::measure_us(std::uint32_t tokens) {
  if (!progress_(done_++, steps_)) return std::unexpected(ended_by_progress().error());
  SHUNT_TRY(go_to((session_.context() - tokens) / 2));
  const std::vector<Token> appended(tokens, 1);
  const std::uint64_t start_ns = device_.now_ns();
  SHUNT_TRY(session_.prefill(0, appended, {}, Session::Results::candidates));
  return static_cast<double>(device_.now_ns() - start_ns) / 1e3;
}

// Brings the context to exactly `tokens` tokens.
Status StepBench::go_to(std::uint32_t tokens) {
  const std::size_t present = session_.tokens(0).size();
  session_.truncate(0, tokens);
  if (present >= tokens) return {};
  const auto goes_on = [&](std::size_t) { return progress_(done_, steps_); };
  SHUNT_TRY(session_.prefill(0, std::vector<Token>(tokens - present, 1), goes_on));
  return session_.tokens(0).size() < tokens ? ended_by_progress() : Status();
}

}  // namespace shunt::models
