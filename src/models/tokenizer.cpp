#include "models/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "models/bpe.h"

namespace shunt::models {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;

// Special tokens that end a text or a turn, by the names that models in use give them.
constexpr std::string_view kEndNames[] = {
    "</s>",       "<eos>",   "<EOT>",   "<|im_end|>", "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>",
    "<|eom_id|>", "<|eot|>", "<|eom|>", "<|end|>",    "<|return|>",    "<end_of_turn>",   "<|end_of_turn|>",
};

// Text runs gather until a special token or the end, then merge as one.
class Encoder {
 public:
  explicit Encoder(const Vocabulary& vocabulary) : vocabulary_(vocabulary), merger_(vocabulary) {}

  void add_token(Token token) {
    merger_.append_tokens(run_, tokens_);
    run_.clear();
    tokens_.push_back(token);
  }

  void add_text(std::string_view text, Markup markup) {
    std::size_t begin = 0;
    for (std::size_t at = 0; at < text.size() && markup != Markup::none;) {
      const auto token = vocabulary_.may_begin_special(text[at])
                             ? vocabulary_.match_special(text.substr(at), markup == Markup::all)
                             : std::nullopt;
      if (!token) {
        ++at;
        continue;
      }
      run_ += text.substr(begin, at - begin);
      add_token(*token);
      at += vocabulary_.bytes(*token).size();
      begin = at;
    }
    run_ += text.substr(begin);
  }

  std::vector<Token> finish() && {
    merger_.append_tokens(run_, tokens_);
    return std::move(tokens_);
  }

 private:
  const Vocabulary& vocabulary_;
  BpeMerger merger_;
  std::string run_;
  std::vector<Token> tokens_;
};

}  // namespace

Result<Tokenizer> Tokenizer::create(const Metadata& metadata) {
  SHUNT_TRY_ASSIGN(const std::string_view kind, metadata.string("tokenizer.ggml.model"));
  if (kind != "llama")
    return fail(Code::unsupported, fmt::format("tokenizer \"{}\" is not supported; supported: \"llama\" (SentencePiece "
                                               "byte-pair encoding)",
                                               kind));
  SHUNT_TRY_ASSIGN(Vocabulary vocabulary, Vocabulary::create(metadata));
  Tokenizer tokenizer(std::move(vocabulary));
  SHUNT_TRY(tokenizer.read_special_ids(metadata));
  return tokenizer;
}

Status Tokenizer::read_special_ids(const Metadata& metadata) {
  const auto read = [&](std::string_view key) { return token_of(metadata, key, token_count()); };
  SHUNT_TRY_ASSIGN(bos_, read("tokenizer.ggml.bos_token_id"));
  SHUNT_TRY_ASSIGN(eos_, read("tokenizer.ggml.eos_token_id"));
  SHUNT_TRY_ASSIGN(eot_, read("tokenizer.ggml.eot_token_id"));
  SHUNT_TRY_ASSIGN(const std::optional<Token> eom, read("tokenizer.ggml.eom_token_id"));
  if (!bos_) bos_ = special("<s>");
  if (!eos_) eos_ = special("</s>");
  SHUNT_TRY_ASSIGN(const bool add_bos, metadata.boolean_or("tokenizer.ggml.add_bos_token", true));
  SHUNT_TRY_ASSIGN(adds_prefix_, metadata.boolean_or("tokenizer.ggml.add_space_prefix", true));
  adds_bos_ = add_bos && bos_.has_value();

  for (const std::optional<Token> token : {eos_, eot_, eom})
    if (token) ends_.push_back(*token);
  for (const std::string_view name : kEndNames)
    if (const auto token = special(name)) ends_.push_back(*token);
  std::ranges::sort(ends_);
  const auto repeated = std::ranges::unique(ends_);
  ends_.erase(repeated.begin(), repeated.end());
  return {};
}

Result<std::vector<Token>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  const Segment segment{text, options.parse_special ? Markup::all : Markup::user_defined};
  return encode_segments(std::span(&segment, 1), {.add_bos = options.add_bos, .add_prefix = true});
}

Result<std::vector<Token>> Tokenizer::encode_segments(std::span<const Segment> segments, SegmentOptions options) const {
  std::size_t bytes = 0;
  for (const Segment& segment : segments) {
    if (segment.text.size() > kMaxTextBytes - bytes)
      return fail(Code::invalid, fmt::format("the text is longer than the {} bytes that can be encoded at once; "
                                             "cut it into parts",
                                             kMaxTextBytes));
    bytes += segment.text.size();
  }
  if (options.add_bos && !bos_)
    return fail(Code::invalid, "a BOS token was asked for, but the vocabulary has none (tokenizer.ggml.bos_token_id)");

  Encoder encoder(vocabulary_);
  bool at_start = true;
  bool prefix_due = options.add_prefix && adds_prefix_;
  if (options.add_bos) encoder.add_token(*bos_);
  for (auto [text, markup] : segments) {
    if (text.empty()) continue;
    if (std::exchange(at_start, false) && bos_ && markup != Markup::none &&
        vocabulary_.match_special(text, markup == Markup::all) == bos_) {
      text.remove_prefix(vocabulary_.bytes(*bos_).size());
      if (!options.add_bos) encoder.add_token(*bos_);
      if (text.empty()) continue;
    }
    if (std::exchange(prefix_due, false))
      encoder.add_text(" " + std::string(text), markup);  // a special token may begin with the space
    else
      encoder.add_text(text, markup);
  }
  return std::move(encoder).finish();
}

Result<std::string> Tokenizer::decode(std::span<const Token> tokens, DecodeOptions options) const {
  std::string text;
  for (std::size_t at = 0; at < tokens.size(); ++at) {
    if (!vocabulary_.contains(tokens[at]))
      return fail(Code::invalid,
                  fmt::format("token {} at {} is outside the vocabulary of {} tokens", tokens[at], at, token_count()));
    const bool begins = at == 0 && bos_ && tokens[at] == *bos_;
    if (!begins) text += piece(tokens[at], options.control);
  }
  if (options.drop_prefix && adds_prefix_ && text.starts_with(' ')) text.erase(0, 1);
  return text;
}

std::string_view Tokenizer::piece(Token token, bool control) const {
  if (!vocabulary_.contains(token)) return {};
  if (vocabulary_.type(token) == TokenType::control && !control) return {};
  return vocabulary_.bytes(token);
}

bool Tokenizer::is_end(Token token) const { return std::ranges::binary_search(ends_, token); }

}  // namespace shunt::models
