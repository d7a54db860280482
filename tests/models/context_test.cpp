// How long a session's sequences may become: the default, what fits in memory, and what happens at the limit.
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "devices/device.h"
#include "models/context.h"
#include "models/generate.h"
#include "models/gguf/gguf_bytes.h"
#include "models/gguf/gguf_writer.h"
#include "models/random/random_model.h"
#include "models/reference.h"
#include "models/step_planner.h"
#include "run/opened_devices.h"

namespace shunt::models {
namespace {

struct Sizes {
  std::uint32_t layers = 1;
  std::uint32_t heads = 1;
  std::uint32_t head_dim = 32;
  std::uint32_t context = 128;
};

constexpr std::uint32_t kEmbedding = 32;
constexpr std::uint32_t kFeedForward = 32;
constexpr std::uint32_t kVocabulary = 288;

constexpr std::uint64_t kUnusedBytes = 4U << 20U;  // of a tensor that no step reads, the last of the file

// Writes a model of zeros: small on disk, with a cache as large as `sizes` asks for.
void write_zeros(const TestFolder& folder, const Sizes& sizes) {
  ASSERT_TRUE(make_model("nano", "F16", folder.file("nano")).has_value());
  Metadata metadata = Loaded::take(GgufFile::open(folder.file("nano")))->metadata();
  metadata.set("llama.block_count", sizes.layers);
  metadata.set("llama.context_length", sizes.context);
  metadata.set("llama.feed_forward_length", kFeedForward);
  metadata.set("llama.attention.head_count", sizes.heads);
  metadata.set("llama.attention.head_count_kv", sizes.heads);
  for (const char* key : {"attention.key_length", "attention.value_length", "rope.dimension_count"})
    metadata.set(std::string("llama.") + key, sizes.head_dim);

  std::vector<GgufTensor> tensors;
  std::uint64_t bytes = 0;
  const auto add = [&](const std::string& name, DType dtype, const Shape& shape) {
    tensors.push_back({.name = name + ".weight", .dtype = dtype, .shape = shape});
    bytes += bytes_of(dtype, shape).value_or(0);
  };
  add("token_embd", DType::Q4_0, {kVocabulary, kEmbedding});
  add("output_norm", DType::F32, {kEmbedding});
  for (std::uint32_t layer = 0; layer < sizes.layers; ++layer) {
    const std::string prefix = "blk." + std::to_string(layer) + ".";
    add(prefix + "attn_norm", DType::F32, {kEmbedding});
    for (const char* name : {"attn_q", "attn_k", "attn_v"})
      add(prefix + name, DType::Q4_0, {sizes.heads * sizes.head_dim, kEmbedding});
    add(prefix + "attn_output", DType::Q4_0, {kEmbedding, sizes.heads * sizes.head_dim});
    add(prefix + "ffn_norm", DType::F32, {kEmbedding});
    for (const char* name : {"ffn_gate", "ffn_up"}) add(prefix + name, DType::Q4_0, {kFeedForward, kEmbedding});
    add(prefix + "ffn_down", DType::Q4_0, {kEmbedding, kFeedForward});
  }
  add("unused", DType::F32, {1, 1024, 1024});
  auto writer = Loaded::take(GgufWriter::create(folder.file("m"), metadata, tensors));
  ASSERT_TRUE(writer->write(std::vector<std::byte>(bytes)).has_value());
  ASSERT_TRUE(writer->finish().has_value());
}

// Makes the unused tensor `times` as large by a hole in the file.
void grow_unused(const std::string& path, std::uint64_t times) {
  std::vector<std::byte> bytes = read_bytes(path);
  constexpr std::string_view kName = "unused.weight";
  const auto* text = reinterpret_cast<const std::byte*>(kName.data());
  const auto place = std::search(bytes.begin(), bytes.end(), text, text + kName.size());
  ASSERT_NE(place, bytes.end());
  // The name is followed by the number of dimensions and the dimensions, innermost first.
  std::memcpy(&*place + kName.size() + 4 + 16, &times, sizeof times);
  write_bytes(path, bytes);
  ASSERT_EQ(::truncate(path.c_str(), static_cast<off_t>(bytes.size() + (times - 1) * kUnusedBytes)), 0);
}

std::uint32_t default_context(const Sizes& sizes) {
  TestFolder folder;
  write_zeros(folder, sizes);
  const auto runtime = Loaded::take(Runtime::create({.threads = 1}));
  const auto model = Loaded::take(Model::load(folder.file("m")));
  return Loaded::take(choose_context(*model, *runtime, {}));
}

TEST(Context, IsTheModelsOwnByDefault) {
  EXPECT_EQ(default_context({.context = 128}), 128U);
  EXPECT_EQ(default_context({.context = 8191}), 8191U);
}

TEST(Context, IsAtMost8192ByDefault) {
  EXPECT_EQ(default_context({.context = 8193}), 8192U);
  EXPECT_EQ(default_context({.context = 1U << 20U}), 8192U);
}

TEST(Context, ByDefaultIsWhatFitsInMemory) {
  // 512 KiB per token and sequence, and enough sequences that about a thousand tokens of each fit in memory here.
  TestFolder folder;
  write_zeros(folder, {.layers = 64, .heads = 16, .head_dim = 64, .context = 1U << 20U});
  const auto runtime = Loaded::take(Runtime::create({.threads = 1}));
  const auto model = Loaded::take(Model::load(folder.file("m")));
  const std::uint64_t token_bytes = cache_page_bytes(model->config(), 1, DType::F32);
  ASSERT_EQ(token_bytes, 512U << 10U);
  const std::uint64_t available = opened(*runtime).handles()[0]->memory_available().value_or(0);
  ASSERT_GT(available, std::uint64_t{1} << 30U);
  const auto sequences = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(available / token_bytes / 1000, 1, 1024));
  const SessionOptions options{.max_sequences = sequences, .cache_dtype = DType::F32};

  const std::uint32_t context = Loaded::take(choose_context(*model, *runtime, options));
  const std::uint64_t cache = token_bytes * sequences * context;
  EXPECT_LT(context, 8192U);
  EXPECT_LT(cache, available);
  EXPECT_GT(cache, available / 2);

  SessionOptions asked = options;
  asked.context = context / 2;
  EXPECT_EQ(Loaded::take(choose_context(*model, *runtime, asked)), context / 2);
  asked.context = 8192;
  const auto refused = Session::create(*model, *runtime, asked);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Code::out_of_memory);
  EXPECT_NE(refused.error().message.find("a context of 8192 tokens in " + std::to_string(sequences) + " sequences"),
            std::string::npos)
      << refused.error().message;
  EXPECT_NE(refused.error().message.find("room for "), std::string::npos) << refused.error().message;
}

TEST(Context, LeavesRoomForTheWeights) {
  TestFolder folder;
  write_zeros(folder, {.layers = 64, .heads = 16, .head_dim = 64, .context = 1U << 20U});
  const auto runtime = Loaded::take(Runtime::create({.threads = 1}));
  const std::uint64_t available = opened(*runtime).handles()[0]->memory_available().value_or(0);
  const auto sequences =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(available / (512U << 10U) / 2000, 1, 1024));
  const SessionOptions options{.max_sequences = sequences, .cache_dtype = DType::F32};
  const auto context_beside = [&] {
    const auto model = Loaded::take(Model::load(folder.file("m")));
    return Loaded::take(choose_context(*model, *runtime, options));
  };
  const double all = context_beside();
  grow_unused(folder.file("m"), available / 2 / kUnusedBytes);
  const double half = context_beside();
  EXPECT_GT(half, 0.35 * all);
  EXPECT_LT(half, 0.65 * all);
}

TEST(Context, WithoutRoomForAnyIsAnErrorThatNamesTheWeights) {
  TestFolder folder;
  write_zeros(folder, {});
  const auto runtime = Loaded::take(Runtime::create({.threads = 1}));
  const std::uint64_t total = opened(*runtime).handles()[0]->info().memory_bytes;
  ASSERT_GT(total, 0U);
  grow_unused(folder.file("m"), 2 * total / kUnusedBytes);
  const auto model = Loaded::take(Model::load(folder.file("m")));
  const std::string weights = std::to_string(model->weight_bytes() >> 20U) + " MiB of weights";
  for (const std::uint32_t context : {0U, 64U}) {
    const auto refused = choose_context(*model, *runtime, {.context = context});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Code::out_of_memory);
    EXPECT_NE(refused.error().message.find(weights), std::string::npos) << refused.error().message;
    EXPECT_EQ(refused.error().message.find("-c"), std::string::npos) << refused.error().message;
  }
}

TEST(Context, PagesAreCountedWithoutOverflow) {
  EXPECT_EQ(pages_of(0), 0U);
  EXPECT_EQ(pages_of(kPageTokens + 1), 2U);
  EXPECT_EQ(pages_of(0xFFFFFFFFU), 1U << 27U);
  EXPECT_EQ(Loaded::take(cache_pages(kPageTokens, 1024)), 1024U);
  EXPECT_EQ(Loaded::take(cache_pages(0xFFFFFFFFU, 15)), 15U << 27U);
  for (const std::uint32_t sequences : {16U, 31U, 32U, 64U, 1024U}) {
    const auto refused = cache_pages(0xFFFFFFFFU, sequences);
    ASSERT_FALSE(refused.has_value()) << sequences;
    EXPECT_EQ(refused.error().code, Code::invalid);
  }
  // Refused whatever is known of the memory.
  TestFolder folder;
  write_zeros(folder, {});
  const auto model = Loaded::take(Model::load(folder.file("m")));
  for (const char* devices : {"cpu:scalar", "sim:0"}) {
    const auto runtime = Loaded::take(Runtime::create({.threads = 1, .devices = devices}));
    const auto refused = Session::create(*model, *runtime, {.context = 0xFFFFFFFFU, .max_sequences = 32});
    ASSERT_FALSE(refused.has_value()) << devices;
    EXPECT_EQ(refused.error().code, Code::invalid) << refused.error().message;
  }
}

TEST(Context, AskedForMayBeLongerThanTheModels) {
  Loaded loaded(kTrainedModel, "cpu", {.context = 5000});
  EXPECT_EQ(loaded.session->context(), 5000U);
}

class FullContext : public testing::Test {
 protected:
  static void expect_names_the_limit(const Status& status) {
    ASSERT_FALSE(status.has_value());
    EXPECT_EQ(status.error().code, Code::invalid);
    for (const char* part : {"context", "40", "-c"})
      EXPECT_NE(status.error().message.find(part), std::string::npos) << status.error().message;
  }

  Loaded loaded_{kTrainedModel, "cpu", {.context = 40, .max_sequences = 2}};
  Session& session_ = *loaded_.session;
};

TEST_F(FullContext, NamesTheLimitAndFillsToTheLastToken) {
  const std::vector<Token> all(40, 300);
  ASSERT_TRUE(session_.prefill(0, std::span(all).first(39)).has_value());
  expect_names_the_limit(session_.prefill(0, std::span(all).first(2)));
  EXPECT_EQ(session_.tokens(0).size(), 39U);
  ASSERT_TRUE(session_.prefill(0, std::span(all).first(1)).has_value());
  expect_names_the_limit(session_.prefill(0, std::span(all).first(1)));
  const BatchToken over[] = {{.sequence = 1, .token = 5}, {.sequence = 0, .token = 5, .wants_logits = true}};
  expect_names_the_limit(session_.decode(over));
  EXPECT_EQ(session_.tokens(1).size(), 0U);
  // The other sequence has its own context.
  EXPECT_TRUE(session_.prefill(1, all).has_value());
  EXPECT_EQ(session_.tokens(1).size(), 40U);
}

TEST_F(FullContext, EndsGenerationWithTheTextSoFar) {
  const std::vector<Token> prompt(35, 300);
  const auto generation =
      generate(session_, prompt, {.sampling = {.greedy = true}, .ignore_end = true}, GenerateCallbacks{});
  ASSERT_TRUE(generation.has_value()) << generation.error().message;
  EXPECT_EQ(generation->stop, StopReason::context_full);
  EXPECT_EQ(name_of(generation->stop), "context full");
  EXPECT_EQ(session_.tokens(0).size(), 40U);
  // One more than the sequence holds: the last token was chosen from the final logits.
  EXPECT_EQ(generation->tokens.size(), 6U);
}

TEST_F(FullContext, RefusesAPromptThatDoesNotFitBeforeTheFirstStep) {
  const std::vector<Token> prompt(41, 300);
  const auto generation = generate(session_, prompt, {.sampling = {.greedy = true}}, GenerateCallbacks{});
  expect_names_the_limit(generation ? Status{} : Status(std::unexpected(generation.error())));
  EXPECT_TRUE(session_.tokens(0).empty());
}

}  // namespace
}  // namespace shunt::models
