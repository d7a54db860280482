// shunt quantize: a model file with weights of another type.
#include "models/quantizer.h"

#include <filesystem>
#include <thread>

#include "command.h"

namespace shunt::cli {

Action quantize(CLI::App& command);
Action quantize(CLI::App& command) {
  struct Options {
    std::string in;
    std::string out;
    std::string type;
    std::uint32_t threads = std::max(std::thread::hardware_concurrency(), 1U);
    bool json = false;
  };
  auto options = std::make_shared<Options>();
  command.add_option("in", options->in, "GGUF model file to read")->required();
  command.add_option("out", options->out, "GGUF model file to write")->required();
  command.add_option("type", options->type, "F32 F16 BF16 Q8_0 Q4_0 Q5_K Q6_K Q4_K_S Q4_K_M")->required();
  command.add_option("--threads", options->threads, "Threads")->check(CLI::Range(1U, 1024U))->capture_default_str();
  add_json(command, options->json);
  return [options]() -> Status {
    ProgressLine line;
    Json notes = Json::array();
    SHUNT_TRY(
        models::quantize_file(options->in, options->out, options->type,
                              {.threads = options->threads, .on_tensor = [&](const models::QuantizeProgress& progress) {
                                 line.show(fmt::format("[{}/{}] {} {} -> {}", progress.index + 1, progress.count,
                                                       progress.name, name_of(progress.from), name_of(progress.to)));
                                 if (progress.note.empty()) return;
                                 line.clear();
                                 say(fmt::format("{}: {}", progress.name, progress.note));
                                 notes.push_back({{"tensor", progress.name}, {"note", progress.note}});
                               }}));
    line.clear();
    std::error_code error;
    const auto in_bytes = std::filesystem::file_size(options->in, error);
    const auto out_bytes = std::filesystem::file_size(options->out, error);
    if (options->json)
      return print_json(Json{{"in", options->in},
                             {"in_bytes", in_bytes},
                             {"out", options->out},
                             {"out_bytes", out_bytes},
                             {"type", options->type},
                             {"notes", notes}});
    say(fmt::format("{}: {} -> {}: {}", options->in, in_units(in_bytes), options->out, in_units(out_bytes)));
    return {};
  };
}

}  // namespace shunt::cli
