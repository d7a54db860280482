// Converts a model file to another file type: matrices get the dtypes of its mixture, all else stays the same.
//
// Reads through the mapping and writes as it goes, so it needs only a few megabytes of memory per thread. The target
// appears only when it is complete. Call from one thread, which also runs the callbacks.
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
  std::size_t index = 0;  // of the next tensor
  std::size_t count = 0;
  std::string_view name;
  Shape shape;
  DType from = DType::F32;
  DType to = DType::F32;
  std::string_view note;  // why `to` differs from the file type, or empty
};

struct QuantizeOptions {
  std::uint32_t threads = 1;
  std::function<void(const QuantizeProgress&)> on_tensor{};
  WriteProgress on_write{};
};

// `type` is a name from mixture.h. `in` and `out` may be the same file. Errors: io; invalid for an unknown type, a
// tensor with an element that is not finite, or one already quantized in another dtype; interrupted if on_write
// returned false.
[[nodiscard]] Status quantize_file(const std::string& in, const std::string& out, std::string_view type,
                                   const QuantizeOptions& options = {});

}  // namespace shunt::models
