// Any bytes as a GGUF file: an error, or a file whose every key and tensor can be read.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <span>
#include <vector>

#include "models/gguf/gguf.h"
#include "models/model.h"
#include "models/summary.h"

namespace {

using namespace shunt;
using namespace shunt::models;

void require(bool holds) {
  if (!holds) std::abort();
}

void walk(GgufFile& file, std::span<const std::byte> bytes) {
  const ModelSummary summary = summarize(file);
  require(summary.tensors.size() == file.weights().size());
  require(summary.tensor_bytes <= bytes.size());
  for (std::size_t i = 0; i < file.weights().size(); ++i) {
    const shunt::WeightInfo& info = file.weights()[i];
    require(file.find(info.name) == i);
    const std::span<const std::byte> mapped = file.mapped(i);
    require(mapped.size() == info.bytes && !mapped.empty());
    std::vector<std::byte> copy(mapped.size());
    require(file.read(i, 0, copy).has_value());
    require(std::memcmp(copy.data(), mapped.data(), copy.size()) == 0);
    require(!file.read(i, 1, copy).has_value());
    file.release(i, 0, info.bytes);
  }
  require(file.health().has_value());
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Numbers, so that the copy begins at a multiple of 8.
  std::vector<std::uint64_t> words(size / sizeof(std::uint64_t) + 1);
  if (size != 0) std::memcpy(words.data(), data, size);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(words)).first(size);
  auto file = GgufFile::from_memory(bytes);
  if (!file) {
    require(!file.error().message.empty());
    return 0;
  }
  walk(**file, bytes);
  const auto model = Model::from_memory(bytes);
  require(model.has_value() || !model.error().message.empty());
  return 0;
}
