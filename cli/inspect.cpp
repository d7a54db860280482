// shunt inspect: what a model file holds.
#include "command.h"
#include "models/summary.h"

namespace shunt::cli {
namespace {

Json shape_of(const Shape& shape) {
  Json json = Json::array();
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) json.push_back(shape[axis]);
  return json;
}

Json to_json(const models::ModelSummary& summary) {
  Json json = {{"architecture", summary.architecture},
               {"name", summary.name},
               {"file_type", summary.file_type},
               {"parameters", summary.parameters},
               {"tensor_bytes", summary.tensor_bytes},
               {"file_bytes", summary.file_bytes},
               {"version", summary.version},
               {"alignment", summary.alignment},
               {"parts", summary.parts},
               {"metadata", Json::array()},
               {"tensors", Json::array()}};
  for (const models::MetadataLine& line : summary.metadata)
    json["metadata"].push_back(
        {{"key", line.key}, {"type", line.type}, {"value", line.value}, {"elements", line.elements}});
  for (const models::TensorLine& line : summary.tensors)
    json["tensors"].push_back(
        {{"name", line.name}, {"dtype", name_of(line.dtype)}, {"shape", shape_of(line.shape)}, {"bytes", line.bytes}});
  return json;
}

std::string to_text(const models::ModelSummary& summary) {
  std::string text = fmt::format("{} ({}, {}), {:.1f} M parameters, {} in {} part(s), GGUF v{}\n", summary.name,
                                 summary.architecture, summary.file_type, static_cast<double>(summary.parameters) / 1e6,
                                 in_units(summary.file_bytes), summary.parts, summary.version);
  text += "\nmetadata\n";
  for (const models::MetadataLine& line : summary.metadata)
    text += fmt::format("  {:<40} {:<16} {}{}\n", line.key, line.type, line.value,
                        line.is_array ? fmt::format(" ({} elements)", line.elements) : "");
  text += "\ntypes\n";
  for (const models::DTypeShare& share : summary.dtypes)
    text += fmt::format("  {:<8} {:>6} tensors {:>14} parameters {:>12}\n", name_of(share.dtype), share.tensors,
                        share.parameters, in_units(share.bytes));
  text += "\ntensors\n";
  for (const models::TensorLine& line : summary.tensors)
    text += fmt::format("  {:<40} {:<6} {:<20} {:>12}\n", line.name, name_of(line.dtype), to_string(line.shape),
                        in_units(line.bytes));
  return text;
}

}  // namespace

Action inspect(CLI::App& command);
Action inspect(CLI::App& command) {
  struct Options {
    std::string model;
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  add_model(command, options->model);
  add_json(command, options->json);
  return [options]() -> Status {
    SHUNT_TRY_ASSIGN(const auto file, models::GgufFile::open(options->model));
    const models::ModelSummary summary = models::summarize(*file);
    return options->json ? print_json(to_json(summary)) : print(to_text(summary));
  };
}

}  // namespace shunt::cli
