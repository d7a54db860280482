// Generation as a caller sees it: text in whole characters, stop strings, end tokens, interruption.
#include "models/generate.h"

#include <random>

#include "models/gguf/gguf_bytes.h"
#include "models/random/random_model.h"
#include "models/reference.h"
#include "models/text/utf8.h"

namespace shunt::models {
namespace {

struct Collected {
  std::vector<std::string> pieces;
  Generation generation;
  [[nodiscard]] std::string joined() const {
    std::string text;
    for (const std::string& piece : pieces) text += piece;
    return text;
  }
};

Collected collect(Session& session, std::span<const Token> prompt, const GenerateOptions& options) {
  session.truncate(options.sequence, 0);
  Collected collected;
  const auto collect_piece = [&](std::string_view text) {
    collected.pieces.emplace_back(text);
    return true;
  };
  auto generation = generate(session, prompt, options, {.on_text = collect_piece});
  EXPECT_TRUE(generation.has_value()) << (generation ? "" : generation.error().message);
  if (generation) collected.generation = std::move(*generation);
  return collected;
}

// A model of random weights emits bytes as often as pieces, so characters are split in every way.
TEST(Generate, TextComesOutAtWholeCharacters) {
  TestFolder folder;
  ASSERT_TRUE(make_model("nano", "F16", folder.file("m")).has_value());
  const auto runtime = Loaded::take(Runtime::create({.threads = 1}));
  const auto model = Loaded::take(Model::load(folder.file("m")));
  const auto session = Loaded::take(Session::create(*model, *runtime, {.context = 128}));
  const Tokenizer& tokenizer = model->tokenizer();
  std::size_t cut = 0;
  std::size_t multibyte = 0;
  for (std::uint64_t seed = 0; seed < 15; ++seed) {
    const std::vector<Token> prompt = {1, static_cast<Token>(5 + seed)};
    const Collected collected =
        collect(*session, prompt,
                {.max_tokens = 100,
                 .sampling = {.temperature = 5, .top_k = 0, .top_p = 1, .min_p = 0, .seed = seed},
                 .ignore_end = true});
    std::string bytes;
    for (const Token token : collected.generation.tokens) {
      const std::string_view piece = tokenizer.piece(token, true);
      if (!is_utf8(piece)) ++cut;
      bytes += piece;
    }
    for (const std::string& piece : collected.pieces) {
      EXPECT_FALSE(piece.empty()) << "seed " << seed;
      EXPECT_TRUE(is_utf8(piece)) << "seed " << seed;
      if (static_cast<unsigned char>(piece[0]) >= 0xC0 && piece != "\xEF\xBF\xBD") ++multibyte;
    }
    // The streamed text is the text of all bytes at once.
    Utf8Stream whole;
    std::string expected = whole.push(bytes);
    expected += whole.flush();
    EXPECT_EQ(collected.joined(), expected) << "seed " << seed;
    EXPECT_EQ(collected.generation.text, expected) << "seed " << seed;
  }
  EXPECT_GT(cut, 250U);
  EXPECT_GT(multibyte, 5U);
}

// Random substrings of a text as stop strings: the text ends before their first occurrence.
TEST(Generate, StopStringsEndTheTextWhereverTheyStand) {
  Loaded loaded(kTrainedModel, "cpu", {.context = 128});
  const auto prompt = prompt_ids(0);
  const GenerateOptions plain{.max_tokens = 40, .sampling = {.greedy = true}, .ignore_end = true};
  const std::string text = collect(*loaded.session, prompt, plain).generation.text;
  ASSERT_GT(text.size(), 60U);
  std::mt19937 random(3);
  for (int repeat = 0; repeat < 12; ++repeat) {
    const std::size_t at = random() % (text.size() - 8);
    GenerateOptions stopping = plain;
    stopping.stops = {"never in it", text.substr(at, 1 + random() % 7)};
    if (!is_utf8(stopping.stops[1])) continue;
    const Collected collected = collect(*loaded.session, prompt, stopping);
    EXPECT_EQ(collected.generation.stop, StopReason::stop_string) << stopping.stops[1];
    EXPECT_EQ(collected.generation.text, text.substr(0, text.find(stopping.stops[1]))) << stopping.stops[1];
    EXPECT_EQ(collected.joined(), collected.generation.text);
  }
}

// The possible start of a stop string is text after all if generation ends first.
TEST(Generate, TheBeginningOfAStopStringIsGivenOutAtTheEnd) {
  Loaded loaded(kTrainedModel, "cpu", {.context = 128});
  const auto prompt = prompt_ids(0);
  GenerateOptions options{.max_tokens = 20, .sampling = {.greedy = true}, .ignore_end = true};
  const std::string text = collect(*loaded.session, prompt, options).generation.text;
  ASSERT_GT(text.size(), 20U);
  options.stops = {text.substr(text.size() - 5) + " and what never comes"};
  const Collected collected = collect(*loaded.session, prompt, options);
  EXPECT_EQ(collected.generation.stop, StopReason::length);
  EXPECT_EQ(collected.generation.text, text);
  EXPECT_EQ(collected.joined(), text);
  EXPECT_EQ(collected.pieces.back(), text.substr(text.size() - 5));
}

TEST(Generate, EndTokensEndTheTextUnlessIgnored) {
  Loaded loaded(kTrainedModel, "cpu", {.context = 128});
  const Tokenizer& tokenizer = loaded.model->tokenizer();
  const auto prompt = loaded.model->chat()->encode(std::vector<Message>{{"user", "What is 17 plus 25?"}}, tokenizer,
                                                   /*add_generation_prompt=*/true);
  ASSERT_TRUE(prompt.has_value());
  const GenerateOptions options{.max_tokens = 30, .sampling = {.greedy = true}};
  const Generation ended = collect(*loaded.session, *prompt, options).generation;
  EXPECT_EQ(ended.stop, StopReason::end_token);
  EXPECT_NE(ended.text.find("42"), std::string::npos) << ended.text;
  for (const Token token : ended.tokens) EXPECT_FALSE(tokenizer.is_end(token));
  GenerateOptions ignoring = options;
  ignoring.ignore_end = true;
  const Generation on = collect(*loaded.session, *prompt, ignoring).generation;
  EXPECT_EQ(on.stop, StopReason::length);
  ASSERT_EQ(on.tokens.size(), 30U);
  EXPECT_TRUE(std::ranges::equal(ended.tokens, std::span(on.tokens).first(ended.tokens.size())));
  EXPECT_TRUE(tokenizer.is_end(on.tokens[ended.tokens.size()]));
}

TEST(Generate, TheReferencesGreedyTokensComeOutOneByOne) {
  Loaded loaded(kTrainedModel, "cpu", {.context = 256});
  const auto& prompt = reference()["prompts"][0];
  const auto greedy = prompt["greedy_ids"].get<std::vector<Token>>();
  const Collected collected = collect(
      *loaded.session, prompt["ids"].get<std::vector<Token>>(),
      {.max_tokens = static_cast<std::uint32_t>(greedy.size()), .sampling = {.greedy = true}, .ignore_end = true});
  EXPECT_EQ(collected.generation.tokens, greedy);
  EXPECT_EQ(collected.generation.steps + 1, greedy.size());
}

TEST(Generate, AnInterruptEndsItAfterTheStep) {
  Loaded loaded(kTrainedModel, "cpu", {.context = 128, .max_batch_tokens = 2});
  const std::vector<Token> prompt(9, 300);
  std::atomic<bool> interrupted{false};
  std::vector<std::size_t> done;
  const auto in_prompt = generate(*loaded.session, prompt, {.sampling = {.greedy = true}},
                                  {.on_prompt =
                                       [&](std::size_t tokens, std::size_t total) {
                                         EXPECT_EQ(total, 9U);
                                         done.push_back(tokens);
                                         interrupted = tokens >= 4;
                                       },
                                   .interrupted = &interrupted});
  ASSERT_TRUE(in_prompt.has_value());
  EXPECT_EQ(in_prompt->stop, StopReason::interrupted);
  EXPECT_EQ(done, (std::vector<std::size_t>{2, 4}));
  EXPECT_EQ(loaded.session->tokens(0).size(), 4U);

  interrupted = false;
  std::size_t pieces = 0;
  loaded.session->truncate(0, 0);
  const auto interrupt_third = [&](std::string_view) {
    interrupted = ++pieces == 3;
    return true;
  };
  const auto in_text = generate(*loaded.session, prompt, {.sampling = {.greedy = true}, .ignore_end = true},
                                {.on_text = interrupt_third, .interrupted = &interrupted});
  ASSERT_TRUE(in_text.has_value());
  EXPECT_EQ(in_text->stop, StopReason::interrupted);
  EXPECT_GE(in_text->tokens.size(), 3U);
  EXPECT_LT(in_text->tokens.size(), 20U);
}

// Text withheld because a stop string might still have removed it is not delivered either.
TEST(Generate, TheTextEndsWhereItsReaderWantsNoMore) {
  Loaded loaded(kTrainedModel, "cpu", {.context = 128});
  const auto prompt = prompt_ids(0);
  const GenerateOptions options{.max_tokens = 40, .sampling = {.greedy = true}, .stops = {"e\x01"}, .ignore_end = true};
  const Collected whole = collect(*loaded.session, prompt, options);
  ASSERT_GT(whole.pieces.size(), 5U);
  loaded.session->truncate(0, 0);
  std::vector<std::string> pieces;
  const auto refuse_fifth = [&](std::string_view text) {
    pieces.emplace_back(text);
    return pieces.size() < 5;
  };
  const auto ended = generate(*loaded.session, prompt, options, {.on_text = refuse_fifth});
  ASSERT_TRUE(ended.has_value()) << ended.error().message;
  EXPECT_EQ(ended->stop, StopReason::interrupted);
  ASSERT_EQ(pieces.size(), 5U);
  std::string text;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    EXPECT_EQ(pieces[i], whole.pieces[i]) << i;
    text += pieces[i];
  }
  EXPECT_EQ(ended->text, text);
}

TEST(Generate, NeedsAPromptAndSaneOptions) {
  Loaded loaded(kTrainedModel, "cpu", {.context = 64});
  const std::vector<Token> prompt = {1, 300};
  EXPECT_EQ(generate(*loaded.session, {}, {}, {}).error().code, Code::invalid);
  EXPECT_EQ(generate(*loaded.session, prompt, {.sampling = {.temperature = -1}}, {}).error().code, Code::invalid);
  EXPECT_EQ(generate(*loaded.session, prompt, {.stops = {""}}, {}).error().code, Code::invalid);
  EXPECT_TRUE(loaded.session->tokens(0).empty());
}

// Two conversations in one session, in alternating steps and with prompts in the same batch.
}  // namespace
}  // namespace shunt::models
