#include "loading.h"

#include <fmt/format.h>
#include <unistd.h>

#include <system_error>

#include "devices/device.h"
#include "interrupt.h"
#include "models/random/random_model.h"
#include "output.h"

namespace shunt::cli {
namespace {

// Smaller files need no progress line.
constexpr std::uint64_t kLargeBytes = 128U << 20U;

// Returns whether the weights are likely to be copied: no device uses the file in place, or they fit in the memory of
// one that does not.
bool are_copied(std::uint64_t weight_bytes, const Runtime& runtime) {
  bool has_host_memory = false;
  for (std::size_t i = 0; i < runtime.devices().size(); ++i) {
    const bool is_host = runtime.devices()[i].memory_pool == kHostPool;
    if (!is_host && runtime.budgets()[i] >= weight_bytes) return true;
    has_host_memory |= is_host;
  }
  return !has_host_memory;
}

}  // namespace

Result<std::unique_ptr<models::Model>> load_model(const std::string& path, const Runtime& runtime) {
  SHUNT_TRY_ASSIGN(std::unique_ptr<models::Model> model, models::Model::load(path));
  if (model->weight_bytes() < kLargeBytes || are_copied(model->weight_bytes(), runtime)) return model;
  const std::atomic<bool>& ending = catch_interrupts();
  ProgressLine line;
  SHUNT_TRY(model->warm([&](std::uint64_t done, std::uint64_t total) {
    line.show_share(fmt::format("reading {}", path), done, total);
    return !ending.load();
  }));
  if (ending.load()) return fail(Code::interrupted, "interrupted while reading the model");
  return model;
}

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
