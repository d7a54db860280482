#include "models/text/tokenizer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "models/text/bpe.h"
#include "models/text/utf8.h"

namespace shunt::models {
namespace {

constexpr std::size_t kMaxTextBytes = std::size_t{1} << 30;

// Special tokens that end a text or a turn, as common models name them.
constexpr std::string_view kEndNames[] = {
    "</s>",          "<eos>",           "<EOT>",      "<|im_end|>",
    "<|endoftext|>", "<|end_of_text|>", "<|eot_id|>", "<|eom_id|>",
    "<|eot|>",       "<|eom|>",         "<|end|>",    "<|return|>",
    "<end_of_turn>", "<|end_of_turn|>", "<|call|>",   "<｜end▁of▁sentence｜>",
};
// If a vocabulary has kReplyEnd, kMessageEnd only separates the messages of one reply.
constexpr std::string_view kMessageEnd = "<|end|>";
constexpr std::string_view kReplyEnd = "<|return|>";

}  // namespace

// A row of the table of tokenizers, by tokenizer.ggml.model.
struct Tokenizer::Kind {
  std::string_view name;
  std::string_view meaning;
  Spelling spelling;
  bool adds_bos;  // if neither the file nor a pre-tokenizer says
  bool adds_prefix;
  Result<Method> (*create)(const Metadata&, const Vocabulary&);
};

std::span<const Tokenizer::Kind> Tokenizer::kinds() {
  static constexpr auto kScored = [](const Metadata&, const Vocabulary&) -> Result<Method> { return ScoredMerges(); };
  static constexpr auto kByteLevel = [](const Metadata& metadata, const Vocabulary& vocabulary) -> Result<Method> {
    SHUNT_TRY_ASSIGN(const std::string_view name, metadata.string_or("tokenizer.ggml.pre", "default"));
    SHUNT_TRY_ASSIGN(PreTokenizer pre_tokenizer, PreTokenizer::create(name));
    SHUNT_TRY_ASSIGN(MergeTable merges, MergeTable::create(metadata, vocabulary));
    return ByteLevel{.pre_tokenizer = std::move(pre_tokenizer), .merges = std::move(merges)};
  };
  static constexpr auto kUnigram = [](const Metadata& metadata, const Vocabulary& vocabulary) -> Result<Method> {
    SHUNT_TRY_ASSIGN(Unigram unigram, Unigram::create(metadata, vocabulary));
    return unigram;
  };
  static constexpr Kind kKinds[] = {
      {"llama", "SentencePiece byte-pair encoding", Spelling::space_marks, true, true, kScored},
      {"gpt2", "byte-level byte-pair encoding", Spelling::byte_letters, false, false, kByteLevel},
      {"t5", "SentencePiece unigram model", Spelling::space_marks, false, true, kUnigram},
  };
  return kKinds;
}

// Collects text until a special token or the end, then tokenizes it as one run.
class Tokenizer::Encoder {
 public:
  // `prefix`: put a space before the first text.
  Encoder(const Vocabulary& vocabulary, const Method& method, bool prefix)
      : vocabulary_(vocabulary),
        byte_level_(std::get_if<ByteLevel>(&method)),
        unigram_(std::get_if<Unigram>(&method)),
        merger_(vocabulary, byte_level_ != nullptr ? &byte_level_->merges : nullptr),
        prefix_due_(prefix) {}

  void add_token(Token token) {
    end_run();
    tokens_.push_back(token);
  }

  void add_text(std::string_view text, Markup markup) {
    if (prefix_due_ && unigram_ == nullptr) {
      prefix_due_ = false;
      return add_text(" " + std::string(text), markup);  // a special token may begin with the space
    }
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
    end_run();
    return std::move(tokens_);
  }

 private:
  void end_run() {
    if (run_.empty()) return;
    if (unigram_ != nullptr) {
      const std::string text = unigram_->normalize(run_, prefix_due_);
      prefix_due_ = prefix_due_ && text.empty();
      unigram_->append_tokens(text, vocabulary_, tokens_);
    } else if (byte_level_ != nullptr) {
      add_words();
    } else {
      merger_.append_tokens(run_, tokens_);
    }
    run_.clear();
  }

  void add_words() {
    words_.clear();
    byte_level_->pre_tokenizer.append_words(run_, words_);
    for (const std::string_view word : words_) {
      const auto token = byte_level_->pre_tokenizer.whole_words() ? vocabulary_.find_normal(word) : std::nullopt;
      if (token)
        tokens_.push_back(*token);
      else
        merger_.append_word(word, tokens_);
    }
  }

  const Vocabulary& vocabulary_;
  const ByteLevel* byte_level_;  // null for other methods
  const Unigram* unigram_;
  BpeMerger merger_;
  bool prefix_due_;
  std::string run_;
  std::vector<std::string_view> words_;
  std::vector<Token> tokens_;
};

Result<Tokenizer> Tokenizer::create(const Metadata& metadata) {
  SHUNT_TRY_ASSIGN(const std::string_view name, metadata.string("tokenizer.ggml.model"));
  const auto kind = std::ranges::find(kinds(), name, &Kind::name);
  if (kind == kinds().end()) {
    std::vector<std::string> known;
    for (const Kind& row : kinds()) known.push_back(fmt::format("\"{}\" ({})", row.name, row.meaning));
    return fail(Code::unsupported,
                fmt::format("tokenizer \"{}\" is not supported; supported: {}", name, fmt::join(known, ", ")));
  }
  SHUNT_TRY_ASSIGN(Vocabulary vocabulary, Vocabulary::create(metadata, kind->spelling));
  SHUNT_TRY_ASSIGN(Method method, kind->create(metadata, vocabulary));
  Tokenizer tokenizer(std::move(vocabulary), std::move(method));
  SHUNT_TRY(tokenizer.read_special_ids(metadata, *kind));
  return tokenizer;
}

Status Tokenizer::read_special_ids(const Metadata& metadata, const Kind& kind) {
  const auto read = [&](std::string_view key) { return token_of(metadata, key, token_count()); };
  SHUNT_TRY_ASSIGN(bos_, read("tokenizer.ggml.bos_token_id"));
  SHUNT_TRY_ASSIGN(eos_, read("tokenizer.ggml.eos_token_id"));
  SHUNT_TRY_ASSIGN(eot_, read("tokenizer.ggml.eot_token_id"));
  SHUNT_TRY_ASSIGN(const std::optional<Token> eom, read("tokenizer.ggml.eom_token_id"));
  if (!bos_) bos_ = special("<s>");
  if (!eos_) eos_ = special("</s>");
  const auto* byte_level = std::get_if<ByteLevel>(&method_);
  const bool usual_bos = byte_level != nullptr ? byte_level->pre_tokenizer.adds_bos() : kind.adds_bos;
  SHUNT_TRY_ASSIGN(const bool add_bos, metadata.boolean_or("tokenizer.ggml.add_bos_token", usual_bos));
  SHUNT_TRY_ASSIGN(const bool add_eos, metadata.boolean_or("tokenizer.ggml.add_eos_token", false));
  SHUNT_TRY_ASSIGN(adds_prefix_, metadata.boolean_or("tokenizer.ggml.add_space_prefix", kind.adds_prefix));
  adds_bos_ = add_bos && bos_.has_value();
  adds_eos_ = add_eos && eos_.has_value();

  for (const std::optional<Token> token : {eos_, eot_, eom})
    if (token) ends_.push_back(*token);
  for (const std::string_view name : kEndNames)
    if (const auto token = special(name); token && !(name == kMessageEnd && special(kReplyEnd)))
      ends_.push_back(*token);
  std::ranges::sort(ends_);
  const auto repeated = std::ranges::unique(ends_);
  ends_.erase(repeated.begin(), repeated.end());
  return {};
}

Result<std::vector<Token>> Tokenizer::encode(std::string_view text, EncodeOptions options) const {
  const Segment segment{text, options.parse_special ? Markup::all : Markup::user_defined};
  if (options.add_eos && !eos_)
    return fail(Code::invalid, "an EOS token was asked for, but the vocabulary has none (tokenizer.ggml.eos_token_id)");
  SHUNT_TRY_ASSIGN(std::vector<Token> tokens,
                   encode_segments(std::span(&segment, 1), {.add_bos = options.add_bos, .add_prefix = true}));
  if (options.add_eos) tokens.push_back(*eos_);
  return tokens;
}

Result<std::vector<Token>> Tokenizer::encode_segments(std::span<const Segment> segments, SegmentOptions options) const {
  std::size_t bytes = 0;
  for (const Segment& segment : segments) {
    if (segment.text.size() > kMaxTextBytes - bytes)
      return fail(Code::invalid, fmt::format("the text is longer than the {} bytes that can be encoded at once; "
                                             "cut it into parts",
                                             kMaxTextBytes));
    bytes += segment.text.size();
    if (const std::size_t wrong = first_invalid_byte(segment.text); wrong < segment.text.size())
      return fail(Code::invalid, fmt::format("the text is not UTF-8: byte 0x{:02X} at offset {} begins no character; "
                                             "convert the text to UTF-8",
                                             static_cast<std::uint8_t>(segment.text[wrong]), wrong));
  }
  if (options.add_bos && !bos_)
    return fail(Code::invalid, "a BOS token was asked for, but the vocabulary has none (tokenizer.ggml.bos_token_id)");

  Encoder encoder(vocabulary_, method_, options.add_prefix && adds_prefix_);
  bool at_start = true;
  if (options.add_bos) encoder.add_token(*bos_);
  for (auto [text, markup] : segments) {
    if (text.empty()) continue;
    if (std::exchange(at_start, false) && bos_ && markup != Markup::none &&
        vocabulary_.match_special(text, markup == Markup::all) == bos_) {
      text.remove_prefix(vocabulary_.bytes(*bos_).size());
      if (!options.add_bos) encoder.add_token(*bos_);
      if (text.empty()) continue;
    }
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
