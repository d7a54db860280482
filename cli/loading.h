// Loads models and encodes texts for commands. One thread.
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

// Makes and loads a model of a shape and type of make_model(), with a progress line. Its file stays in `folder` only
// until it is mapped. Errors: those of make_model() and Model::load().
[[nodiscard]] Result<std::unique_ptr<models::Model>> random_model(std::string_view shape, std::string_view type,
                                                                  const std::filesystem::path& folder);

// Imports the graph of the ONNX file at `path` for inputs of these shapes. Errors: those of import_model().
[[nodiscard]] Result<onnx::Imported> import_graph(const onnx::Model& model, const std::string& path,
                                                  const std::map<std::string, Shape>& shapes);

// Encodes a text without a chat format. Parses special tokens, and begins with one BOS if the model wants it.
[[nodiscard]] Result<std::vector<Token>> encode_raw(const models::Tokenizer& tokenizer, std::string_view text);

}  // namespace shunt::cli
