// Whole model files: versions, splits, files that change, and errors for unsupported files.
#include <unistd.h>

#include <algorithm>

#include "models/generate.h"
#include "models/gguf/gguf_bytes.h"
#include "models/gguf/gguf_writer.h"
#include "models/random/random_model.h"
#include "models/reference.h"

namespace shunt::models {
namespace {

class Load : public testing::Test {
 protected:
  Load() { EXPECT_TRUE(make_model("nano", "Q8_0", file("nano.gguf")).has_value()); }

  [[nodiscard]] std::string file(std::string_view name) const { return folder_.file(name); }

  // Writes the nano model with other metadata, with only some of its tensors, or with one more.
  void write(const std::string& path, const Metadata& metadata, std::size_t first = 0, std::size_t count = 1000,
             const std::string& more = "") {
    const auto nano = Loaded::take(GgufFile::open(file("nano.gguf")));
    std::vector<GgufTensor> tensors;
    std::vector<std::byte> bytes;
    for (std::size_t i = first; i < std::min(first + count, nano->weights().size()); ++i) {
      const WeightInfo& info = nano->weights()[i];
      tensors.push_back({.name = info.name, .dtype = info.dtype, .shape = info.shape});
      const auto data = nano->mapped(i);
      bytes.insert(bytes.end(), data.begin(), data.end());
    }
    if (!more.empty()) {
      tensors.push_back({.name = more, .dtype = DType::F32, .shape = {8}});
      bytes.resize(bytes.size() + 8 * sizeof(float));
    }
    auto writer = Loaded::take(GgufWriter::create(path, metadata, tensors));
    ASSERT_TRUE(writer->write(bytes).has_value());
    ASSERT_TRUE(writer->finish().has_value());
  }
  [[nodiscard]] Metadata metadata() const { return Loaded::take(GgufFile::open(file("nano.gguf")))->metadata(); }

  [[nodiscard]] static std::vector<float> logits(const std::string& path) {
    Loaded loaded(path, "cpu:scalar", {.context = 64});
    return last_logits(*loaded.session, {1, 70, 80, 90}, 2);
  }
  Error error_of(const Metadata& changed) {
    write(file("changed.gguf"), changed);
    const auto model = Model::load(file("changed.gguf"));
    EXPECT_FALSE(model.has_value());
    if (model) return {};
    expect_says(model.error().message, "changed.gguf");
    return model.error();
  }

  TestFolder folder_;
};

TEST_F(Load, Version2IsReadAsVersion3) {
  std::vector<std::byte> bytes = read_bytes(file("nano.gguf"));
  ASSERT_EQ(bytes[4], std::byte{3});
  bytes[4] = std::byte{2};
  write_bytes(file("v2.gguf"), bytes);
  EXPECT_EQ(Loaded::take(GgufFile::open(file("v2.gguf")))->version(), 2U);
  EXPECT_EQ(logits(file("v2.gguf")), logits(file("nano.gguf")));
  for (const int version : {0, 1, 4}) {
    bytes[4] = static_cast<std::byte>(version);
    write_bytes(file("other.gguf"), bytes);
    const auto model = Model::load(file("other.gguf"));
    ASSERT_FALSE(model.has_value());
    EXPECT_EQ(model.error().code, Code::unsupported);
    expect_says(model.error().message, "version " + std::to_string(version) + "; versions 2 and 3 can be read");
  }
}

TEST_F(Load, AnUnknownArchitectureNamesTheKnownOnes) {
  Metadata other = metadata();
  other.set("general.architecture", std::string("gpt2"));
  const Error error = error_of(other);
  EXPECT_EQ(error.code, Code::unsupported);
  std::string known;
#define SHUNT_ARCHITECTURE(function, name) known += (known.empty() ? "" : " ") + std::string(name);
#include "models/decoder/architectures.def"
  expect_says(error.message, "model architecture \"gpt2\" is not supported; supported: " + known);
}

TEST_F(Load, AnUnknownTokenizerNamesTheKnownOnes) {
  Metadata other = metadata();
  other.set("tokenizer.ggml.model", std::string("bert"));
  const Error error = error_of(other);
  EXPECT_EQ(error.code, Code::unsupported);
  expect_says(error.message, "\"bert\" is not supported; supported: \"llama\"");
}

TEST_F(Load, AnUnknownTensorTypeNamesEveryKnownOne) {
  std::vector<std::byte> bytes = read_bytes(file("nano.gguf"));
  constexpr std::string_view kName = "blk.1.ffn_up.weight";
  const auto* text = reinterpret_cast<const std::byte*>(kName.data());
  auto place = std::search(bytes.begin(), bytes.end(), text, text + kName.size());
  ASSERT_NE(place, bytes.end());
  // The name is followed by the number of dimensions, two dimensions and the type.
  place[static_cast<std::ptrdiff_t>(kName.size() + 4 + 16)] = std::byte{9};
  write_bytes(file("type.gguf"), bytes);
  const auto model = Model::load(file("type.gguf"));
  ASSERT_FALSE(model.has_value());
  EXPECT_EQ(model.error().code, Code::unsupported);
  expect_says(model.error().message, kName);
  expect_says(model.error().message, "type id 9; supported:");
  for (const DTypeInfo& info : dtypes())
    if (info.gguf_id >= 0) expect_says(model.error().message, info.name);
}

TEST_F(Load, KeysThatAreMissingAreNamed) {
  for (const char* key : {"general.architecture", "llama.block_count", "llama.embedding_length",
                          "llama.attention.layer_norm_rms_epsilon", "tokenizer.ggml.tokens"}) {
    Metadata less = metadata();
    less.erase(key);
    const Error error = error_of(less);
    EXPECT_EQ(error.code, Code::invalid) << key;
    expect_says(error.message, key);
  }
}

TEST_F(Load, AVocabularyThatIsNotTheEmbeddingsIsRefused) {
  Metadata shorter = metadata();
  auto tokens = **shorter.strings("tokenizer.ggml.tokens");
  auto scores = *shorter.f32s("tokenizer.ggml.scores");
  auto types = *shorter.i32s("tokenizer.ggml.token_type");
  ASSERT_EQ(tokens.size(), 288U);
  tokens.pop_back();
  scores.pop_back();
  types.pop_back();
  shorter.set("tokenizer.ggml.tokens", tokens);
  shorter.set("tokenizer.ggml.scores", scores);
  shorter.set("tokenizer.ggml.token_type", types);
  const Error error = error_of(shorter);
  EXPECT_EQ(error.code, Code::invalid);
  expect_says(error.message, "the tokenizer has 287 tokens, \"token_embd.weight\" has 288 rows");
}

TEST_F(Load, WhatWouldChangeTheResultUnseenIsRefused) {
  Metadata scaled = metadata();
  scaled.set("llama.rope.scaling.type", std::string("ntk"));
  EXPECT_EQ(error_of(scaled).code, Code::unsupported);
  Metadata experts = metadata();
  experts.set("llama.expert_count", std::uint32_t{8});
  EXPECT_EQ(error_of(experts).code, Code::invalid);
  expect_says(error_of(experts).message, "llama.expert_used_count");
  for (const char* key : {"llama.rope.scaling.factor", "llama.rope.scale_linear"}) {
    Metadata stretched = metadata();
    stretched.set(key, -4.0F);
    EXPECT_EQ(error_of(stretched).code, Code::invalid);
    stretched.set(key, 4.0F);
    write(file("stretched.gguf"), stretched);
    EXPECT_NE(logits(file("stretched.gguf")), logits(file("nano.gguf")));
    for (const float unscaled : {0.0F, 1.0F}) {
      stretched.set(key, unscaled);
      write(file("unscaled.gguf"), stretched);
      EXPECT_EQ(logits(file("unscaled.gguf")), logits(file("nano.gguf")));
    }
  }
  for (const char* name :
       {"rope_factors_short.weight", "blk.1.attn_q.bias", "blk.0.attn_q_norm.weight", "blk.2.attn_norm.weight"}) {
    write(file("more.gguf"), metadata(), 0, 1000, name);
    const auto model = Model::load(file("more.gguf"));
    ASSERT_FALSE(model.has_value()) << name;
    EXPECT_EQ(model.error().code, Code::unsupported);
    expect_says(model.error().message, name);
  }
}

TEST_F(Load, AFileThatShrinksUnderARunningSessionIsAnIoError) {
  const std::string path = file("shrinking.gguf");
  write_bytes(path, read_bytes(kTrainedModel));
  Loaded loaded(path, "cpu", {.context = 64});
  const std::vector<Token> tokens = {1, 300, 301};
  ASSERT_TRUE(loaded.session->prefill(0, tokens).has_value());
  ASSERT_EQ(::truncate(path.c_str(), 2000000), 0);
  const Status done = loaded.session->prefill(0, tokens);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::io);
  expect_says(done.error().message, path);
  // The session is unchanged and repeats the error.
  EXPECT_EQ(loaded.session->tokens(0).size(), 3U);
  EXPECT_EQ(loaded.session->prefill(0, tokens).error().code, Code::io);
  const auto generation = generate(*loaded.session, tokens, {.max_tokens = 3}, {});
  ASSERT_FALSE(generation.has_value());
  EXPECT_EQ(generation.error().code, Code::io);
  const Status warmed = loaded.model->warm([](std::uint64_t, std::uint64_t) { return true; });
  ASSERT_FALSE(warmed.has_value());
  EXPECT_EQ(warmed.error().code, Code::io);
}

TEST_F(Load, ProgressOfWarmingRisesToAllAndCanBeStopped) {
  // Progress is reported every 64 MiB, so the model must be larger.
  const std::string path = file("large.gguf");
  std::vector<std::byte> bytes;
  {
    const auto nano = Loaded::take(GgufFile::open(file("nano.gguf")));
    std::vector<GgufTensor> tensors;
    for (std::size_t i = 0; i < nano->weights().size(); ++i) {
      const WeightInfo& info = nano->weights()[i];
      tensors.push_back({.name = info.name, .dtype = info.dtype, .shape = info.shape});
      bytes.insert(bytes.end(), nano->mapped(i).begin(), nano->mapped(i).end());
    }
    tensors.push_back({.name = "unused", .dtype = DType::F32, .shape = {200, 256, 1024}});
    auto writer = Loaded::take(GgufWriter::create(path, metadata(), tensors));
    ASSERT_TRUE(writer->write(bytes).has_value());
    const std::vector<std::byte> row(std::size_t{256} * 1024 * 4);
    for (int i = 0; i < 200; ++i) ASSERT_TRUE(writer->write(row).has_value());
    ASSERT_TRUE(writer->finish().has_value());
  }
  const auto model = Loaded::take(Model::load(path));
  std::vector<std::uint64_t> seen;
  ASSERT_TRUE(model
                  ->warm([&](std::uint64_t done, std::uint64_t total) {
                    EXPECT_EQ(total, model->weight_bytes());
                    seen.push_back(done);
                    return true;
                  })
                  .has_value());
  EXPECT_GE(seen.size(), 4U);
  EXPECT_TRUE(std::ranges::is_sorted(seen));
  EXPECT_EQ(seen.back(), model->weight_bytes());
  int calls = 0;
  ASSERT_TRUE(model->warm([&](std::uint64_t, std::uint64_t) { return ++calls == 99; }).has_value());
  EXPECT_EQ(calls, 1);
}

// The nano model in three parts.
class SplitModel : public Load {
 protected:
  [[nodiscard]] std::string part(int number, int count = 3) const {
    return file("m-0000" + std::to_string(number) + "-of-0000" + std::to_string(count) + ".gguf");
  }
  // Writes part `number` (from 1) to `path`, labelled as part `says` of `count`.
  void write_part(const std::string& path, int number, int says, int count = 3) {
    Metadata own = number == 1 ? metadata() : Metadata();
    own.set("split.no", static_cast<std::uint16_t>(says - 1));
    own.set("split.count", static_cast<std::uint16_t>(count));
    own.set("split.tensors.count", static_cast<std::int32_t>(tensors_));
    const std::size_t each = (tensors_ + 2) / 3;
    write(path, own, each * static_cast<std::size_t>(number - 1), each);
  }
  void SetUp() override {
    tensors_ = Loaded::take(GgufFile::open(file("nano.gguf")))->weights().size();
    for (int number = 1; number <= 3; ++number) write_part(part(number), number, number);
  }
  [[nodiscard]] Error error(int number = 1) const {
    const auto model = Model::load(part(number));
    EXPECT_FALSE(model.has_value());
    return model ? Error{} : model.error();
  }

  std::size_t tensors_ = 0;
};

TEST_F(SplitModel, RunsAsTheWholeOneDoesFromWhicheverPartIsNamed) {
  const std::vector<float> whole = logits(file("nano.gguf"));
  for (int number = 1; number <= 3; ++number) EXPECT_EQ(logits(part(number)), whole) << "part " << number;
}

TEST_F(SplitModel, AMissingPartIsNamed) {
  for (int missing = 1; missing <= 3; ++missing) {
    const std::vector<std::byte> bytes = read_bytes(part(missing));
    ASSERT_EQ(::unlink(part(missing).c_str()), 0);
    const Error failed = error(missing == 1 ? 2 : 1);
    EXPECT_EQ(failed.code, Code::io);
    expect_says(failed.message, "m-0000" + std::to_string(missing) + "-of-00003.gguf: cannot open the file");
    write_bytes(part(missing), bytes);
  }
}

TEST_F(SplitModel, PartsInAnotherOrderAreRefused) {
  const std::vector<std::byte> second = read_bytes(part(2));
  const std::vector<std::byte> third = read_bytes(part(3));
  write_bytes(part(2), third);
  write_bytes(part(3), second);
  const Error failed = error();
  EXPECT_EQ(failed.code, Code::invalid);
  expect_says(failed.message, "m-00002-of-00003.gguf: says it is part 3 of 3, its name says part 2 of 3");
}

TEST_F(SplitModel, PartsThatCountDifferentlyAreRefused) {
  write_part(part(3), 3, 3, 4);
  const Error failed = error();
  EXPECT_EQ(failed.code, Code::invalid);
  expect_says(failed.message, "m-00003-of-00003.gguf: says it is part 3 of 4, its name says part 3 of 3");
  // Opened directly, its name cannot be right.
  expect_says(error(3).message, "its name must end in -00003-of-00004.gguf");
}

TEST_F(SplitModel, APartThatIsNoneIsRefused) {
  write(part(2), Metadata(), 0, 1);
  const Error failed = error();
  EXPECT_EQ(failed.code, Code::invalid);
  expect_says(failed.message, "m-00002-of-00003.gguf");
}

TEST_F(SplitModel, APartThatWasCutShortIsNamed) {
  const std::vector<std::byte> bytes = read_bytes(part(2));
  write_bytes(part(2), std::span(bytes).first(bytes.size() / 2));
  const Error failed = error();
  EXPECT_EQ(failed.code, Code::invalid);
  expect_says(failed.message, "m-00002-of-00003.gguf");
  expect_says(failed.message, "the file ends at byte");
}

TEST_F(SplitModel, APartThatShrinksUnderARunningSessionIsAnIoError) {
  Loaded loaded(part(1), "cpu", {.context = 64});
  const std::vector<Token> tokens = {1, 70, 80};
  ASSERT_TRUE(loaded.session->prefill(0, tokens).has_value());
  ASSERT_EQ(::truncate(part(2).c_str(), 100), 0);
  const Status done = loaded.session->prefill(0, tokens);
  ASSERT_FALSE(done.has_value());
  EXPECT_EQ(done.error().code, Code::io);
  expect_says(done.error().message, "m-00002-of-00003.gguf");
}

}  // namespace
}  // namespace shunt::models
