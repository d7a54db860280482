// The contents of a model file as `shunt inspect` shows them: plain data for text and JSON. Values; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "models/gguf/gguf.h"
#include "shunt/tensor.h"

namespace shunt::models {

struct TensorLine {
  std::string name;
  std::string dtype;  // its name, even if Shunt does not know the type
  Shape shape;
  std::uint64_t bytes = 0;
};

struct MetadataLine {
  std::string key;
  std::string type;                      // "u32", "array of string", ...
  const MetadataValue* value = nullptr;  // points into the model, which must outlive it
  bool is_array = false;
  std::uint64_t elements = 1;  // of an array
};

struct DTypeShare {
  std::string dtype;
  bool is_foreign = false;  // Shunt cannot compute with it
  std::size_t tensors = 0;
  std::uint64_t parameters = 0;
  std::uint64_t bytes = 0;
};

struct ModelSummary {
  std::string architecture;  // "" if the file does not say
  std::string name;
  std::string file_type;  // "Q4_K_M", "type 99" for an unknown number, or ""
  std::uint64_t parameters = 0;
  std::uint64_t tensor_bytes = 0;
  std::uint64_t file_bytes = 0;
  std::uint32_t version = 0;
  std::uint32_t alignment = 0;
  std::size_t parts = 0;
  std::vector<DTypeShare> dtypes;  // those in use: ours in the order of the table, then foreign ones
  std::vector<MetadataLine> metadata;
  std::vector<TensorLine> tensors;
};

[[nodiscard]] ModelSummary summarize(const GgufFile& model);

// Formats `value` for display: strings as they are, arrays as "[a, b, c, ...]". Shows at most `most` elements of an
// array and 32 * `most` bytes of a string.
[[nodiscard]] std::string abbreviated(const MetadataValue& value, std::size_t most = 8);

}  // namespace shunt::models
