// shunt make-model: random weights of a known shape.
#include <filesystem>

#include "command.h"
#include "models/random_model.h"

namespace shunt::cli {

Action make_model(CLI::App& command);
Action make_model(CLI::App& command) {
  struct Options {
    std::string shape;
    std::string type;
    std::string out;
    std::uint64_t seed = 1;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  std::string shapes;
  for (const models::ModelShape& shape : models::model_shapes())
    shapes += (shapes.empty() ? "" : " ") + std::string(shape.name);
  command.add_option("shape", options->shape, shapes)->required();
  command.add_option("type", options->type, "As for quantize")->required();
  command.add_option("out", options->out, "GGUF model file to write")->required();
  command.add_option("--seed", options->seed, "The same seed gives the same file")->capture_default_str();
  add_json(command, options->json);
  return [options]() -> Status {
    SHUNT_TRY(models::make_model(options->shape, options->type, options->out, options->seed));
    std::error_code error;
    const auto bytes = std::filesystem::file_size(options->out, error);
    if (options->json) return print_json(Json{{"out", options->out}, {"bytes", bytes}});
    say(fmt::format("{}: {}", options->out, in_units(bytes)));
    return {};
  };
}

}  // namespace shunt::cli
