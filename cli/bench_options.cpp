#include "bench_options.h"

#include <fmt/format.h>

#include <algorithm>

#include "models/random/random_model.h"
#include "models/session.h"
#include "models/step_planner.h"
#include "options.h"

namespace shunt::cli {
namespace {

std::string check_shape(const std::string& name) {
  std::string known;
  for (const models::ModelShape& shape : models::model_shapes()) {
    if (shape.name == name) return {};
    known += fmt::format("{}{}", known.empty() ? "" : ", ", shape.name);
  }
  return fmt::format("no shape is named \"{}\"; choose from {}", name, known);
}

}  // namespace

void add_shape(CommandLine& line, BenchShape& shape) {
  line.option("--shape", shape.name, fmt::format("Model shape whose sizes to use (see make-model) [{}]", shape.name))
      .value_name("SHAPE")
      .check(check_shape);
  add_number(line, "--prompt", shape.prompt, fmt::format("Rows of a prompt, and tokens of context [{}]", shape.prompt),
             2U, 1U << 14U);
}

OpSizes sizes_of(const BenchShape& shape) {
  const auto known = models::model_shapes();
  const auto place = std::ranges::find(known, shape.name, &models::ModelShape::name);
  return {.embedding = place->embedding,
          .feed_forward = place->feed_forward,
          .heads = place->heads,
          .kv_heads = place->kv_heads,
          .head_dim = place->head_dim,
          .vocabulary = place->vocabulary,
          .page_tokens = models::kPageTokens,
          .prompt = shape.prompt,
          .context = shape.prompt};
}

void add_repetitions(CommandLine& line, std::uint32_t& repetitions) {
  add_number(line, "--repetitions", repetitions,
             fmt::format("Number of times to measure each, in turn [{}]", repetitions), 1U, 1000U);
}

}  // namespace shunt::cli
