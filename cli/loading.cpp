#include "loading.h"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

#include "interrupt.h"
#include "models/random/random_model.h"
#include "output.h"

namespace shunt::cli {
Result<std::unique_ptr<models::Model>> random_model(std::string_view shape, std::string_view type,
                                                    const std::filesystem::path& folder) {
  const std::string path = (folder / fmt::format("shunt-{}-{}.gguf", shape, ::getpid())).string();
  ProgressLine line;
  const std::atomic<bool>& ending = catch_interrupts();
  const Status made = models::make_model(shape, type, path, 1, [&](std::uint64_t done, std::uint64_t total) {
    line.show_share("making a model", done, total);
    return !ending.load();
  });
  auto model = made ? models::Model::load(path) : Result<std::unique_ptr<models::Model>>(std::unexpected(made.error()));
  std::error_code failed;
  std::filesystem::remove(path, failed);
  return model;
}

Result<onnx::Imported> import_graph(const onnx::Model& model, const std::string& path,
                                    const std::map<std::string, Shape>& shapes) {
  auto imported = onnx::import_model(model, shapes, std::filesystem::path(path).parent_path().string());
  if (!imported) return fail_at(path, std::move(imported).error());
  return imported;
}

Result<std::vector<Token>> encode_raw(const models::Tokenizer& tokenizer, std::string_view text) {
  return tokenizer.encode(text, {.add_bos = tokenizer.adds_bos(), .parse_special = true});
}

}  // namespace shunt::cli
