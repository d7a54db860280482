// shunt run-graph: runs an ONNX model once.
#include <fmt/format.h>

#include <cstring>
#include <filesystem>
#include <map>

#include "base/nearest.h"
#include "base/system/mapped_file.h"
#include "command.h"
#include "files.h"
#include "loading.h"
#include "npy.h"
#include "ops/quantize/blocks.h"
#include "options.h"
#include "origin.h"
#include "output.h"
#include "shunt/computation.h"

namespace shunt::cli {
namespace {

constexpr std::uint64_t kShownElements = 8;

struct RunGraphOptions {
  std::string model;
  std::vector<std::string> inputs;   // [NAME=]FILE
  std::vector<std::string> outputs;  // [NAME=]FILE
  ComputationOptions computation;
  RuntimeOptions runtime;
  std::string trace;
  bool explain = false;
  bool json = false;
};

// The file names in "x=a.npy" and "a.npy".
std::vector<std::string> files_in(const std::vector<std::string>& texts) {
  std::vector<std::string> files;
  for (const std::string& text : texts) files.push_back(text.substr(text.find('=') + 1));
  return files;
}

std::vector<std::string> external_files(const std::string& path, const onnx::Model& model) {
  std::vector<std::string> files;
  for (const onnx::TensorData& data : model.initializers)
    if (data.is_external) files.push_back((std::filesystem::path(path).parent_path() / data.file).string());
  return files;
}

// "x=a.npy" -> x, a.npy; "a.npy" -> the only known name, a.npy.
std::pair<std::string, std::string> name_and_file(const std::string& text, std::span<const std::string> known,
                                                  std::string_view what) {
  const std::size_t place = text.find('=');
  if (place != std::string::npos) return {text.substr(0, place), text.substr(place + 1)};
  if (known.size() != 1)
    refuse(fmt::format("\"{}\": the model has {} {}s ({}); name one of them: NAME=FILE", text, known.size(), what,
                       fmt::join(known, ", ")));
  return {known.front(), text};
}

void check_name(const std::string& name, std::span<const std::string> known, std::string_view what) {
  if (std::ranges::find(known, name) == known.end())
    refuse(fmt::format("the model has no {} {}{}; choose from: {}", what, in_quotes(name), did_you_mean(name, known),
                       fmt::join(known, ", ")));
}

std::vector<std::string> input_names(const onnx::Model& model) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& input : model.inputs) {
    const bool is_known =
        std::ranges::find(model.initializers, input.name, &onnx::TensorData::name) != model.initializers.end();
    if (!is_known) names.emplace_back(input.name);
  }
  return names;
}

std::vector<std::string> output_names(const onnx::Model& model) {
  std::vector<std::string> names;
  for (const onnx::ValueInfo& output : model.outputs) names.emplace_back(output.name);
  return names;
}

double element(const Array& array, std::uint64_t index) {
  if (array.dtype == DType::I32) {
    std::int32_t number = 0;
    std::memcpy(&number, array.bytes.data() + index * sizeof number, sizeof number);
    return number;
  }
  if (array.dtype == DType::F32) {
    float number = 0;
    std::memcpy(&number, array.bytes.data() + index * sizeof number, sizeof number);
    return static_cast<double>(number);
  }
  std::uint16_t bits = 0;
  std::memcpy(&bits, array.bytes.data() + index * sizeof bits, sizeof bits);
  return static_cast<double>(array.dtype == DType::F16 ? f16_to_f32(bits) : bf16_to_f32(bits));
}

std::string first_elements(const Array& array) {
  std::string text;
  const std::uint64_t count = array.shape.elements();
  for (std::uint64_t i = 0; i < std::min(count, kShownElements); ++i) text += fmt::format(" {:.6g}", element(array, i));
  return text + (count > kShownElements ? " ..." : "");
}

Json in_json(const onnx::Port& port, const Array& array) {
  Json elements = Json::array();
  for (std::uint64_t i = 0; i < array.shape.elements(); ++i) elements.push_back(element(array, i));
  Json shape = Json::array();
  for (std::uint32_t axis = 0; axis < array.shape.rank(); ++axis) shape.push_back(array.shape[axis]);
  return {{"name", port.name}, {"type", onnx::name_of(port.type)}, {"shape", shape}, {"elements", elements}};
}

Result<std::map<std::string, Array>> read_inputs(const RunGraphOptions& options, const onnx::Model& model) {
  std::map<std::string, Array> arrays;
  const std::vector<std::string> names = input_names(model);
  for (const std::string& text : options.inputs) {
    const auto [name, file] = name_and_file(text, names, "input");
    check_name(name, names, "input");
    SHUNT_TRY_ASSIGN(Array array, read_npy(file));
    arrays.insert_or_assign(name, std::move(array));
  }
  for (const std::string& name : names)
    if (!arrays.contains(name)) refuse(fmt::format("input \"{}\" is missing; add --input {}=FILE.npy", name, name));
  return arrays;
}

Result<std::vector<Array>> compute(const onnx::Imported& imported, Computation& computation,
                                   const std::map<std::string, Array>& inputs) {
  for (const onnx::Port& port : imported.inputs) {
    const Array& array = inputs.at(port.name);
    if (array.dtype != port.dtype)
      return fail(Code::invalid, fmt::format("input \"{}\" is {} in the model, but its file has {}; convert the array",
                                             port.name, onnx::name_of(port.type), name_of(array.dtype)));
    SHUNT_TRY(computation.write(port.name, array.bytes));
  }
  SHUNT_TRY(computation.run());
  std::vector<Array> results;
  for (std::size_t i = 0; i < imported.outputs.size(); ++i) {
    const TensorInfo& info = computation.output(i);
    Array array{.dtype = info.operand.dtype, .shape = imported.outputs[i].shape, .bytes = {}};
    array.bytes.resize(info.operand.span_bytes());
    SHUNT_TRY(computation.read(i, 0, array.bytes));
    results.push_back(std::move(array));
  }
  return results;
}

Status write_outputs(const RunGraphOptions& options, const onnx::Imported& imported, const std::vector<Array>& results,
                     std::span<const std::string> names) {
  for (const std::string& text : options.outputs) {
    const auto [name, file] = name_and_file(text, names, "output");
    check_name(name, names, "output");
    const auto place = std::ranges::find(imported.outputs, name, &onnx::Port::name);
    SHUNT_TRY(write_npy(file, results[static_cast<std::size_t>(place - imported.outputs.begin())], place->type));
  }
  return {};
}

Status show(const RunGraphOptions& options, const onnx::Imported& imported, const std::vector<Array>& results) {
  Json json = Json::array();
  Rows rows = {{"output", "type", "shape", "elements"}};
  for (std::size_t i = 0; i < results.size(); ++i) {
    const onnx::Port& port = imported.outputs[i];
    if (options.json) json.push_back(in_json(port, results[i]));
    rows.push_back({port.name, onnx::name_of(port.type), to_string(port.shape), first_elements(results[i])});
  }
  return options.json ? print_json({{"outputs", json}}) : print(in_columns(rows));
}

Status execute(RunGraphOptions& options, Files& files) {
  SHUNT_TRY(prepare_trace(options.trace, options.runtime, options.computation.profile));
  SHUNT_TRY_ASSIGN(const auto file, MappedFile::open(options.model));
  const auto model = onnx::parse_model(file->bytes());
  if (!model) return fail_at(options.model, model.error());
  files.add_input("the model's external data", [&] { return external_files(options.model, *model); });
  files.check();
  SHUNT_TRY_ASSIGN(const auto inputs, read_inputs(options, *model));
  std::map<std::string, Shape> shapes;
  for (const auto& [name, array] : inputs) shapes.emplace(name, array.shape);
  SHUNT_TRY_ASSIGN(onnx::Imported imported, import_graph(*model, options.model, shapes));
  SHUNT_TRY_ASSIGN(const auto runtime, open_runtime(options.runtime));
  SHUNT_TRY_ASSIGN(const auto computation, Computation::create(std::move(imported.graph), *runtime,
                                                               imported.weights.get(), options.computation));
  if (options.explain) say(computation->explain());
  SHUNT_TRY_ASSIGN(const std::vector<Array> results, compute(imported, *computation, inputs));
  SHUNT_TRY(write_trace(*runtime, options.trace,
                        origin_of("run-graph", options.model, shapes, options.computation, *runtime, options.runtime),
                        std::nullopt));
  SHUNT_TRY(write_outputs(options, imported, results, output_names(*model)));
  return show(options, imported, results);
}

}  // namespace

Action run_graph(CommandLine& line) {
  auto options = std::make_shared<RunGraphOptions>();
  line.input("MODEL", options->model, "ONNX file").required();
  line.option("--input", options->inputs,
              "Read an input from a NumPy array; NAME= may be left out if there is only one")
      .value_name("NAME=FILE");
  line.option("--output", options->outputs, "Write an output as a NumPy array").value_name("NAME=FILE");
  Files& files = line.files;
  files.add_input("--input", [options] { return files_in(options->inputs); });
  files.add_output("--output", [options] { return files_in(options->outputs); });
  line.flag("--explain", options->explain, "Show where each op runs, and why");
  add_strategy(line, options->computation, options->runtime);
  add_runtime(line, options->runtime);
  add_trace(line, options->trace);
  add_json(line, options->json);
  return [options, &files] { return execute(*options, files); };
}

}  // namespace shunt::cli
