// Converts text to tokens and back as the model was trained: SentencePiece byte-pair encoding with byte fallback
// ("llama"), byte-level byte-pair encoding ("gpt2") or SentencePiece's unigram model ("t5").
//
// Text is UTF-8, decodes to exactly what was encoded, and is never converted to another Unicode form. Only a unigram
// model changes text, as its file says (see Unigram). The others keep white space whatever
// tokenizer.ggml.remove_extra_whitespaces says. Owns its vocabulary; immutable after creation, so all calls are safe
// from many threads.
//
// If the file asks for a leading space, it goes once before everything given to encode(), even before special tokens:
// "<|im_start|>a" is " ", "<|im_start|>", "a". (A BOS marker at the start is not text: it becomes the BOS, and the
// space follows it. A unigram model puts the space before the first text.)
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "models/text/merge_table.h"
#include "models/text/pre_tokenizer.h"
#include "models/text/unigram.h"
#include "models/text/vocabulary.h"
#include "shunt/model.h"

namespace shunt::models {

// Which special tokens a part of a text may name.
enum class Markup : std::uint8_t { none, user_defined, all };

struct Segment {
  std::string_view text;
  Markup markup = Markup::none;
};

// The position of a text of segments.
struct SegmentOptions {
  bool add_bos = false;
  bool add_prefix = true;  // false if it follows other tokens
};

class Tokenizer {
 public:
  // Reads the tokenizer.ggml.* keys. Errors: unsupported for an unknown tokenizer.ggml.model or tokenizer.ggml.pre,
  // with the list of known ones; invalid if the metadata contradicts itself (see Vocabulary::create, MergeTable::create
  // and Unigram::create).
  [[nodiscard]] static Result<Tokenizer> create(const Metadata& metadata);

  // Errors: invalid if the text is longer than 1 GiB or not UTF-8, or if add_bos or add_eos is set for a vocabulary
  // without such a token.
  [[nodiscard]] Result<std::vector<Token>> encode(std::string_view text, EncodeOptions options = {}) const;
  // Encodes one text made of several parts, some of which must not name special tokens. Merges cross the seams, so the
  // result is that of the joined text unless a forbidden token is named.
  [[nodiscard]] Result<std::vector<Token>> encode_segments(std::span<const Segment> segments,
                                                           SegmentOptions options = {}) const;

  // Returns the text that encode() made these tokens from. Errors: invalid if a token is outside the vocabulary.
  [[nodiscard]] Result<std::string> decode(std::span<const Token> tokens, DecodeOptions options = {}) const;

  // Returns the bytes that one token adds to a text, with its leading space, perhaps only part of a character. Empty
  // for control tokens, unless `control` asks for their names, and for tokens outside the vocabulary.
  [[nodiscard]] std::string_view piece(Token token, bool control = false) const;

  [[nodiscard]] std::size_t token_count() const { return vocabulary_.size(); }
  [[nodiscard]] std::optional<Token> bos() const { return bos_; }
  [[nodiscard]] std::optional<Token> eos() const { return eos_; }
  [[nodiscard]] std::optional<Token> eot() const { return eot_; }
  // True for tokens that end the model's answer: eos, eot, eom, or a special token known to end texts or turns.
  [[nodiscard]] bool is_end(Token token) const;
  [[nodiscard]] std::span<const Token> ends() const { return ends_; }
  // True if a prompt for this model begins with BOS.
  [[nodiscard]] bool adds_bos() const { return adds_bos_; }
  // True if the file asks for EOS at the end of a whole text.
  [[nodiscard]] bool adds_eos() const { return adds_eos_; }
  // Returns the special token with exactly this text.
  [[nodiscard]] std::optional<Token> special(std::string_view text) const { return vocabulary_.find_special(text); }

 private:
  struct ScoredMerges {};
  struct ByteLevel {
    PreTokenizer pre_tokenizer;
    MergeTable merges;
  };
  using Method = std::variant<ScoredMerges, ByteLevel, Unigram>;
  struct Kind;
  static std::span<const Kind> kinds();
  class Encoder;

  Tokenizer(Vocabulary vocabulary, Method method) : vocabulary_(std::move(vocabulary)), method_(std::move(method)) {}
  [[nodiscard]] Status read_special_ids(const Metadata& metadata, const Kind& kind);

  Vocabulary vocabulary_;
  Method method_;
  std::optional<Token> bos_, eos_, eot_;
  std::vector<Token> ends_;  // sorted
  bool adds_bos_ = true;
  bool adds_eos_ = false;
  bool adds_prefix_ = true;
};

}  // namespace shunt::models
