// shunt inspect: shows what a model file contains.
#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <variant>

#include "command.h"
#include "models/summary.h"
#include "options.h"
#include "output.h"

namespace shunt::cli {
namespace {

using models::ModelSummary;

Json to_json(const Shape& shape) {
  Json extents = Json::array();
  for (std::size_t axis = 0; axis < shape.rank(); ++axis) extents.push_back(shape[axis]);
  return extents;
}

Json to_json(const models::MetadataValue& value) {
  return std::visit(
      []<class T>(const T& held) -> Json {
        if constexpr (std::is_same_v<T, std::monostate>)
          return nullptr;
        else
          return held;
      },
      value);
}

Json to_json(const ModelSummary& summary) {
  Json json = {{"architecture", summary.architecture},
               {"name", summary.name},
               {"file_type", summary.file_type},
               {"parameters", summary.parameters},
               {"tensor_bytes", summary.tensor_bytes},
               {"file_bytes", summary.file_bytes},
               {"version", summary.version},
               {"alignment", summary.alignment},
               {"parts", summary.parts},
               {"dtypes", Json::array()},
               {"metadata", Json::array()},
               {"tensors", Json::array()}};
  for (const models::DTypeShare& share : summary.dtypes)
    json["dtypes"].push_back({{"dtype", share.dtype},
                              {"computed", !share.is_foreign},
                              {"tensors", share.tensors},
                              {"parameters", share.parameters},
                              {"bytes", share.bytes}});
  for (const models::MetadataLine& line : summary.metadata)
    json["metadata"].push_back(
        {{"key", line.key}, {"type", line.type}, {"elements", line.elements}, {"value", to_json(*line.value)}});
  for (const models::TensorLine& tensor : summary.tensors)
    json["tensors"].push_back(
        {{"name", tensor.name}, {"dtype", tensor.dtype}, {"shape", to_json(tensor.shape)}, {"bytes", tensor.bytes}});
  return json;
}

// The length of the longest name, up to a limit.
template <class Lines, class Name>
std::size_t width_of(const Lines& lines, Name name) {
  std::size_t width = 0;
  for (const auto& line : lines) width = std::max(width, (line.*name).size());
  return std::min(width, kMostColumnBytes);
}

// The value on one line.
std::string shown(const std::string& value) {
  std::string text;
  for (const char byte : value) text += byte == '\n' ? "\\n" : std::string(1, byte);
  return text;
}

std::string in_count(std::uint64_t count) {
  const auto number = static_cast<double>(count);
  if (number >= 1e9) return fmt::format("{:.2f} G", number / 1e9);
  return number >= 1e6 ? fmt::format("{:.2f} M", number / 1e6) : std::to_string(count);
}

std::string to_text(const ModelSummary& summary, bool tensors) {
  std::string text = fmt::format(
      "{}{}, {} parameters, {}{}\n", summary.architecture.empty() ? "no architecture" : summary.architecture,
      summary.name.empty() ? "" : fmt::format(" \"{}\"", summary.name), in_count(summary.parameters),
      in_units(summary.file_bytes), summary.file_type.empty() ? "" : ", " + summary.file_type);
  text += fmt::format("GGUF version {}, {} part{}, {} tensors aligned to {} bytes\n\n", summary.version, summary.parts,
                      summary.parts == 1 ? "" : "s", summary.tensors.size(), summary.alignment);
  for (const models::DTypeShare& share : summary.dtypes)
    text += fmt::format("{:<8} {:>4} tensors, {} parameters, {}{}\n", share.dtype, share.tensors,
                        in_count(share.parameters), in_units(share.bytes),
                        share.is_foreign ? "; Shunt does not compute with this type" : "");
  const std::size_t key_width = width_of(summary.metadata, &models::MetadataLine::key);
  text += '\n';
  for (const models::MetadataLine& line : summary.metadata)
    text += fmt::format("{:<{}}  {}{}\n", shortened(line.key), key_width, shown(models::abbreviated(*line.value)),
                        line.is_array ? fmt::format("  ({} elements)", line.elements) : "");
  if (!tensors) return text;
  const std::size_t name_width = width_of(summary.tensors, &models::TensorLine::name);
  text += '\n';
  for (const models::TensorLine& tensor : summary.tensors)
    text += fmt::format("{:<{}}  {:<6} {:<18} {}\n", shortened(tensor.name), name_width, tensor.dtype,
                        to_string(tensor.shape), in_units(tensor.bytes));
  return text;
}

}  // namespace

Action inspect(CommandLine& line) {
  struct InspectOptions {
    std::string model;
    bool tensors = false;
    bool json = false;
  };
  auto options = std::make_shared<InspectOptions>();
  add_model(line, options->model);
  line.flag("--tensors", options->tensors, "List the tensors too (JSON always has them)");
  add_json(line, options->json);
  return [options]() -> Status {
    SHUNT_TRY_ASSIGN(const auto file, models::GgufFile::open(options->model, models::ForeignTypes::list));
    const ModelSummary summary = models::summarize(*file);
    return options->json ? print_json(to_json(summary)) : print(to_text(summary, options->tensors));
  };
}

}  // namespace shunt::cli
