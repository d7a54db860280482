// Files with one field damaged at a time, every field in every way that code often gets wrong. The result is a useful
// error or a model that runs, never a crash, and no more memory than the file warrants.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "gguf_fields.h"
#include "models/gguf/gguf_bytes.h"
#include "models/reference.h"
#include "models/summary.h"
#include "mutations.h"
#include "sanitized.h"

namespace shunt::models {
namespace {

constexpr const char* kModels = SHUNT_TEST_DATA "/../../fuzz/corpus/logits/";
// The limit on a session's reported memory; the files have a few KB.
constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20U;
constexpr std::size_t kMostMessage = 4096;

void expect_reason(const Error& error) {
  EXPECT_FALSE(error.message.empty());
  EXPECT_LT(error.message.size(), kMostMessage);
}

// Returns whether the bytes are a model that gives logits.
bool gives_logits(std::span<const std::byte> bytes, const Runtime& runtime) {
  const auto model = Model::from_memory(bytes);
  if (!model) return expect_reason(model.error()), false;
  const auto session = Session::create(**model, runtime, {.context = 16, .max_batch_tokens = 4});
  if (!session) return expect_reason(session.error()), false;
  const Token tokens[] = {1, 4};
  const Status done = (*session)->prefill(0, tokens);
  const Runner::Memory memory = (*session)->memory();
  EXPECT_LT(memory.copied_weights + memory.state + memory.programs, kMostBytes);
  if (!done) return expect_reason(done.error()), false;
  const std::span<const float> logits = (*session)->logits(0);
  EXPECT_EQ(logits.size(), (*model)->config().vocabulary);
  EXPECT_TRUE(std::ranges::all_of(logits, [](float logit) { return std::isfinite(logit); }));
  return true;
}

class SweptGguf : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    whole_ = bytes_of_file(kModels + std::string(GetParam()));
    runtime_ = Loaded::take(Runtime::create({.threads = 1, .devices = "cpu:simd", .calibrated = false}));
    ASSERT_TRUE(gives_logits(whole_, *runtime_));
  }

  std::vector<std::byte> whole_;
  std::unique_ptr<Runtime> runtime_;
};

TEST_P(SweptGguf, EachFieldOfTheHeaderIsRefusedOrRuns) {
  const std::vector<GgufField> fields = gguf_fields(whole_);
  ASSERT_GT(fields.size(), 100U);
  std::size_t refused = 0;
  std::size_t ran = 0;
  for (const GgufField& field : fields) {
    std::vector<std::uint64_t> numbers(std::begin(kTellingNumbers), std::end(kTellingNumbers));
    numbers.insert(numbers.end(), {number_at(whole_, field) + 1, number_at(whole_, field) - 1});
    // Narrow numbers have fewer extremes.
    for (std::uint64_t& number : numbers)
      if (field.bytes < sizeof number) number &= (std::uint64_t{1} << 8 * field.bytes) - 1;
    std::ranges::sort(numbers);
    const auto doubles = std::ranges::unique(numbers);
    numbers.erase(doubles.begin(), doubles.end());
    for (std::size_t at = 0; at < numbers.size(); ++at) {
      const std::uint64_t number = numbers[at];
      if (number == number_at(whole_, field)) continue;
      // Under sanitizers, every other number, not the same for neighbours.
      if (test::kSanitized && (at + static_cast<std::size_t>(&field - fields.data())) % 2 != 0) continue;
      std::vector<std::byte> bytes = whole_;
      put_number(bytes, field, number);
      SCOPED_TRACE(fmt::format("{} for the {} bytes at {}", number, field.bytes, field.at));
      (gives_logits(bytes, *runtime_) ? ran : refused) += 1;
      if (HasFailure()) return;
    }
  }
  // Both outcomes occurred.
  EXPECT_GT(refused, fields.size());
  EXPECT_GT(ran, fields.size() / 10);
}

TEST_P(SweptGguf, CutAtEachByteOfTheHeaderIsAnError) {
  const std::size_t end = GgufFile::from_memory(whole_).value()->data_offset();
  for (std::size_t size = 0; size < end; ++size) {
    const auto cut = Model::from_memory(std::span(whole_).first(size));
    ASSERT_FALSE(cut.has_value()) << "cut at byte " << size;
    expect_reason(cut.error());
  }
}

TEST_P(SweptGguf, EachByteOfTheHeaderIsRefusedOrListed) {
  const std::size_t end = GgufFile::from_memory(whole_).value()->data_offset();
  for (std::size_t at = 0; at < end; ++at)
    for (const std::byte byte : test::telling_bytes(at)) {
      std::vector<std::byte> bytes = whole_;
      bytes[at] = byte;
      const auto file = GgufFile::from_memory(bytes);
      SCOPED_TRACE(fmt::format("{:#04x} for byte {}", std::to_integer<unsigned>(byte), at));
      if (file) {
        EXPECT_EQ(summarize(**file).tensors.size(), (*file)->weights().size());
      } else {
        expect_reason(file.error());
      }
      if (HasFailure()) return;
    }
}

INSTANTIATE_TEST_SUITE_P(Files, SweptGguf,
                         testing::Values("llama", "llama3", "mixtral", "qwen2moe", "qwen3", "gemma2", "phi3", "granite",
                                         "smollm3", "gpt-oss"),
                         [](const auto& file) { return "File" + std::to_string(file.index); });

}  // namespace
}  // namespace shunt::models
