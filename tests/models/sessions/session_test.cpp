// Sessions: several sequences in one cache, full caches, and mistakes.
#include "models/session.h"

#include <algorithm>
#include <numeric>

#include "models/gguf/gguf_bytes.h"
#include "models/random/random_model.h"
#include "models/reference.h"
#include "models/step_planner.h"

namespace shunt::models {
namespace {

std::vector<Token> alone(const std::vector<Token>& prompt, std::size_t count, DType cache) {
  Loaded loaded(kTrainedModel, "cpu", {.context = 128, .cache_dtype = cache});
  std::vector<Token> tokens;
  EXPECT_TRUE(loaded.session->prefill(0, prompt).has_value());
  while (tokens.size() < count) {
    tokens.push_back(best_of(loaded.session->logits(0)));
    EXPECT_TRUE(loaded.session->prefill(0, std::span(&tokens.back(), 1)).has_value());
  }
  return tokens;
}

class SessionCache : public testing::TestWithParam<DType> {};

TEST_P(SessionCache, OfTwoInterleavedSequencesGivesTheTokensOfEachAlone) {
  constexpr std::size_t kCount = 24;
  Loaded loaded(kTrainedModel, "cpu", {.context = 128, .max_sequences = 2, .cache_dtype = GetParam()});
  Session& session = *loaded.session;
  std::vector<Token> next(2);
  std::vector<std::vector<Token>> tokens(2);
  for (std::uint32_t sequence = 0; sequence < 2; ++sequence) {
    ASSERT_TRUE(session.prefill(sequence, prompt_ids(sequence)).has_value());
    next[sequence] = best_of(session.logits(0));
  }
  while (tokens[0].size() < kCount) {
    const BatchToken batch[] = {{.sequence = 0, .token = next[0], .wants_logits = true},
                                {.sequence = 1, .token = next[1], .wants_logits = true}};
    for (std::uint32_t sequence = 0; sequence < 2; ++sequence) tokens[sequence].push_back(next[sequence]);
    ASSERT_TRUE(session.decode(batch).has_value());
    for (std::uint32_t sequence = 0; sequence < 2; ++sequence) next[sequence] = best_of(session.logits(sequence));
  }
  for (std::uint32_t sequence = 0; sequence < 2; ++sequence)
    EXPECT_EQ(tokens[sequence], alone(prompt_ids(sequence), kCount, GetParam()));
}

TEST(Session, CandidatesAreTheBestLogits) {
  for (const char* devices : {"cpu", "sim:0"}) {
    Loaded all(kTrainedModel, devices, {.context = 128});
    Loaded few(kTrainedModel, devices, {.context = 128});
    std::vector<BatchToken> batch;
    for (const Token token : prompt_ids(0)) batch.push_back({.token = token, .wants_logits = batch.size() % 2 == 0});
    ASSERT_TRUE(all.session->decode(batch).has_value());
    ASSERT_TRUE(few.session->decode(batch, Session::Results::candidates).has_value());
    EXPECT_TRUE(all.session->candidates(0).empty());
    EXPECT_TRUE(few.session->logits(0).empty());
    std::size_t row = 0;
    for (; !all.session->logits(row).empty(); ++row) {
      const std::span<const float> logits = all.session->logits(row);
      std::vector<Token> order(logits.size());
      std::iota(order.begin(), order.end(), 0);
      const auto logit = [&](Token token) { return logits[static_cast<std::size_t>(token)]; };
      std::ranges::stable_sort(order, [&](Token a, Token b) { return logit(a) > logit(b); });
      const std::span<const ScoredToken> candidates = few.session->candidates(row);
      ASSERT_EQ(candidates.size(), few.session->candidate_count());
      for (std::size_t place = 0; place < candidates.size(); ++place) {
        EXPECT_EQ(candidates[place].token, order[place]) << devices << " row " << row << " place " << place;
        EXPECT_EQ(candidates[place].logit, logit(order[place]));
      }
    }
    EXPECT_EQ(row, (batch.size() + 1) / 2);
    EXPECT_TRUE(few.session->candidates(row).empty());
  }
}

TEST_P(SessionCache, OfATruncatedSequenceIsAsIfNothingHadFollowed) {
  Loaded loaded(kTrainedModel, "cpu", {.context = 128, .cache_dtype = GetParam()});
  Session& session = *loaded.session;
  const std::vector<Token> prompt = prompt_ids(0);
  ASSERT_TRUE(session.prefill(0, prompt).has_value());
  const Token expected = best_of(session.logits(0));
  ASSERT_TRUE(session.prefill(0, prompt_ids(1)).has_value());
  session.truncate(0, prompt.size() - 1);
  ASSERT_TRUE(session.prefill(0, std::span(&prompt.back(), 1)).has_value());
  EXPECT_EQ(best_of(session.logits(0)), expected);
}

TEST(Session, TwoOfOneModelShareItsWeightsOnADevice) {
  Loaded loaded(kTrainedModel, "sim:0", {.context = 128});
  const auto other = Loaded::take(Session::create(*loaded.model, *loaded.runtime, {.context = 128}));
  const std::vector<Token> prompt = prompt_ids(0);
  ASSERT_TRUE(loaded.session->prefill(0, prompt).has_value());
  const std::uint64_t copied = loaded.session->memory().copied_weights;
  EXPECT_GT(copied, 0U);
  ASSERT_TRUE(other->prefill(0, prompt).has_value());
  EXPECT_EQ(other->memory().copied_weights, copied);
  EXPECT_TRUE(std::ranges::equal(other->logits(0), loaded.session->logits(0)));
  // When one session is closed, the other keeps what they share.
  loaded.session = nullptr;
  EXPECT_EQ(other->memory().copied_weights, copied);
  EXPECT_TRUE(other->prefill(0, std::span(&prompt.back(), 1)).has_value());
  const auto third = Loaded::take(Session::create(*loaded.model, *loaded.runtime, {.context = 128}));
  EXPECT_EQ(third->memory().copied_weights, copied);
}

TEST_P(SessionCache, OfTwoOfOneModelSurvivesTheirDevice) {
  RuntimeOptions options{.threads = 2, .devices = "sim:0,sim:1"};
  const SessionOptions layers{.context = 128, .cache_dtype = GetParam(), .strategy = Strategy::layers};
  Loaded whole(kTrainedModel, Loaded::take(Runtime::create(options)), layers);
  options.faults = "sim:0 lost at op 300";
  Loaded loaded(kTrainedModel, Loaded::take(Runtime::create(options)), layers);
  const auto other = Loaded::take(Session::create(*loaded.model, *loaded.runtime, loaded.session->options()));
  const std::vector<Token> prompt = prompt_ids(0);
  ASSERT_TRUE(whole.session->prefill(0, prompt).has_value());
  for (int step = 0; step < 8; ++step) {
    const Token next = best_of(whole.session->logits(0));
    ASSERT_TRUE(whole.session->prefill(0, std::span(&next, 1)).has_value());
    for (Session* session : {loaded.session.get(), other.get()}) {
      if (step == 0) {
        ASSERT_TRUE(session->prefill(0, prompt).has_value());
      }
      const Status status = session->prefill(0, std::span(&next, 1));
      ASSERT_TRUE(status.has_value()) << status.error().message;
      EXPECT_TRUE(std::ranges::equal(session->logits(0), whole.session->logits(0))) << step;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(DTypes, SessionCache, testing::Values(DType::F16, DType::Q8_0),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(Session, ACacheInBlocksTakes34BytesFor32Elements) {
  const auto model = Loaded::take(Model::load(kTrainedModel));
  const auto runtime = Loaded::take(Runtime::create({.threads = 2}));
  const auto state_bytes = [&](DType cache) {
    const SessionOptions options{.cache_dtype = cache};
    const PlannedGraph step = Loaded::take(StepPlanner(*model, *runtime, options, 512).plan(1, 1));
    std::uint64_t bytes = 0;
    for (const MemoryUse& use : step.plan.memory) bytes += use.state_bytes;
    return bytes;
  };
  EXPECT_EQ(state_bytes(DType::Q8_0) * 64, state_bytes(DType::F16) * 34);
  EXPECT_EQ(state_bytes(DType::Q8_0), cache_page_bytes(model->config(), 512, DType::Q8_0));
}

TEST(Session, ACacheInBlocksNeedsHeadsOfWholeBlocks) {
  TestFolder folder;
  ASSERT_TRUE(make_model("nano", "F16", folder.file("nano")).has_value());
  const auto model = Loaded::take(Model::load(folder.file("nano")));
  const auto runtime = Loaded::take(Runtime::create({.threads = 2}));
  const auto session = Session::create(*model, *runtime, {.cache_dtype = DType::Q8_0});
  ASSERT_FALSE(session.has_value());
  EXPECT_EQ(session.error().code, Code::invalid);
  EXPECT_EQ(session.error().message,
            "the KV cache of model \"random nano\" cannot be Q8_0: its heads have 16 elements, which is not a whole "
            "number of blocks of 32; choose one of F32, F16, BF16");
}

TEST(Session, MemoryCountsEveryArenaThatIsKept) {
  Loaded loaded(kTrainedModel, "cpu", {.context = 128});
  Session& session = *loaded.session;
  const auto arena_of = [&](std::uint32_t tokens) {
    std::uint64_t bytes = 0;
    for (const Plan::PlannedDevice& device : Loaded::take(session.plan_for(tokens, 1))->devices)
      bytes += device.arena_bytes;
    return bytes;
  };
  const std::uint64_t small = arena_of(1);
  const std::uint64_t with_small = session.memory().programs;
  const std::uint64_t large = arena_of(64);
  ASSERT_GT(large, small);
  // The program for one token keeps the arena that it was bound to.
  EXPECT_GE(session.memory().programs, with_small + large);
}

TEST(Session, AFullContextIsAnErrorAndLeavesTheSequenceAsItWas) {
  Loaded loaded(kTrainedModel, "cpu", {.context = 12});
  Session& session = *loaded.session;
  const std::vector<Token> prompt = prompt_ids(0);
  ASSERT_TRUE(session.prefill(0, prompt).has_value());
  const Status full = session.prefill(0, prompt);
  ASSERT_FALSE(full.has_value());
  EXPECT_EQ(full.error().code, Code::invalid);
  EXPECT_EQ(session.tokens(0).size(), prompt.size());
  EXPECT_TRUE(session.prefill(0, std::span(prompt).first(2)).has_value());
}

TEST(Session, BadBatchesAndOptionsAreErrors) {
  Loaded loaded(kTrainedModel, "cpu", {.context = 64, .max_batch_tokens = 4});
  Session& session = *loaded.session;
  const BatchToken other_sequence[] = {{.sequence = 1, .token = 1}};
  const BatchToken negative[] = {{.token = -1}};
  const BatchToken too_large[] = {{.token = 1991}};
  for (const std::span<const BatchToken> batch :
       {std::span<const BatchToken>(), std::span<const BatchToken>(other_sequence),
        std::span<const BatchToken>(negative), std::span<const BatchToken>(too_large)})
    EXPECT_EQ(session.decode(batch).error().code, Code::invalid);
  const std::vector<BatchToken> long_batch(5, BatchToken{.token = 1});
  EXPECT_EQ(session.decode(long_batch).error().code, Code::invalid);
  for (const SessionOptions& options : {SessionOptions{.max_sequences = 0}, SessionOptions{.cache_dtype = DType::Q4_0},
                                        SessionOptions{.max_batch_tokens = kMostStepTokens + 1}})
    EXPECT_EQ(Session::create(*loaded.model, *loaded.runtime, options).error().code, Code::invalid);
  const auto too_long = Session::create(*loaded.model, *loaded.runtime, {.context = 0xFFFFFF00U});
  EXPECT_EQ(too_long.error().code, Code::out_of_memory);
  EXPECT_NE(too_long.error().message.find("tokens in 1 sequence does not fit"), std::string::npos)
      << too_long.error().message;
}

}  // namespace
}  // namespace shunt::models
