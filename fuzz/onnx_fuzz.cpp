// Any bytes as an ONNX model: an error that says something, or a graph.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "onnx/import.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto model = shunt::onnx::parse_model(std::as_bytes(std::span(data, size)));
  if (!model) {
    if (model.error().message.empty()) std::abort();
    return 0;
  }
  const auto imported = shunt::onnx::import_model(*model, {}, "nowhere");
  if (imported ? imported->outputs.empty() : imported.error().message.empty()) std::abort();
  return 0;
}
