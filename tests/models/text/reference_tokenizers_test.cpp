// Tokenizers of every kind against ids from Hugging Face's and Google's libraries (tests/data/tokenizers, made by
// tools/references/train_tokenizers.py). tools/support.py tabulates what the tests record.
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "models/text/tokenizer.h"

namespace shunt::models {
namespace {

using Json = nlohmann::json;
using Tokens = std::vector<Token>;
constexpr EncodeOptions kParsed{.add_bos = false, .add_eos = false, .parse_special = true};

Json read(const std::string& name) {
  std::ifstream stream(SHUNT_TEST_DATA "/tokenizers/" + name + ".json");
  const std::string text((std::istreambuf_iterator<char>(stream)), std::istreambuf_iterator<char>());
  Json json = Json::parse(text, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << name;
  return json;
}

std::vector<std::uint8_t> bytes_of(const std::string& hex) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t at = 0; at + 1 < hex.size(); at += 2)
    bytes.push_back(static_cast<std::uint8_t>(std::stoul(hex.substr(at, 2), nullptr, 16)));
  return bytes;
}

// The metadata that a GGUF file would have.
Metadata metadata_of(const Json& json) {
  Metadata metadata;
  metadata.set("tokenizer.ggml.model", json["model"].get<std::string>());
  metadata.set("tokenizer.ggml.tokens", json["tokens"].get<std::vector<std::string>>());
  metadata.set("tokenizer.ggml.token_type", json["types"].get<std::vector<std::int32_t>>());
  if (json.contains("pre")) metadata.set("tokenizer.ggml.pre", json["pre"].get<std::string>());
  if (json.contains("merges")) metadata.set("tokenizer.ggml.merges", json["merges"].get<std::vector<std::string>>());
  if (json.contains("scores")) metadata.set("tokenizer.ggml.scores", json["scores"].get<std::vector<float>>());
  if (json.contains("charsmap"))
    metadata.set("tokenizer.ggml.precompiled_charsmap", bytes_of(json["charsmap"].get<std::string>()));
  if (json.contains("remove_extra_whitespaces"))
    metadata.set("tokenizer.ggml.remove_extra_whitespaces", json["remove_extra_whitespaces"].get<bool>());
  return metadata;
}

std::vector<std::string> strings_for(const Json& json) {
  const Json all = read("strings");
  auto strings = all["strings"].get<std::vector<std::string>>();
  if (json["model"] == "gpt2")
    for (const auto& special : all["special"].get<std::vector<std::string>>()) strings.push_back(special);
  EXPECT_EQ(strings.size(), json["ids"].size());
  EXPECT_GE(strings.size(), 100U);
  return strings;
}

class ReferenceTokenizers : public testing::TestWithParam<const char*> {};

TEST_P(ReferenceTokenizers, HardStringsGiveTheReferenceIds) {
  const Json json = read(GetParam());
  const auto tokenizer = Tokenizer::create(metadata_of(json));
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  const std::vector<std::string> strings = strings_for(json);
  for (std::size_t at = 0; at < strings.size(); ++at)
    EXPECT_EQ(tokenizer->encode(strings[at], kParsed).value_or(Tokens{-1}), json["ids"][at].get<Tokens>())
        << '"' << strings[at] << '"';
  RecordProperty("tokenizer", GetParam());
  RecordProperty("model", json["model"].get<std::string>());
  RecordProperty("strings", std::to_string(strings.size()));
  RecordProperty("reference",
                 json.contains("scores") ? "Hugging Face tokenizers, SentencePiece" : "Hugging Face tokenizers");
}

TEST_P(ReferenceTokenizers, TextComesBack) {
  const Json json = read(GetParam());
  const auto tokenizer = Tokenizer::create(metadata_of(json));
  ASSERT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  const bool changes = json.contains("charsmap") && !json["charsmap"].get<std::string>().empty();
  for (const std::string& text : strings_for(json)) {
    const Tokens tokens = tokenizer->encode(text, kParsed).value_or(Tokens{-1});
    const std::string back = tokenizer->decode(tokens, {.control = true}).value_or("?");
    if (!changes) {
      EXPECT_EQ(back, text);
    } else if (const auto unknown = std::ranges::find(tokens, 0); unknown == tokens.end()) {
      EXPECT_EQ(tokenizer->encode(back).value_or(Tokens{-1}), tokens) << '"' << text << '"';  // already normalised
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, ReferenceTokenizers,
                         testing::Values("default", "gpt-2", "llama-bpe", "qwen2", "tekken", "smollm",
                                         "deepseek-r1-qwen", "gpt-4o", "llama", "unigram", "unigram-bytes"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace(name, '-', '_');
                           return name;
                         });

// Returns how many strings give other tokens if the vocabulary `name` is split as `other` is.
std::size_t differing(const std::string& name, const std::string& other) {
  const Json json = read(name);
  Metadata metadata = metadata_of(json);
  metadata.set("tokenizer.ggml.pre", other);
  const auto tokenizer = Tokenizer::create(metadata);
  EXPECT_TRUE(tokenizer.has_value()) << tokenizer.error().message;
  const std::vector<std::string> strings = strings_for(json);
  std::size_t count = 0;
  for (std::size_t at = 0; at < strings.size(); ++at)
    if (tokenizer->encode(strings[at], kParsed).value_or(Tokens{-1}) != json["ids"][at].get<Tokens>()) ++count;
  return count;
}

// The strings would reveal a rule or whole-words flag that is not applied: of any two families, at least one gives
// other tokens if split as the other.
TEST(ReferenceTokenizers, TheStringsTellFamiliesApart) {
  const std::vector<std::string> names = {"default", "gpt-2", "llama-bpe", "qwen2", "tekken", "smollm", "gpt-4o"};
  for (std::size_t first = 0; first < names.size(); ++first)
    for (std::size_t second = 0; second < first; ++second)
      EXPECT_GT(differing(names[first], names[second]) + differing(names[second], names[first]), 0U)
          << names[first] << " and " << names[second];
  EXPECT_GT(differing("llama-bpe", "dbrx"), 0U);  // the same rule without whole words
}

}  // namespace
}  // namespace shunt::models
