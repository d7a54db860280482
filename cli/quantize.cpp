// shunt quantize: converts the weights of a model to a smaller type.
#include "models/quantize/quantizer.h"

#include <fmt/format.h>

#include "base/stopwatch.h"
#include "base/system/thread_pool.h"
#include "command.h"
#include "files.h"
#include "interrupt.h"
#include "models/gguf/gguf.h"
#include "models/quantize/mixture.h"
#include "options.h"
#include "output.h"

namespace shunt::cli {
namespace {

struct QuantizeOptions {
  std::string in;
  std::string out;
  std::string type;
  std::uint32_t threads = 0;
  bool json = false;
};

Status execute(QuantizeOptions& options) {
  options.type = or_refuse(models::mixture_from_name(options.type)).name;
  const Stopwatch watch;
  ProgressLine line;
  std::size_t converted = 0;
  const auto on_tensor = [&](const models::QuantizeProgress& at) {
    converted += at.from != at.to ? 1 : 0;
    if (!at.note.empty()) {
      line.clear();
      note(fmt::format("{} {} becomes {}: {}", at.name, to_string(at.shape), name_of(at.to), at.note));
    }
    line.show(
        fmt::format("{} of {} tensors: {} {} to {}", at.index, at.count, at.name, name_of(at.from), name_of(at.to)));
  };
  const std::uint32_t threads = options.threads != 0 ? options.threads : usable_cores();
  const std::atomic<bool>& ending = catch_interrupts();
  const auto on_write = [&](std::uint64_t, std::uint64_t) { return !ending.load(); };
  SHUNT_TRY(models::quantize_file(options.in, options.out, options.type,
                                  {.threads = threads, .on_tensor = on_tensor, .on_write = on_write}));
  line.clear();
  const double seconds = watch.seconds();
  SHUNT_TRY_ASSIGN(const auto before, models::GgufFile::open(options.in));
  SHUNT_TRY_ASSIGN(const auto after, models::GgufFile::open(options.out));
  note(fmt::format("{}: {} of type {}, converted from {} in {:.1f} s", options.out, in_units(after->total_bytes()),
                   options.type, in_units(before->total_bytes()), seconds));
  if (converted == 0)
    note(fmt::format("No tensor was converted: every matrix already has the dtype that {} gives it.", options.type));
  if (!options.json) return {};
  return print_json({{"in", options.in},
                     {"out", options.out},
                     {"type", options.type},
                     {"converted_tensors", converted},
                     {"bytes_in", before->total_bytes()},
                     {"bytes_out", after->total_bytes()},
                     {"seconds", seconds}});
}

}  // namespace

Action quantize(CommandLine& line) {
  auto options = std::make_shared<QuantizeOptions>();
  add_model_file(line, "IN", options->in, "GGUF file, preferably with weights in F32, F16 or BF16").required();
  line.output("OUT", options->out, "GGUF file to write; an existing file is replaced").required();
  line.option("TYPE", options->type, with_types("Type of the weights:")).required();
  add_threads(line, options->threads);
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
