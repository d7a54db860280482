#include "shunt/model.h"

#include <fmt/format.h>

#include "models/generate.h"
#include "models/session.h"

namespace shunt {

LanguageModel::LanguageModel(std::shared_ptr<models::Model> model) : model_(std::move(model)) {}
LanguageModel::~LanguageModel() = default;

Result<std::unique_ptr<LanguageModel>> LanguageModel::load(const std::string& path, const LoadOptions& options) {
  SHUNT_TRY_ASSIGN(std::unique_ptr<models::Model> model, models::Model::load(path));
  if (options.read_ahead) {
    bool goes_on = !options.watch.is_interrupted();
    if (goes_on)
      SHUNT_TRY(model->warm([&](std::uint64_t done, std::uint64_t total) {
        options.watch.report(ProgressKind::reading_model, done, total);
        return goes_on = !options.watch.is_interrupted();
      }));
    if (!goes_on) return fail(Code::interrupted, fmt::format("reading {} was interrupted", path));
  }
  return std::unique_ptr<LanguageModel>(new LanguageModel(std::move(model)));
}

Result<std::unique_ptr<LanguageModel>> LanguageModel::from_memory(std::span<const std::byte> bytes) {
  SHUNT_TRY_ASSIGN(std::unique_ptr<models::Model> model, models::Model::from_memory(bytes));
  return std::unique_ptr<LanguageModel>(new LanguageModel(std::move(model)));
}

std::string_view LanguageModel::name() const { return model_->metadata().string_or("general.name", "").value_or(""); }
std::string_view LanguageModel::architecture() const { return model_->config().architecture; }
std::uint32_t LanguageModel::context_length() const { return model_->config().context_length; }
std::uint32_t LanguageModel::vocabulary() const { return model_->config().vocabulary; }
std::uint64_t LanguageModel::weight_bytes() const { return model_->weight_bytes(); }

Result<std::vector<Token>> LanguageModel::encode(std::string_view text, const EncodeOptions& options) const {
  return model_->tokenizer().encode(text, options);
}
Result<std::string> LanguageModel::decode(std::span<const Token> tokens, const DecodeOptions& options) const {
  return model_->tokenizer().decode(tokens, options);
}
std::optional<Token> LanguageModel::bos() const { return model_->tokenizer().bos(); }
bool LanguageModel::adds_bos() const { return model_->tokenizer().adds_bos(); }
bool LanguageModel::is_end(Token token) const { return model_->tokenizer().is_end(token); }

Result<std::string_view> LanguageModel::chat_format() const {
  if (!model_->chat()) return std::unexpected(model_->chat().error());
  return model_->chat()->name();
}
std::vector<std::string_view> LanguageModel::chat_formats() { return models::ChatTemplate::names(); }

Result<std::vector<Token>> LanguageModel::apply_chat_template(std::span<const Message> messages,
                                                              const ChatOptions& options) const {
  const models::Tokenizer& tokenizer = model_->tokenizer();
  auto chat = options.format.empty() ? model_->chat() : models::ChatTemplate::named(options.format, tokenizer);
  if (!chat) return std::unexpected(std::move(chat).error());
  return chat->encode_next(options.so_far, messages, tokenizer, options.add_reply_opening);
}

LanguageSession::LanguageSession(std::shared_ptr<const models::Model> model, std::unique_ptr<const Runtime> runtime)
    : model_(std::move(model)), runtime_(std::move(runtime)) {}
LanguageSession::~LanguageSession() = default;

Result<std::unique_ptr<LanguageSession>> LanguageSession::create(const LanguageModel& model, const Runtime& runtime,
                                                                 const SessionOptions& options) {
  std::unique_ptr<LanguageSession> session(new LanguageSession(model.model_, runtime.share()));
  SHUNT_TRY_ASSIGN(session->session_, models::Session::create(*session->model_, *session->runtime_, options));
  return session;
}

Result<Generation> LanguageSession::generate(std::string_view prompt, const GenerateOptions& options,
                                             const GenerateCallbacks& callbacks) {
  const models::Tokenizer& tokenizer = session_->model().tokenizer();
  const bool begins = tokens(options.sequence).empty();
  const models::Segment segment{.text = prompt, .markup = models::Markup::all};
  SHUNT_TRY_ASSIGN(const std::vector<Token> encoded,
                   tokenizer.encode_segments(std::span(&segment, 1),
                                             {.add_bos = begins && tokenizer.adds_bos(), .add_prefix = begins}));
  return generate(encoded, options, callbacks);
}

Result<Generation> LanguageSession::generate(std::span<const Token> prompt, const GenerateOptions& options,
                                             const GenerateCallbacks& callbacks) {
  SHUNT_TRY_ASSIGN(Generation generation, models::generate(*session_, prompt, options, callbacks));
  // The last token was sampled but not computed yet.
  const bool fits = tokens(options.sequence).size() < context();
  if (generation.steps < generation.tokens.size() && fits)
    SHUNT_TRY(session_->prefill_despite_interruption(options.sequence, generation.tokens.back()));
  return generation;
}

Status LanguageSession::decode(std::span<const BatchToken> batch) { return session_->decode(batch); }

Status LanguageSession::prefill(std::uint32_t sequence, std::span<const Token> tokens) {
  return session_->prefill(sequence, tokens);
}

std::span<const float> LanguageSession::logits(std::size_t index) const { return session_->logits(index); }

Status LanguageSession::truncate(std::uint32_t sequence, std::size_t length) {
  if (sequence >= session_->options().max_sequences)
    return fail(Code::invalid, fmt::format("sequence {} is out of range; the session has {}", sequence,
                                           session_->options().max_sequences));
  session_->truncate(sequence, length);
  return {};
}

std::span<const Token> LanguageSession::tokens(std::uint32_t sequence) const {
  return sequence < session_->options().max_sequences ? session_->tokens(sequence) : std::span<const Token>();
}

std::uint32_t LanguageSession::context() const { return session_->context(); }

}  // namespace shunt
