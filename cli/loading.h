// Models and texts as commands take them in. One thread.
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "models/model.h"
#include "onnx/import.h"

namespace shunt::cli {

// Loads a model and reads a large file into memory, with a progress line. Errors: those of Model::load, or that it
// was interrupted.
[[nodiscard]] Result<std::unique_ptr<models::Model>> load_model(const std::string& path);

// Of a shape and type of make_model(), with a progress line; its file is in `folder` only until it is mapped. Errors:
// those of make_model() and Model::load().
[[nodiscard]] Result<std::unique_ptr<models::Model>> random_model(std::string_view shape, std::string_view type,
                                                                  const std::filesystem::path& folder);

// Of an ONNX file at `path`, for inputs of these shapes. Errors: those of import_model().
[[nodiscard]] Result<onnx::Imported> import_graph(const onnx::Model& model, const std::string& path,
                                                  const std::map<std::string, Shape>& shapes);

// Text as it is: special tokens in it are parsed, and BOS begins it where the model wants that, once.
[[nodiscard]] Result<std::vector<Token>> encode_raw(const models::Tokenizer& tokenizer, std::string_view text);

}  // namespace shunt::cli
