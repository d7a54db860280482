#include "bench_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "models/random_model.h"

namespace shunt::cli {

void add_shape(CLI::App& app, BenchShape& shape) {
  std::vector<std::string> names;
  for (const models::ModelShape& known : models::model_shapes()) names.emplace_back(known.name);
  app.add_option("--shape", shape.name,
                 fmt::format("Model whose sizes the ops have, as in make-model (default: {})", shape.name))
      ->type_name("SHAPE")
      ->check(CLI::IsMember(names));
  app.add_option("--prompt", shape.prompt,
                 fmt::format("Rows where an op works on a prompt, and tokens of context (default: {})", shape.prompt))
      ->type_name("N")
      ->check(CLI::Range(2U, 1U << 14U));
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
          .prompt = shape.prompt,
          .context = shape.prompt};
}

}  // namespace shunt::cli
