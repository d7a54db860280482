// The functions of shunt/shunt.h for language models over shunt/model.h.
#include "shunt/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "report.h"
#include "watch.h"

// NOLINTBEGIN(readability-identifier-naming): names of shunt.h
struct shunt_model {
  std::unique_ptr<shunt::LanguageModel> model;
  std::string name;
  std::string architecture;
  std::string chat_format;
  std::string why_no_chat;
};

struct shunt_session {
  std::unique_ptr<shunt::LanguageSession> session;
  shunt::Generation generation;
  bool is_broken = false;  // by a call that ran out of memory
};
// NOLINTEND(readability-identifier-naming)

namespace {

using shunt::Code;
using shunt::Result;
using shunt::Status;
using shunt::StopReason;
using shunt::Token;
using shunt::c::array_of;
using shunt::c::need;
using shunt::c::refuse;
using shunt::c::report;

static_assert(SHUNT_STOP_END_TOKEN == static_cast<int>(StopReason::end_token));
static_assert(SHUNT_STOP_STRING == static_cast<int>(StopReason::stop_string));
static_assert(SHUNT_STOP_LENGTH == static_cast<int>(StopReason::length));
static_assert(SHUNT_STOP_CONTEXT_FULL == static_cast<int>(StopReason::context_full));
static_assert(SHUNT_STOP_INTERRUPTED == static_cast<int>(StopReason::interrupted));

// Errors: invalid for null; out_of_memory if an earlier call left the session half changed.
Status need(const shunt_session* session, std::string_view what) {
  SHUNT_TRY(need(static_cast<const void*>(session), what));
  if (!session->is_broken) return {};
  return shunt::fail(Code::out_of_memory, fmt::format("{} ran out of memory in an earlier call; close it", what));
}

// Writes what fits, and the total count.
template <class T, class Values>
Status give(const Values& values, T* to, std::size_t capacity, std::size_t* count) {
  SHUNT_TRY(need(count, "where the count goes"));
  if (capacity != 0) SHUNT_TRY(need(to, "where the result goes"));
  std::copy_n(values.begin(), std::min(capacity, values.size()), to);
  *count = values.size();
  return {};
}

Status tokenize(const shunt_model* model, const char* text, std::uint32_t flags, std::int32_t* tokens,
                std::size_t capacity, std::size_t* count) {
  SHUNT_TRY(need(model, "the model"));
  SHUNT_TRY(need(text, "the text"));
  SHUNT_TRY_ASSIGN(const std::vector<Token> encoded,
                   model->model->encode(text, {.add_bos = (flags & SHUNT_ADD_BOS) != 0,
                                               .add_eos = (flags & SHUNT_ADD_EOS) != 0,
                                               .parse_special = (flags & SHUNT_PARSE_SPECIAL) != 0}));
  return give(encoded, tokens, capacity, count);
}

Status detokenize(const shunt_model* model, const std::int32_t* tokens, std::size_t token_count, std::uint32_t flags,
                  char* text, std::size_t capacity, std::size_t* count) {
  SHUNT_TRY(need(model, "the model"));
  SHUNT_TRY_ASSIGN(const std::span<const Token> its_tokens, array_of(tokens, token_count, "the list of tokens"));
  SHUNT_TRY_ASSIGN(const std::string decoded,
                   model->model->decode(its_tokens, {.control = (flags & SHUNT_SHOW_CONTROL) != 0,
                                                     .drop_prefix = (flags & SHUNT_KEEP_PREFIX) == 0}));
  SHUNT_TRY(give(decoded, text, capacity, count));
  if (decoded.size() < capacity) text[decoded.size()] = '\0';
  return {};
}

Status chat(const shunt_model* model, const shunt_message* messages, std::size_t message_count,
            const shunt_chat_options* options, std::int32_t* tokens, std::size_t capacity, std::size_t* count) {
  SHUNT_TRY(need(model, "the model"));
  SHUNT_TRY_ASSIGN(const std::span<const shunt_message> given,
                   array_of(messages, message_count, "the list of messages"));
  std::vector<shunt::Message> said;
  for (const shunt_message& message : given) {
    SHUNT_TRY(need(message.role, "the role of a message"));
    SHUNT_TRY(need(message.content, "the content of a message"));
    said.push_back({.role = message.role, .content = message.content});
  }
  shunt::ChatOptions chosen;
  if (options != nullptr) {
    if (options->format != nullptr) chosen.format = options->format;
    SHUNT_TRY_ASSIGN(chosen.so_far, array_of(options->so_far, options->so_far_count, "the conversation so far"));
    chosen.add_reply_opening = options->no_reply_opening == 0;
  }
  SHUNT_TRY_ASSIGN(const std::vector<Token> encoded, model->model->apply_chat_template(said, chosen));
  return give(encoded, tokens, capacity, count);
}

Result<shunt::SessionOptions> options_of(const shunt_session_options& from) {
  shunt::SessionOptions options{.context = from.context,
                                .max_sequences = from.max_sequences,
                                .max_batch_tokens = from.max_batch_tokens,
                                .profile = from.profile != 0};
  if (from.margin >= 0) options.margin = from.margin;
  SHUNT_TRY_ASSIGN(options.cache_dtype, shunt::c::dtype_of(from.cache_dtype));
  if (from.strategy != nullptr) {
    SHUNT_TRY_ASSIGN(options.strategy, shunt::strategy_from_name(from.strategy));
  }
  if (from.numerics != nullptr) {
    SHUNT_TRY_ASSIGN(options.numerics, shunt::numerics_from_name(from.numerics));
  }
  return options;
}

Result<std::unique_ptr<shunt_session>> open(const shunt_model* model, const shunt_runtime* runtime,
                                            const shunt_session_options* options) {
  SHUNT_TRY(need(model, "the model"));
  SHUNT_TRY(need(runtime, "the runtime"));
  shunt::SessionOptions chosen;
  if (options != nullptr) {
    SHUNT_TRY_ASSIGN(chosen, options_of(*options));
  }
  auto session = std::make_unique<shunt_session>();
  SHUNT_TRY_ASSIGN(session->session, shunt::LanguageSession::create(*model->model, *runtime->runtime, chosen));
  return session;
}

Status decode(shunt_session* session, const shunt_batch_token* batch, std::size_t count) {
  SHUNT_TRY(need(session, "the session"));
  SHUNT_TRY_ASSIGN(const std::span<const shunt_batch_token> entries, array_of(batch, count, "the batch"));
  std::vector<shunt::BatchToken> tokens;
  for (const shunt_batch_token& entry : entries)
    tokens.push_back({.sequence = entry.sequence, .token = entry.token, .wants_logits = entry.wants_logits != 0});
  return session->session->decode(tokens);
}

Status append(shunt_session* session, std::uint32_t sequence, const std::int32_t* tokens, std::size_t count) {
  SHUNT_TRY(need(session, "the session"));
  SHUNT_TRY_ASSIGN(const std::span<const Token> its_tokens, array_of(tokens, count, "the list of tokens"));
  return session->session->prefill(sequence, its_tokens);
}

Result<shunt::GenerateOptions> options_of(const shunt_generate_options& from) {
  shunt::GenerateOptions options{.max_tokens = from.max_tokens,
                                 .sampling = {.temperature = from.temperature,
                                              .top_k = from.top_k,
                                              .top_p = from.top_p,
                                              .min_p = from.min_p,
                                              .repeat_penalty = from.repeat_penalty,
                                              .repeat_last_n = from.repeat_last_n,
                                              .seed = from.seed,
                                              .greedy = from.greedy != 0},
                                 .stops = {},
                                 .ignore_end = from.ignore_end != 0,
                                 .sequence = from.sequence};
  SHUNT_TRY_ASSIGN(const std::span<const char* const> stops,
                   array_of(from.stops, from.stop_count, "the list of stop texts"));
  for (const char* stop : stops) {
    SHUNT_TRY(need(stop, "a stop text"));
    options.stops.emplace_back(stop);
  }
  return options;
}

shunt_generation summary_of(const shunt::Generation& generation) {
  return {.text = generation.text.c_str(),
          .text_bytes = generation.text.size(),
          .tokens = generation.tokens.data(),
          .token_count = generation.tokens.size(),
          .stop = static_cast<shunt_stop>(generation.stop),
          .prompt_tokens = generation.prompt_tokens,
          .steps = generation.steps,
          .prompt_s = generation.prompt_s,
          .generate_s = generation.generate_s};
}

// Errors: invalid if it is null.
Result<std::string_view> text_of(const char* text) {
  SHUNT_TRY(need(text, "the prompt"));
  return text;
}

// `prompt`: text or tokens.
template <class Prompt>
Status generate(shunt_session* session, const Result<Prompt>& prompt, const shunt_generate_options* options,
                shunt_on_text on_text, void* user, shunt_generation* generation) {
  SHUNT_TRY(need(session, "the session"));
  if (!prompt) return std::unexpected(prompt.error());
  shunt::GenerateOptions chosen;
  if (options != nullptr) {
    SHUNT_TRY_ASSIGN(chosen, options_of(*options));
  }
  shunt::GenerateCallbacks callbacks;
  if (on_text != nullptr)
    callbacks.on_text = [=](std::string_view text) {
      return on_text(user, std::string(text).c_str(), text.size()) == 0;
    };
  SHUNT_TRY_ASSIGN(session->generation, session->session->generate(*prompt, chosen, callbacks));
  if (generation != nullptr) *generation = summary_of(session->generation);
  return {};
}

}  // namespace

shunt_model* shunt_model_open(const char* path, shunt_error* error) {
  return shunt_model_open_with(path, nullptr, error);
}

shunt_model* shunt_model_open_with(const char* path, const shunt_load_options* options, shunt_error* error) try {
  if (const Status there = need(path, "the path"); !there) return refuse(there, error);
  shunt::LoadOptions chosen;
  if (options != nullptr)
    chosen = {.read_ahead = options->read_ahead != 0,
              .watch = shunt::c::watch_of(options->on_progress, options->user, options->interrupt)};
  auto loaded = shunt::LanguageModel::load(path, chosen);
  if (!loaded) return refuse(loaded, error);
  auto model = std::make_unique<shunt_model>();
  model->model = std::move(*loaded);
  model->name = model->model->name();
  model->architecture = model->model->architecture();
  const Result<std::string_view> format = model->model->chat_format();
  if (format)
    model->chat_format = *format;
  else
    model->why_no_chat = format.error().message;
  static_cast<void>(report({}, error));
  return model.release();
}
SHUNT_C_END(error)

void shunt_model_close(shunt_model* model) { const std::unique_ptr<shunt_model> ended(model); }

shunt_code shunt_model_describe(const shunt_model* model, shunt_model_info* info, shunt_error* error) try {
  Status status = need(model, "the model");
  if (status) status = need(info, "where the description goes");
  if (!status) return report(status, error);
  const auto if_any = [](const std::string& text) { return text.empty() ? nullptr : text.c_str(); };
  *info = {.name = model->name.c_str(),
           .architecture = model->architecture.c_str(),
           .chat_format = if_any(model->chat_format),
           .why_no_chat = if_any(model->why_no_chat),
           .context_length = model->model->context_length(),
           .vocabulary = model->model->vocabulary(),
           .weight_bytes = model->model->weight_bytes(),
           .bos = model->model->bos().value_or(-1),
           .adds_bos = model->model->adds_bos() ? 1 : 0};
  return report({}, error);
}
SHUNT_C_END(error)

int shunt_is_end_token(const shunt_model* model, int32_t token) {
  return model != nullptr && model->model->is_end(token) ? 1 : 0;
}

shunt_code shunt_tokenize(const shunt_model* model, const char* text, uint32_t flags, int32_t* tokens, size_t capacity,
                          size_t* count, shunt_error* error) try {
  return report(tokenize(model, text, flags, tokens, capacity, count), error);
}
SHUNT_C_END(error)

shunt_code shunt_detokenize(const shunt_model* model, const int32_t* tokens, size_t token_count, uint32_t flags,
                            char* text, size_t capacity, size_t* count, shunt_error* error) try {
  return report(detokenize(model, tokens, token_count, flags, text, capacity, count), error);
}
SHUNT_C_END(error)

shunt_code shunt_apply_chat_template(const shunt_model* model, const shunt_message* messages, size_t message_count,
                                     const shunt_chat_options* options, int32_t* tokens, size_t capacity, size_t* count,
                                     shunt_error* error) try {
  return report(chat(model, messages, message_count, options, tokens, capacity, count), error);
}
SHUNT_C_END(error)

shunt_session_options shunt_session_defaults(void) {
  const shunt::SessionOptions defaults;
  return {.context = defaults.context,
          .max_sequences = defaults.max_sequences,
          .max_batch_tokens = defaults.max_batch_tokens,
          .cache_dtype = static_cast<shunt_dtype>(defaults.cache_dtype),
          .strategy = nullptr,
          .numerics = nullptr,
          .margin = -1,
          .profile = 0};
}

shunt_session* shunt_session_open(const shunt_model* model, const shunt_runtime* runtime,
                                  const shunt_session_options* options, shunt_error* error) try {
  auto session = open(model, runtime, options);
  if (!session) return refuse(session, error);
  static_cast<void>(report({}, error));
  return session->release();
}
SHUNT_C_END(error)

void shunt_session_close(shunt_session* session) { const std::unique_ptr<shunt_session> ended(session); }

uint32_t shunt_session_context(const shunt_session* session) {
  return session == nullptr ? 0 : session->session->context();
}

const int32_t* shunt_session_tokens(const shunt_session* session, uint32_t sequence, size_t* count) {
  const std::span<const Token> tokens =
      session == nullptr ? std::span<const Token>() : session->session->tokens(sequence);
  if (count != nullptr) *count = tokens.size();
  return tokens.data();
}

shunt_code shunt_session_decode(shunt_session* session, const shunt_batch_token* batch, size_t count,
                                shunt_error* error) try {
  return report(decode(session, batch, count), error);
}
SHUNT_C_END_OF(session, error)

shunt_code shunt_session_prefill(shunt_session* session, uint32_t sequence, const int32_t* tokens, size_t count,
                                 shunt_error* error) try {
  return report(append(session, sequence, tokens, count), error);
}
SHUNT_C_END_OF(session, error)

const float* shunt_session_logits(const shunt_session* session, size_t index) {
  return session == nullptr ? nullptr : session->session->logits(index).data();
}

shunt_code shunt_session_truncate(shunt_session* session, uint32_t sequence, size_t length, shunt_error* error) try {
  Status status = need(session, "the session");
  if (status) status = session->session->truncate(sequence, length);
  return report(status, error);
}
SHUNT_C_END_OF(session, error)

shunt_generate_options shunt_generate_defaults(void) {
  const shunt::GenerateOptions defaults;
  const shunt::SamplingOptions& sampling = defaults.sampling;
  return {.max_tokens = defaults.max_tokens,
          .stops = nullptr,
          .stop_count = 0,
          .ignore_end = defaults.ignore_end ? 1 : 0,
          .sequence = defaults.sequence,
          .greedy = sampling.greedy ? 1 : 0,
          .temperature = sampling.temperature,
          .top_k = sampling.top_k,
          .top_p = sampling.top_p,
          .min_p = sampling.min_p,
          .repeat_penalty = sampling.repeat_penalty,
          .repeat_last_n = sampling.repeat_last_n,
          .seed = sampling.seed};
}

const char* shunt_stop_name(shunt_stop stop) {
  if (static_cast<unsigned>(stop) > SHUNT_STOP_INTERRUPTED) return "unknown";
  return shunt::name_of(static_cast<StopReason>(stop)).data();  // a literal, so it is zero-terminated
}

shunt_code shunt_generate(shunt_session* session, const char* prompt, const shunt_generate_options* options,
                          shunt_on_text on_text, void* user, shunt_generation* generation, shunt_error* error) try {
  return report(generate(session, text_of(prompt), options, on_text, user, generation), error);
}
SHUNT_C_END_OF(session, error)

shunt_code shunt_generate_from(shunt_session* session, const int32_t* prompt, size_t count,
                               const shunt_generate_options* options, shunt_on_text on_text, void* user,
                               shunt_generation* generation, shunt_error* error) try {
  return report(generate(session, array_of(prompt, count, "the prompt"), options, on_text, user, generation), error);
}
SHUNT_C_END_OF(session, error)
