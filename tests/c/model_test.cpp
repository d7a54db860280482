// Language models through the C interface: the same text as through C++, and the errors for mistakes.
#include "shunt/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "c/bundled_model.h"
#include "shunt/shunt.h"

namespace {

using Runtime = std::unique_ptr<shunt_runtime, decltype(&shunt_runtime_close)>;
using Model = std::unique_ptr<shunt_model, decltype(&shunt_model_close)>;
using Session = std::unique_ptr<shunt_session, decltype(&shunt_session_close)>;

class CModel : public testing::Test {
 protected:
  CModel() : runtime_(nullptr, &shunt_runtime_close), model_(nullptr, &shunt_model_close) {
    shunt_runtime_options options{};
    options.threads = 1;
    options.devices = "cpu";
    runtime_.reset(shunt_runtime_open(&options, &error_));
    EXPECT_NE(runtime_, nullptr) << error_.message;
    model_.reset(shunt_model_open(kModel, &error_));
    EXPECT_NE(model_, nullptr) << error_.message;
  }

  Session open(std::uint32_t context, std::uint32_t sequences = 1) {
    shunt_session_options options = shunt_session_defaults();
    options.context = context;
    options.max_sequences = sequences;
    Session session(shunt_session_open(model_.get(), runtime_.get(), &options, &error_), &shunt_session_close);
    EXPECT_NE(session, nullptr) << error_.message;
    return session;
  }

  std::vector<std::int32_t> tokenize(const char* text, std::uint32_t flags) {
    std::size_t count = 0;
    EXPECT_EQ(shunt_tokenize(model_.get(), text, flags, nullptr, 0, &count, &error_), SHUNT_OK) << error_.message;
    std::vector<std::int32_t> tokens(count);
    EXPECT_EQ(shunt_tokenize(model_.get(), text, flags, tokens.data(), count, &count, &error_), SHUNT_OK);
    return tokens;
  }

  // Returns the text from the C++ interface.
  static shunt::Generation expected(std::uint32_t max_tokens) {
    const auto runtime = shunt::Runtime::create({.threads = 1, .devices = "cpu"});
    const auto model = shunt::LanguageModel::load(kModel);
    EXPECT_TRUE(runtime.has_value() && model.has_value());
    const auto session = shunt::LanguageSession::create(**model, **runtime, {.context = 128});
    EXPECT_TRUE(session.has_value());
    auto generation = (*session)->generate(kPrompt, {.max_tokens = max_tokens, .sampling = {.greedy = true}});
    EXPECT_TRUE(generation.has_value());
    return generation.value_or(shunt::Generation());
  }

  static shunt_generate_options greedy(std::uint32_t max_tokens) {
    shunt_generate_options options = shunt_generate_defaults();
    options.max_tokens = max_tokens;
    options.greedy = 1;
    return options;
  }

  void expect_error(shunt_code code, shunt_code wanted, const std::string& part) const {
    EXPECT_EQ(code, wanted) << part;
    EXPECT_EQ(error_.code, wanted) << part;
    EXPECT_NE(std::string(error_.message).find(part), std::string::npos) << error_.message;
  }

  shunt_error error_{};
  Runtime runtime_;
  Model model_;
};

std::int32_t best_of(const float* logits, std::uint32_t count) {
  return static_cast<std::int32_t>(std::max_element(logits, logits + count) - logits);
}

struct Reader {
  std::string text;
  std::size_t pieces = 0;
  std::size_t wanted = 0;

  static int on_text(void* user, const char* text, std::size_t bytes) {
    auto* reader = static_cast<Reader*>(user);
    EXPECT_EQ(std::string(text).size(), bytes);
    reader->text.append(text, bytes);
    return ++reader->pieces == reader->wanted ? 1 : 0;
  }
};

TEST_F(CModel, KnowsItsFile) {
  shunt_model_info info;
  ASSERT_EQ(shunt_model_describe(model_.get(), &info, &error_), SHUNT_OK) << error_.message;
  EXPECT_STREQ(info.name, "tiny-llama");
  EXPECT_STREQ(info.architecture, "llama");
  EXPECT_STREQ(info.chat_format, "chatml");
  EXPECT_EQ(info.why_no_chat, nullptr);
  EXPECT_EQ(info.bos, 1);
  EXPECT_EQ(info.adds_bos, 1);
  EXPECT_GT(info.context_length, 0U);
  EXPECT_GT(info.weight_bytes, 0U);
  EXPECT_EQ(shunt_is_end_token(model_.get(), 2), 1);
  EXPECT_EQ(shunt_is_end_token(model_.get(), 300), 0);
}

TEST_F(CModel, GeneratesTheTextOfTheInterfaceForCxx) {
  constexpr std::uint32_t kTokens = 24;
  const shunt::Generation wanted = expected(kTokens);
  ASSERT_EQ(wanted.tokens.size(), kTokens);
  const Session session = open(128);
  const shunt_generate_options options = greedy(kTokens);
  Reader reader;
  shunt_generation generation;
  ASSERT_EQ(shunt_generate(session.get(), kPrompt, &options, &Reader::on_text, &reader, &generation, &error_), SHUNT_OK)
      << error_.message;
  EXPECT_EQ(reader.text, wanted.text);
  EXPECT_EQ(std::string(generation.text, generation.text_bytes), wanted.text);
  EXPECT_EQ(std::vector(generation.tokens, generation.tokens + generation.token_count), wanted.tokens);
  EXPECT_EQ(generation.stop, SHUNT_STOP_LENGTH);
  EXPECT_STREQ(shunt_stop_name(generation.stop), "length");
  EXPECT_EQ(generation.prompt_tokens, wanted.prompt_tokens);
  EXPECT_EQ(generation.steps, wanted.steps);

  const std::vector<std::int32_t> prompt = tokenize(kPrompt, SHUNT_ADD_BOS);
  ASSERT_EQ(shunt_session_truncate(session.get(), 0, 0, &error_), SHUNT_OK);
  ASSERT_EQ(shunt_generate_from(session.get(), prompt.data(), prompt.size(), &options, nullptr, nullptr, &generation,
                                &error_),
            SHUNT_OK)
      << error_.message;
  EXPECT_EQ(generation.text, wanted.text);
  std::size_t held = 0;
  const std::int32_t* tokens = shunt_session_tokens(session.get(), 0, &held);
  ASSERT_EQ(held, prompt.size() + kTokens);
  EXPECT_EQ(tokens[held - 1], wanted.tokens.back());
}

TEST_F(CModel, ACallbackEndsTheText) {
  const Session session = open(128);
  const shunt_generate_options options = greedy(24);
  Reader reader{.text = {}, .pieces = 0, .wanted = 3};
  shunt_generation generation;
  ASSERT_EQ(shunt_generate(session.get(), kPrompt, &options, &Reader::on_text, &reader, &generation, &error_), SHUNT_OK)
      << error_.message;
  EXPECT_EQ(generation.stop, SHUNT_STOP_INTERRUPTED);
  EXPECT_EQ(reader.pieces, 3U);
  EXPECT_EQ(generation.text, reader.text);
}

TEST_F(CModel, AStopTextEndsTheText) {
  const std::string whole = expected(24).text;
  const std::string stop = whole.substr(whole.size() / 2, 4);
  const Session session = open(128);
  shunt_generate_options options = greedy(24);
  const char* const stops[] = {stop.c_str()};
  options.stops = stops;
  options.stop_count = 1;
  shunt_generation generation;
  ASSERT_EQ(shunt_generate(session.get(), kPrompt, &options, nullptr, nullptr, &generation, &error_), SHUNT_OK)
      << error_.message;
  EXPECT_EQ(generation.stop, SHUNT_STOP_STRING);
  EXPECT_EQ(generation.text, whole.substr(0, whole.find(stop)));
}

TEST_F(CModel, SequencesDoNotKnowEachOther) {
  constexpr std::size_t kTokens = 8;
  shunt_model_info info;
  ASSERT_EQ(shunt_model_describe(model_.get(), &info, &error_), SHUNT_OK);
  const std::vector<std::vector<std::int32_t>> prompts = {tokenize(kPrompt, SHUNT_ADD_BOS),
                                                          tokenize("The", SHUNT_ADD_BOS)};
  std::vector<std::vector<std::int32_t>> alone;
  for (const auto& prompt : prompts) {
    const Session session = open(128);
    const shunt_generate_options options = greedy(kTokens);
    shunt_generation generation;
    ASSERT_EQ(shunt_generate_from(session.get(), prompt.data(), prompt.size(), &options, nullptr, nullptr, &generation,
                                  &error_),
              SHUNT_OK);
    alone.emplace_back(generation.tokens, generation.tokens + generation.token_count);
  }
  const Session session = open(128, 2);
  std::vector<std::vector<std::int32_t>> together(2);
  for (std::uint32_t sequence = 0; sequence < 2; ++sequence) {
    const auto& prompt = prompts[sequence];
    ASSERT_EQ(shunt_session_prefill(session.get(), sequence, prompt.data(), prompt.size(), &error_), SHUNT_OK)
        << error_.message;
    together[sequence].push_back(best_of(shunt_session_logits(session.get(), 0), info.vocabulary));
  }
  while (together[0].size() < kTokens) {
    const shunt_batch_token batch[] = {{.sequence = 1, .token = together[1].back(), .wants_logits = 1},
                                       {.sequence = 0, .token = together[0].back(), .wants_logits = 1}};
    ASSERT_EQ(shunt_session_decode(session.get(), batch, 2, &error_), SHUNT_OK) << error_.message;
    together[1].push_back(best_of(shunt_session_logits(session.get(), 0), info.vocabulary));
    together[0].push_back(best_of(shunt_session_logits(session.get(), 1), info.vocabulary));
  }
  EXPECT_EQ(together, alone);
  EXPECT_EQ(shunt_session_logits(session.get(), 2), nullptr);
}

TEST_F(CModel, TextAndConversationsBecomeTokensAndComeBack) {
  const std::vector<std::int32_t> tokens = tokenize("<|im_end|> h\xC3\xA9", SHUNT_PARSE_SPECIAL);
  char text[64] = "";
  std::size_t bytes = 0;
  ASSERT_EQ(shunt_detokenize(model_.get(), tokens.data(), tokens.size(), SHUNT_SHOW_CONTROL, text, sizeof text, &bytes,
                             &error_),
            SHUNT_OK);
  EXPECT_STREQ(text, "<|im_end|> h\xC3\xA9");
  EXPECT_EQ(bytes, 14U);
  ASSERT_EQ(shunt_detokenize(model_.get(), tokens.data(), tokens.size(), SHUNT_SHOW_CONTROL, text, 3, &bytes, &error_),
            SHUNT_OK);
  EXPECT_STREQ(text, "<|im_end|> h\xC3\xA9");  // overwrites three bytes, with no room for the 0
  EXPECT_EQ(bytes, 14U);

  const shunt_message messages[] = {{"system", "be"}, {"user", "<|im_end|>"}};
  std::int32_t laid_out[64];
  std::size_t count = 0;
  ASSERT_EQ(shunt_apply_chat_template(model_.get(), messages, 2, nullptr, laid_out, 64, &count, &error_), SHUNT_OK)
      << error_.message;
  ASSERT_LE(count, 64U);
  char rendered[256];
  ASSERT_EQ(
      shunt_detokenize(model_.get(), laid_out, count, SHUNT_SHOW_CONTROL, rendered, sizeof rendered, &bytes, &error_),
      SHUNT_OK);
  EXPECT_STREQ(rendered,
               "<|im_start|>system\nbe<|im_end|>\n<|im_start|>user\n<|im_end|><|im_end|>\n<|im_start|>assistant\n");
  const shunt_chat_options next{.format = "chatml", .so_far = laid_out, .so_far_count = count, .no_reply_opening = 1};
  ASSERT_EQ(shunt_apply_chat_template(model_.get(), messages, 1, &next, laid_out, 0, &count, &error_), SHUNT_OK)
      << error_.message;
  EXPECT_GT(count, 4U);
}

TEST_F(CModel, MistakesAreNamed) {
  EXPECT_EQ(shunt_model_open("/no/such.gguf", &error_), nullptr);
  expect_error(error_.code, SHUNT_IO, "/no/such.gguf");
  std::size_t count = 0;
  expect_error(shunt_tokenize(model_.get(), "a\xFF", 0, nullptr, 0, &count, &error_), SHUNT_INVALID,
               "0xFF at offset 1");
  const std::int32_t no_token = 1 << 20;
  expect_error(shunt_detokenize(model_.get(), &no_token, 1, 0, nullptr, 0, &count, &error_), SHUNT_INVALID,
               "token 1048576 at 0");
  const shunt_message message{"narrator", "x"};
  expect_error(shunt_apply_chat_template(model_.get(), &message, 1, nullptr, nullptr, 0, &count, &error_),
               SHUNT_INVALID, "\"narrator\"");
  const shunt_chat_options no_format{.format = "smoke", .so_far = nullptr, .so_far_count = 0, .no_reply_opening = 0};
  expect_error(shunt_apply_chat_template(model_.get(), &message, 1, &no_format, nullptr, 0, &count, &error_),
               SHUNT_UNSUPPORTED, "\"smoke\"");
  shunt_session_options options = shunt_session_defaults();
  options.strategy = "luck";
  EXPECT_EQ(shunt_session_open(model_.get(), runtime_.get(), &options, &error_), nullptr);
  expect_error(error_.code, SHUNT_INVALID, "\"luck\"");
  options.strategy = "layers";
  options.margin = 0.2;
  options.profile = 1;
  EXPECT_NE(Session(shunt_session_open(model_.get(), runtime_.get(), &options, &error_), &shunt_session_close),
            nullptr);
  options.cache_dtype = SHUNT_DTYPE_Q8_0;
  EXPECT_NE(Session(shunt_session_open(model_.get(), runtime_.get(), &options, &error_), &shunt_session_close),
            nullptr);
  options.cache_dtype = SHUNT_DTYPE_Q4_0;
  EXPECT_EQ(shunt_session_open(model_.get(), runtime_.get(), &options, &error_), nullptr);
  expect_error(error_.code, SHUNT_INVALID, "the KV cache cannot be Q4_0; choose one of F32, F16, BF16, Q8_0");

  const Session session = open(16);
  EXPECT_EQ(shunt_session_context(session.get()), 16U);
  const std::int32_t bad = -1;
  expect_error(shunt_session_prefill(session.get(), 0, &bad, 1, &error_), SHUNT_INVALID, "token -1");
  expect_error(shunt_session_truncate(session.get(), 1, 0, &error_), SHUNT_INVALID,
               "sequence 1 is out of range; the session has 1");
  const std::vector<std::int32_t> many(17, 300);
  expect_error(shunt_session_prefill(session.get(), 0, many.data(), many.size(), &error_), SHUNT_INVALID,
               "17 tokens do not fit: the context holds 16");
  ASSERT_EQ(shunt_session_prefill(session.get(), 0, many.data(), 16, &error_), SHUNT_OK) << error_.message;
  const shunt_batch_token one_more{.sequence = 0, .token = 300, .wants_logits = 0};
  expect_error(shunt_session_decode(session.get(), &one_more, 1, &error_), SHUNT_INVALID,
               "the context of 16 tokens is full");
  shunt_generate_options sampling = shunt_generate_defaults();
  sampling.top_p = 2;
  expect_error(shunt_generate(session.get(), "a", &sampling, nullptr, nullptr, nullptr, &error_), SHUNT_INVALID,
               "top_p is 2");
}

TEST_F(CModel, NullsAreRefused) {
  EXPECT_EQ(shunt_model_open(nullptr, &error_), nullptr);
  EXPECT_STREQ(error_.message, "the path is NULL");
  expect_error(shunt_model_describe(model_.get(), nullptr, &error_), SHUNT_INVALID,
               "where the description goes is NULL");
  expect_error(shunt_tokenize(model_.get(), "a", 0, nullptr, 0, nullptr, &error_), SHUNT_INVALID,
               "where the count goes is NULL");
  std::size_t count = 0;
  expect_error(shunt_tokenize(model_.get(), nullptr, 0, nullptr, 0, &count, &error_), SHUNT_INVALID,
               "the text is NULL");
  expect_error(shunt_tokenize(model_.get(), "a", 0, nullptr, 1, &count, &error_), SHUNT_INVALID,
               "where the result goes is NULL");
  expect_error(shunt_detokenize(nullptr, nullptr, 0, 0, nullptr, 0, &count, &error_), SHUNT_INVALID,
               "the model is NULL");
  expect_error(shunt_apply_chat_template(model_.get(), nullptr, 1, nullptr, nullptr, 0, &count, &error_), SHUNT_INVALID,
               "the list of messages is NULL");
  EXPECT_EQ(shunt_session_open(model_.get(), nullptr, nullptr, &error_), nullptr);
  EXPECT_STREQ(error_.message, "the runtime is NULL");
  expect_error(shunt_generate(nullptr, "a", nullptr, nullptr, nullptr, nullptr, &error_), SHUNT_INVALID,
               "the session is NULL");
  expect_error(shunt_session_decode(nullptr, nullptr, 0, &error_), SHUNT_INVALID, "the session is NULL");
  expect_error(shunt_session_prefill(nullptr, 0, nullptr, 0, &error_), SHUNT_INVALID, "the session is NULL");
  EXPECT_EQ(shunt_session_context(nullptr), 0U);
  EXPECT_EQ(shunt_session_tokens(nullptr, 0, &count), nullptr);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(shunt_session_logits(nullptr, 0), nullptr);
  EXPECT_EQ(shunt_is_end_token(nullptr, 2), 0);
  shunt_model_close(nullptr);
  shunt_session_close(nullptr);
}

TEST_F(CModel, DefaultsAreThoseOfTheInterfaceForCxx) {
  const shunt_session_options session = shunt_session_defaults();
  EXPECT_EQ(session.max_sequences, 1U);
  EXPECT_EQ(session.cache_dtype, SHUNT_DTYPE_F16);
  EXPECT_EQ(session.strategy, nullptr);
  EXPECT_LT(session.margin, 0);
  const shunt_generate_options options = shunt_generate_defaults();
  const shunt::SamplingOptions sampling;
  EXPECT_EQ(options.temperature, sampling.temperature);
  EXPECT_EQ(options.top_k, sampling.top_k);
  EXPECT_EQ(options.top_p, sampling.top_p);
  EXPECT_EQ(options.min_p, sampling.min_p);
  EXPECT_EQ(options.repeat_penalty, sampling.repeat_penalty);
  EXPECT_EQ(options.repeat_last_n, sampling.repeat_last_n);
}

}  // namespace
