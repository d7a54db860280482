// Converts a model file to another file type: matrices to the dtypes of the type's mixture, all else as it is.
//
// Reads through the mapping and writes as it goes, so memory stays at a few megabytes per thread. The target
// appears only when everything is written. Call from one thread; its functions are called on it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "models/gguf/gguf_writer.h"
#include "shunt/status.h"
#include "shunt/tensor.h"

namespace shunt::models {

struct QuantizeProgress {
  std::size_t index = 0;  // of the tensor that comes next
  std::size_t count = 0;
  std::string_view name;
  Shape shape;
  DType from = DType::F32;
  DType to = DType::F32;
  std::string_view note;  // why `to` is not what the type says, or empty
};

struct QuantizeOptions {
  std::uint32_t threads = 1;
  std::function<void(const QuantizeProgress&)> on_tensor{};
  WriteProgress on_write{};
};

// `type` is a name of mixture.h. `in` and `out` may be the same file. Errors: io; invalid for an unknown type,
// a tensor with an element that is not finite or that is quantized in another dtype already, and where
// on_write ended it.
[[nodiscard]] Status quantize_file(const std::string& in, const std::string& out, std::string_view type,
                                   const QuantizeOptions& options = {});

}  // namespace shunt::models
