#include "models/random/random_model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "models/gguf/gguf.h"
#include "models/gguf/gguf_bytes.h"
#include "models/quantize/mixture.h"
#include "models/random/random_blocks.h"
#include "models/random/random_vocabulary.h"
#include "models/reference.h"
#include "ops/quantize/blocks.h"

namespace shunt::models {
namespace {

TEST(RandomBlocks, HaveTheWantedSizeAndNoLean) {
  for (std::size_t i = 0; i < dtypes().size(); ++i) {
    if (dtypes()[i].kind == DTypeKind::integer) continue;
    const DType dtype = static_cast<DType>(i);
    const std::size_t elements = 1U << 18;
    std::vector<std::byte> bytes(elements / dtypes()[i].block_elements * dtypes()[i].block_bytes);
    RandomBlocks blocks(dtype, 0.02F, 7);
    blocks.fill(std::span(bytes).first(bytes.size() / 2));
    blocks.fill(std::span(bytes).subspan(bytes.size() / 2));
    std::vector<float> values(elements);
    decode_row(dtype, bytes.data(), elements, values.data());
    double sum = 0;
    double squares = 0;
    double largest = 0;
    for (const float value : values) {
      sum += static_cast<double>(value);
      squares += static_cast<double>(value) * static_cast<double>(value);
      largest = std::max(largest, std::abs(static_cast<double>(value)));
    }
    const auto count = static_cast<double>(elements);
    EXPECT_NEAR(std::sqrt(squares / count), 0.02, 0.001) << dtypes()[i].name;
    EXPECT_LT(std::abs(sum / count), 0.003) << dtypes()[i].name;
    EXPECT_LT(largest, 0.2) << dtypes()[i].name;
  }
}

TEST(RandomModel, TheSmallestFitsIn64KiBAndIsRepeatable) {
  TestFolder folder;
  for (const char* name : {"a", "b"}) {
    const Status made = make_model("nano", "F16", folder.file(name), 5);
    ASSERT_TRUE(made.has_value()) << made.error().message;
  }
  ASSERT_TRUE(make_model("nano", "F16", folder.file("c"), 6).has_value());
  EXPECT_LT(read_bytes(folder.file("a")).size(), 65536U);
  EXPECT_EQ(read_bytes(folder.file("a")), read_bytes(folder.file("b")));
  EXPECT_NE(read_bytes(folder.file("a")), read_bytes(folder.file("c")));
}

TEST(RandomModel, HasTheKeysOfATrainedModel) {
  TestFolder folder;
  ASSERT_TRUE(make_model("nano", "Q8_0", folder.file("m")).has_value());
  auto made = GgufFile::open(folder.file("m"));
  auto trained = GgufFile::open(kTrainedModel);
  ASSERT_TRUE(made.has_value() && trained.has_value());
  for (const auto& [key, value] : (*trained)->metadata().all()) {
    const MetadataValue* other = (*made)->metadata().find(key);
    ASSERT_NE(other, nullptr) << key;
    EXPECT_EQ(type_name(*other), type_name(value)) << key;
  }
}

TEST(RandomModel, PiecesAreUniqueAtEverySize) {
  for (const std::uint32_t size : {kFixedTokens, 288U, 512U, 32000U}) {
    Metadata metadata;
    add_random_vocabulary(size, metadata);
    auto tokens = metadata.strings("tokenizer.ggml.tokens");
    ASSERT_TRUE(tokens.has_value());
    EXPECT_EQ((*tokens)->size(), size);
    EXPECT_EQ(std::set<std::string>((*tokens)->begin(), (*tokens)->end()).size(), size);
    EXPECT_EQ(metadata.f32s("tokenizer.ggml.scores").value_or(std::vector<float>{}).size(), size);
    EXPECT_EQ(metadata.i32s("tokenizer.ggml.token_type").value_or(std::vector<std::int32_t>{}).size(), size);
  }
}

TEST(RandomModel, RunsInEveryFileType) {
  TestFolder folder;
  for (const Mixture& mixture : mixtures()) {
    for (const char* shape : {"nano", "micro"}) {
      const std::string path = folder.file(std::string(shape) + std::string(mixture.name));
      const Status made = make_model(shape, mixture.name, path);
      ASSERT_TRUE(made.has_value()) << made.error().message;
      Loaded loaded(path, "cpu:simd,cpu:scalar", {.context = 64});
      const auto tokens = loaded.model->tokenizer().encode("hello", {});
      ASSERT_TRUE(tokens.has_value()) << tokens.error().message;
      const auto logits = last_logits(*loaded.session, *tokens, 1);
      ASSERT_EQ(logits.size(), loaded.model->config().vocabulary);
      double squares = 0;
      for (const float logit : logits) {
        ASSERT_TRUE(std::isfinite(logit)) << path;
        squares += static_cast<double>(logit) * static_cast<double>(logit);
      }
      EXPECT_NEAR(std::sqrt(squares / static_cast<double>(logits.size())), 1.0, 0.4) << path;
    }
  }
}

TEST(RandomModel, UnknownNamesAreErrors) {
  TestFolder folder;
  const Status shape = make_model("giant", "F16", folder.file("m"));
  ASSERT_FALSE(shape.has_value());
  EXPECT_EQ(shape.error().message, "unknown model shape \"giant\"; known: nano micro 168m 1b 3b 8b micro-moe moe");
  EXPECT_FALSE(make_model("nano", "Q1", folder.file("m")).has_value());
  EXPECT_EQ(folder.file_count(), 0U);
}

}  // namespace
}  // namespace shunt::models
