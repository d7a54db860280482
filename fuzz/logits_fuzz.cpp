// Any bytes as a GGUF file, the whole way to logits: an error that says something, or numbers for each token. Mutations
// are mostly of the header's fields (tests/gguf_fields.h), as most bytes of a file are weights, where any will do.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <span>
#include <vector>

#include "../tests/gguf_fields.h"
#include "models/session.h"
#include "models/text/utf8.h"
#include "require.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer gives it.
extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

namespace {

using namespace shunt;
using namespace shunt::models;

const Runtime& runtime() {
  static const std::unique_ptr<Runtime> kRuntime =
      *Runtime::create({.threads = 1, .devices = "cpu:simd", .calibrated = false});
  return *kRuntime;
}

void check_logits(const Session& session) {
  const std::span<const float> logits = session.logits(0);
  require(logits.size() == session.model().config().vocabulary);
  require(std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); }));
}

void run(const Model& model, Session& session) {
  const Tokenizer& tokenizer = model.tokenizer();
  const auto tokens = tokenizer.encode("a bc", {.add_bos = tokenizer.adds_bos(), .parse_special = true});
  if (!answered(tokens) || !answered(session.prefill(0, *tokens)) || tokens->empty()) return;
  check_logits(session);
  const std::span<const float> logits = session.logits(0);
  const Token next[] = {static_cast<Token>(std::ranges::max_element(logits) - logits.begin())};
  if (!answered(session.prefill(0, next))) return;
  check_logits(session);
  if (const auto text = tokenizer.decode(next, {}); answered(text)) static_cast<void>(is_utf8(*text));
}

}  // namespace

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  // Numbers, so that the copy begins at a multiple of 8.
  std::vector<std::uint64_t> words(size / sizeof(std::uint64_t) + 1);
  if (size != 0) std::memcpy(words.data(), data, size);
  const auto model = Model::from_memory(std::as_bytes(std::span(words)).first(size));
  if (!answered(model)) return 0;
  const auto session =
      Session::create(**model, runtime(), {.context = size % 2 == 0 ? 16U : 0U, .max_batch_tokens = 4});
  if (answered(session)) run(**model, **session);
  return 0;
}

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls.
extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned int seed) {
  std::minstd_rand random(seed);
  const std::span<std::byte> bytes = std::as_writable_bytes(std::span(data, size));
  const std::vector<GgufField> fields = gguf_fields(bytes);
  if (fields.empty() || random() % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  const std::uint32_t changes = 1 + random() % 3;
  for (std::uint32_t i = 0; i < changes; ++i) {
    const GgufField& field = fields[random() % fields.size()];
    const GgufField& other = fields[random() % fields.size()];
    std::byte* const place = &bytes[field.at];
    switch (random() % 4) {
      case 0:
        put_number(bytes, field, kTellingNumbers[random() % std::size(kTellingNumbers)]);
        break;
      case 1:
        put_number(bytes, field, number_at(bytes, field) + random() % 5 - 2);
        break;
      case 2:
        std::memmove(place, &bytes[other.at], std::min(field.bytes, other.bytes));
        break;
      default:
        static_cast<void>(LLVMFuzzerMutate(reinterpret_cast<std::uint8_t*>(place), field.bytes, field.bytes));
        break;
    }
  }
  return size;
}
