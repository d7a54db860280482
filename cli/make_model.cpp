// shunt make-model: writes a model with random weights.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>
#include <ranges>

#include "base/nearest.h"
#include "command.h"
#include "files.h"
#include "interrupt.h"
#include "models/gguf/gguf.h"
#include "models/quantize/mixture.h"
#include "models/random/random_model.h"
#include "options.h"
#include "output.h"

namespace shunt::cli {
namespace {

struct MakeModelOptions {
  std::string shape;
  std::string type;
  std::string out;
  std::uint64_t seed = 1;
  bool json = false;
};

std::string shape_names() {
  std::vector<std::string_view> names;
  for (const models::ModelShape& shape : models::model_shapes()) names.push_back(shape.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

Status execute(MakeModelOptions& options) {
  if (std::ranges::find(models::model_shapes(), options.shape, &models::ModelShape::name) ==
      models::model_shapes().end())
    refuse(fmt::format(
        "no shape is named \"{}\"{}; choose from {}", options.shape,
        did_you_mean(options.shape, models::model_shapes() | std::views::transform(&models::ModelShape::name)),
        shape_names()));
  options.type = or_refuse(models::mixture_from_name(options.type)).name;
  const std::atomic<bool>& ending = catch_interrupts();
  ProgressLine line;
  SHUNT_TRY(models::make_model(options.shape, options.type, options.out, options.seed,
                               [&](std::uint64_t done, std::uint64_t total) {
                                 line.show_share(fmt::format("writing {}", options.out), done, total);
                                 return !ending.load();
                               }));
  line.clear();
  SHUNT_TRY_ASSIGN(const auto file, models::GgufFile::open(options.out));
  note(fmt::format("{}: {} of random weights", options.out, in_units(file->total_bytes())));
  if (!options.json) return {};
  return print_json({{"out", options.out},
                     {"shape", options.shape},
                     {"type", options.type},
                     {"seed", options.seed},
                     {"bytes", file->total_bytes()}});
}

}  // namespace

Action make_model(CommandLine& line) {
  auto options = std::make_shared<MakeModelOptions>();
  line.option("SHAPE", options->shape, "Shape of the model: " + shape_names()).required();
  line.option("TYPE", options->type, with_types("Type of the weights:")).required();
  line.output("OUT", options->out, "GGUF file to write; an existing file is replaced").required();
  add_number(line, "--seed", options->seed, "Seed of the weights [1]", std::uint64_t{0},
             std::numeric_limits<std::uint64_t>::max());
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
