// From text to tokens and back, as the model was trained: SentencePiece byte-pair encoding with byte fallback
// ("llama"), byte-level byte-pair encoding ("gpt2") or SentencePiece's unigram model ("t5").
//
// Text is UTF-8 and comes back exactly; it is never brought into another Unicode form. Only a unigram model changes
// text, as its file says (see Unigram); the others keep white space whatever tokenizer.ggml.remove_extra_whitespaces
// says. Owns its vocabulary; immutable after creation, so all calls are safe from many threads.
//
// Where the file asks for a space before the text, it stands before everything that encode() is given,
// special tokens too, and only there: "<|im_start|>a" is " ", "<|im_start|>", "a". (A BOS marker that begins the
// text is no text: it becomes the BOS, and the space follows it. A unigram model has it before the first text.)
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

// Where a text of segments stands.
struct SegmentOptions {
  bool add_bos = false;
  bool add_prefix = true;  // false: it follows on other tokens
};

class Tokenizer {
 public:
  // Reads the tokenizer.ggml.* keys. Errors: unsupported for an unknown tokenizer.ggml.model or tokenizer.ggml.pre,
  // with the list of known ones; invalid where the metadata is at odds with itself (see Vocabulary::create,
  // MergeTable::create and Unigram::create).
  [[nodiscard]] static Result<Tokenizer> create(const Metadata& metadata);

  // Errors: invalid where the text is longer than 1 GiB or not UTF-8, or add_bos or add_eos is asked of a vocabulary
  // without such a token.
  [[nodiscard]] Result<std::vector<Token>> encode(std::string_view text, EncodeOptions options = {}) const;
  // One text made of several parts, of which some must not name special tokens. Merges cross the seams, so
  // the result is that of the joined text wherever no forbidden token is named.
  [[nodiscard]] Result<std::vector<Token>> encode_segments(std::span<const Segment> segments,
                                                           SegmentOptions options = {}) const;

  // The text that encode() made these of. Errors: invalid where a token is outside the vocabulary.
  [[nodiscard]] Result<std::string> decode(std::span<const Token> tokens, DecodeOptions options = {}) const;

  // The bytes that one token adds to a text, with its leading space; perhaps part of a character. Empty for control
  // tokens, unless `control` asks for their names, and for what is outside the vocabulary.
  [[nodiscard]] std::string_view piece(Token token, bool control = false) const;

  [[nodiscard]] std::size_t token_count() const { return vocabulary_.size(); }
  [[nodiscard]] std::optional<Token> bos() const { return bos_; }
  [[nodiscard]] std::optional<Token> eos() const { return eos_; }
  [[nodiscard]] std::optional<Token> eot() const { return eot_; }
  // After this token the model has said all: eos, eot, eom, or a special token that is known to end text or turns.
  [[nodiscard]] bool is_end(Token token) const;
  [[nodiscard]] std::span<const Token> ends() const { return ends_; }
  // A prompt for this model begins with BOS.
  [[nodiscard]] bool adds_bos() const { return adds_bos_; }
  // Whether the file asks for EOS at the end of a whole text.
  [[nodiscard]] bool adds_eos() const { return adds_eos_; }
  // The special token of exactly this text.
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
