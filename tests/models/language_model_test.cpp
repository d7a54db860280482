// The interface for programs: its results are those of the session beneath it, and mistakes give useful errors.
#include "shunt/model.h"

#include "models/generate.h"
#include "models/reference.h"

namespace shunt::models {
namespace {

const GenerateOptions kGreedy{.max_tokens = 24, .sampling = {.greedy = true}};

std::string prompt_text(std::size_t index) { return reference()["prompts"][index]["text"].get<std::string>(); }

class LanguageModelTest : public testing::Test {
 protected:
  LanguageModelTest()
      : runtime_(Loaded::take(Runtime::create({.threads = 2, .devices = "cpu"}))),
        model_(Loaded::take(LanguageModel::load(kTrainedModel))) {}

  [[nodiscard]] std::unique_ptr<LanguageSession> session(const SessionOptions& options) const {
    return Loaded::take(LanguageSession::create(*model_, *runtime_, options));
  }
  // Generates from the prompt with the session beneath the interface.
  static Generation beneath(std::size_t prompt) {
    const Loaded loaded(kTrainedModel, "cpu", {.context = 128});
    return Loaded::take(generate(*loaded.session, prompt_ids(prompt), kGreedy, {}));
  }

  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<LanguageModel> model_;
};

TEST_F(LanguageModelTest, KnowsItsFile) {
  const auto file = Loaded::take(GgufFile::open(kTrainedModel));
  EXPECT_EQ(model_->name(), "tiny-llama");
  EXPECT_EQ(model_->architecture(), "llama");
  EXPECT_EQ(model_->context_length(), file->metadata().u32("llama.context_length").value_or(0));
  EXPECT_EQ(model_->vocabulary(), file->metadata().u32("llama.vocab_size").value_or(0));
  EXPECT_EQ(model_->bos(), 1);
  EXPECT_TRUE(model_->adds_bos());
  EXPECT_TRUE(model_->is_end(2));
  EXPECT_FALSE(model_->is_end(300));
  std::uint64_t bytes = 0;
  for (const WeightInfo& info : file->weights()) bytes += info.bytes;
  EXPECT_EQ(model_->weight_bytes(), bytes);
}

TEST_F(LanguageModelTest, TextBecomesTokensAndComesBack) {
  const auto tokens = model_->encode(prompt_text(0), {.add_bos = true});
  ASSERT_TRUE(tokens.has_value()) << tokens.error().message;
  EXPECT_EQ(*tokens, prompt_ids(0));
  EXPECT_EQ(model_->decode(*tokens).value_or("?"), prompt_text(0));
}

TEST_F(LanguageModelTest, AConversationIsLaidOutInTheModelsFormat) {
  EXPECT_EQ(model_->chat_format().value_or("none"), "chatml");
  EXPECT_FALSE(LanguageModel::chat_formats().empty());
  const Message messages[] = {{.role = "user", .content = "What is 17 plus 25?"}};
  const auto tokens = model_->apply_chat_template(messages);
  ASSERT_TRUE(tokens.has_value()) << tokens.error().message;
  EXPECT_EQ(*tokens, prompt_ids(1));
  const auto same = model_->apply_chat_template(messages, {.format = "chatml"});
  EXPECT_EQ(same.value_or(std::vector<Token>()), *tokens);
  const auto closed = model_->apply_chat_template(messages, {.add_reply_opening = false});
  ASSERT_TRUE(closed.has_value());
  EXPECT_EQ(model_->decode(*closed, {.control = true}).value_or("?"),
            "<|im_start|>user\nWhat is 17 plus 25?<|im_end|>\n");
  const auto next = model_->apply_chat_template(messages, {.so_far = *tokens});
  ASSERT_TRUE(next.has_value());
  EXPECT_EQ(model_->decode(*next, {.control = true}).value_or("?"),
            "<|im_end|>\n<|im_start|>user\nWhat is 17 plus 25?<|im_end|>\n<|im_start|>assistant\n");
}

TEST_F(LanguageModelTest, GeneratesTheTextOfTheSessionBeneath) {
  const Generation expected = beneath(0);
  ASSERT_EQ(expected.tokens.size(), kGreedy.max_tokens);
  const auto session = this->session({.context = 128});
  std::string streamed;
  const auto collect = [&](std::string_view text) {
    streamed += text;
    return true;
  };
  const auto generation = session->generate(prompt_text(0), kGreedy, {.on_text = collect});
  ASSERT_TRUE(generation.has_value()) << generation.error().message;
  EXPECT_EQ(generation->tokens, expected.tokens);
  EXPECT_EQ(generation->text, expected.text);
  EXPECT_EQ(streamed, expected.text);
  EXPECT_EQ(generation->stop, StopReason::length);
  EXPECT_EQ(generation->prompt_tokens, prompt_ids(0).size());
  ASSERT_TRUE(session->truncate(0, 0).has_value());
  const auto again = session->generate(prompt_ids(0), kGreedy);
  ASSERT_TRUE(again.has_value()) << again.error().message;
  EXPECT_EQ(again->text, expected.text);
}

// The sequence holds everything generated, so generation can continue from there.
TEST_F(LanguageModelTest, APromptMayFollowOnWhatWasGenerated) {
  constexpr std::size_t kFirst = 9;
  const std::vector<Token> expected = beneath(0).tokens;
  const auto session = this->session({.context = 128});
  GenerateOptions options = kGreedy;
  options.max_tokens = kFirst;
  ASSERT_TRUE(session->generate(prompt_text(0), options).has_value());
  ASSERT_EQ(session->tokens(0).size(), prompt_ids(0).size() + kFirst);
  EXPECT_EQ(session->tokens(0).back(), expected[kFirst - 1]);
  EXPECT_EQ(best_of(session->logits(0)), expected[kFirst]);
  options.max_tokens = 6;
  const auto rest = session->generate(std::span(expected).subspan(kFirst, 1), options);
  ASSERT_TRUE(rest.has_value()) << rest.error().message;
  EXPECT_TRUE(std::ranges::equal(rest->tokens, std::span(expected).subspan(kFirst + 1, 6)));
  // A continuing text starts with neither a BOS nor a prefix space.
  const std::size_t before = session->tokens(0).size();
  ASSERT_TRUE(session->generate("<|im_end|>\n", options).has_value());
  EXPECT_EQ(session->tokens(0)[before], 4);
}

TEST_F(LanguageModelTest, SequencesDoNotKnowEachOther) {
  const auto session = this->session({.context = 128, .max_sequences = 2});
  std::vector<std::vector<Token>> tokens(2);
  std::vector<Token> next(2);
  for (const std::uint32_t sequence : {0U, 1U}) {
    ASSERT_TRUE(session->prefill(sequence, prompt_ids(sequence)).has_value());
    next[sequence] = best_of(session->logits(0));
  }
  for (int step = 0; step < 8; ++step) {
    const BatchToken batch[] = {{.sequence = 0, .token = next[0], .wants_logits = true},
                                {.sequence = 1, .token = next[1], .wants_logits = true}};
    ASSERT_TRUE(session->decode(batch).has_value());
    for (const std::uint32_t sequence : {0U, 1U}) {
      tokens[sequence].push_back(next[sequence]);
      ASSERT_EQ(session->logits(sequence).size(), model_->vocabulary());
      next[sequence] = best_of(session->logits(sequence));
    }
  }
  EXPECT_TRUE(session->logits(2).empty());
  for (const std::uint32_t sequence : {0U, 1U}) {
    const std::vector<Token> expected = beneath(sequence).tokens;
    EXPECT_TRUE(std::ranges::equal(tokens[sequence], std::span(expected).first(8))) << "sequence " << sequence;
  }
}

TEST_F(LanguageModelTest, MistakesAreNamed) {
  const auto expect = [](const auto& result, Code code, std::string_view part) {
    ASSERT_FALSE(result.has_value()) << part;
    EXPECT_EQ(result.error().code, code) << result.error().message;
    EXPECT_NE(result.error().message.find(part), std::string::npos) << result.error().message;
  };
  expect(LanguageModel::load("/no/such.gguf"), Code::io, "/no/such.gguf");
  expect(LanguageModel::load(SHUNT_TEST_DATA "/tiny-llama-reference.json"), Code::invalid, "tiny-llama-reference.json");
  expect(model_->encode("a\xFF"), Code::invalid, "0xFF at offset 1");
  expect(model_->decode(std::vector<Token>{1, 1 << 20}), Code::invalid, "token 1048576 at 1");
  const Message stranger[] = {{.role = "narrator", .content = "x"}};
  expect(model_->apply_chat_template(stranger), Code::invalid, "\"narrator\"");
  expect(model_->apply_chat_template({}, {.format = "smoke"}), Code::unsupported, "\"smoke\"");
  expect(LanguageSession::create(*model_, *runtime_, {.max_sequences = 0}), Code::invalid, "0 sequences");
  expect(strategy_from_name("luck"), Code::invalid, "\"luck\"");

  const auto session = this->session({.context = 16, .max_sequences = 2});
  EXPECT_EQ(session->context(), 16U);
  expect(session->generate(std::span<const Token>()), Code::invalid, "empty");
  expect(session->generate("a\xFF"), Code::invalid, "0xFF");
  expect(session->generate("a", {.sampling = {.top_p = 2}}), Code::invalid, "top_p is 2");
  expect(session->generate("a", {.sequence = 2}), Code::invalid, "sequence 2 is out of range; the session has 2");
  expect(session->truncate(2, 0), Code::invalid, "sequence 2 is out of range; the session has 2");
  expect(session->prefill(0, std::vector<Token>{-1}), Code::invalid, "token -1");
  expect(session->prefill(0, std::vector<Token>(17, 300)), Code::invalid, "17 tokens do not fit: the context holds 16");
  EXPECT_TRUE(session->tokens(0).empty());
  EXPECT_TRUE(session->tokens(2).empty());

  const auto full = session->generate(prompt_ids(0), {.sampling = {.greedy = true}, .ignore_end = true});
  ASSERT_TRUE(full.has_value()) << full.error().message;
  EXPECT_EQ(full->stop, StopReason::context_full);
  EXPECT_EQ(session->tokens(0).size(), 16U);
  const BatchToken one_more{.sequence = 0, .token = 300};
  expect(session->decode(std::span(&one_more, 1)), Code::invalid, "the context of 16 tokens is full");
}

}  // namespace
}  // namespace shunt::models
