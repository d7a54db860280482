// A language model from a GGUF file: facts about it, text as tokens, conversations, and sessions that compute logits
// and text.
//
// A LanguageModel owns the open file; all its calls are safe from many threads. A LanguageSession holds sequences of
// tokens with what the model remembers of them, and serves one thread at a time. It keeps what it uses of the model and
// of the runtime, so that the three may end in any order. Everything else is a plain value.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/runtime.h"
#include "shunt/strategy.h"
#include "shunt/tensor.h"

namespace shunt {

namespace models {
class Model;
class Session;
}  // namespace models

using Token = std::int32_t;

struct EncodeOptions {
  // Begin with the BOS token, unless the text itself begins with its marker: there is never a second one.
  bool add_bos = false;
  // End with the EOS token: for whole texts, not for those that a model is to go on with.
  bool add_eos = false;
  // Control tokens such as "</s>" written in the text become those tokens. (User-defined tokens always do.)
  bool parse_special = false;
};

struct DecodeOptions {
  // Control tokens appear as their names, except a BOS at the beginning; otherwise they have no text.
  bool control = false;
  // The tokens begin a text: drop the space that encode() puts first.
  bool drop_prefix = true;
};

struct Message {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

struct ChatOptions {
  std::string_view format;        // one of LanguageModel::chat_formats(); empty: the model's own
  std::span<const Token> so_far;  // a conversation up to and with a reply, which the messages follow
  bool add_reply_opening = true;  // end where the model is to answer
};

// The largest context that nobody asked for.
inline constexpr std::uint32_t kDefaultContext = 8192;

struct SessionOptions {
  // Tokens that each sequence can hold; 0: the model's own length, at most kDefaultContext, at most what fits.
  std::uint32_t context = 0;
  std::uint32_t max_sequences = 1;
  DType cache_dtype = DType::F16;        // F16, BF16 or F32
  std::uint32_t max_batch_tokens = 512;  // of one step
  bool fuse = true;                      // let devices claim fused ops
  Strategy strategy = Strategy::automatic;
  // By which part of its own time another choice must be faster than the device named first; nothing: 0.05, and 1 (half
  // the time) while the rates of a device are priors and not measured.
  std::optional<double> margin = std::nullopt;
  bool profile = false;  // record the time of each op, in a sample of the steps
};

struct BatchToken {
  std::uint32_t sequence = 0;
  Token token = 0;
  bool wants_logits = false;
};

// The filters work one after the other: repetition penalty, top-k, top-p, min-p, temperature (top-p and min-p look at
// the probabilities before the temperature). A seed means the same on every platform.
struct SamplingOptions {
  float temperature = 0.8F;          // >= 0; divides the logits; 0 is greedy
  std::uint32_t top_k = 40;          // only the k best tokens; 0: all
  float top_p = 0.95F;               // (0, 1]; only the fewest best tokens that together have this probability; 1: all
  float min_p = 0.05F;               // [0, 1]; only tokens at least this times as likely as the best; 0: all
  float repeat_penalty = 1.0F;       // > 0; divides positive and multiplies negative logits of recent tokens; 1: off
  std::uint32_t repeat_last_n = 64;  // how many tokens count as recent; 0: none
  std::uint64_t seed = 0;
  bool greedy = false;  // the best token after the penalty; everything else above is ignored
};

struct GenerateOptions {
  std::uint32_t max_tokens = 0;  // 0: until the end token or a full context
  SamplingOptions sampling;
  std::vector<std::string> stops;  // text that ends generation and is not given out
  bool ignore_end = false;         // go on after end tokens
  std::uint32_t sequence = 0;
};

struct LoadOptions {
  bool read_ahead = false;  // read all weights into memory now, so that the first steps do not wait for the disk
  Watch watch = {};         // of that
};

struct GenerateCallbacks {
  // New text, cut at whole characters, as soon as it cannot be the beginning of a stop text. False ends the text here.
  std::function<bool(std::string_view text)> on_text;
  // Prompt tokens done and all of them, after each step of the prompt.
  std::function<void(std::size_t done, std::size_t total)> on_prompt;
  // Set (by a signal handler, say) to end this call after the current step, as RuntimeOptions::watch ends any.
  const std::atomic<bool>* interrupted = nullptr;
};

// X(enumerator, name): why a generation ended.
#define SHUNT_STOP_REASONS(X)     \
  X(end_token, "end token")       \
  X(stop_string, "stop string")   \
  X(length, "length")             \
  X(context_full, "context full") \
  X(interrupted, "interrupted")

enum class StopReason : std::uint8_t {
#define SHUNT_STOP_REASON(reason, name) reason,
  SHUNT_STOP_REASONS(SHUNT_STOP_REASON)
#undef SHUNT_STOP_REASON
};
[[nodiscard]] std::string_view name_of(StopReason reason);

struct Generation {
  std::vector<Token> tokens;  // generated, without the end token
  std::string text;
  StopReason stop = StopReason::length;
  std::uint32_t prompt_tokens = 0;
  double prompt_s = 0;      // until the first logits
  double generate_s = 0;    // from there on
  std::uint32_t steps = 0;  // of generation: tokens computed one by one
};

class LanguageModel {
 public:
  // Of a split model any part. Errors: io; invalid for what is no whole GGUF file or is at odds with itself;
  // unsupported for an architecture, a tokenizer or a tensor type that is not known here, with a list of those that
  // are; interrupted.
  [[nodiscard]] static Result<std::unique_ptr<LanguageModel>> load(const std::string& path,
                                                                   const LoadOptions& options = {});
  // REQUIRES: the bytes begin at a multiple of 8 and outlive the model and its sessions.
  [[nodiscard]] static Result<std::unique_ptr<LanguageModel>> from_memory(std::span<const std::byte> bytes);
  ~LanguageModel();
  LanguageModel(const LanguageModel&) = delete;
  LanguageModel& operator=(const LanguageModel&) = delete;

  // What the file calls the model; empty where it does not.
  [[nodiscard]] std::string_view name() const;
  [[nodiscard]] std::string_view architecture() const;
  // Tokens that the model was trained on at once.
  [[nodiscard]] std::uint32_t context_length() const;
  // Tokens are 0 to vocabulary() - 1.
  [[nodiscard]] std::uint32_t vocabulary() const;
  [[nodiscard]] std::uint64_t weight_bytes() const;

  // Errors: invalid where the text is longer than 1 GiB or not UTF-8, or a token is asked for that the vocabulary
  // lacks.
  [[nodiscard]] Result<std::vector<Token>> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // The text that encode() made these of; not always UTF-8, as a token may be part of a character. Errors: invalid
  // where a token is outside the vocabulary.
  [[nodiscard]] Result<std::string> decode(std::span<const Token> tokens, const DecodeOptions& options = {}) const;
  [[nodiscard]] std::optional<Token> bos() const;
  // A prompt for this model begins with BOS.
  [[nodiscard]] bool adds_bos() const;
  // After this token the model has said all.
  [[nodiscard]] bool is_end(Token token) const;

  // The name of the model's own chat format. Errors: unsupported, with why it has none.
  [[nodiscard]] Result<std::string_view> chat_format() const;
  [[nodiscard]] static std::vector<std::string_view> chat_formats();
  // Errors: unsupported where there is no such format or the vocabulary lacks a token of it; invalid for a role that
  // the format does not know, or for messages in an order that it cannot tell.
  [[nodiscard]] Result<std::vector<Token>> apply_chat_template(std::span<const Message> messages,
                                                               const ChatOptions& options = {}) const;

 private:
  friend class LanguageSession;
  explicit LanguageModel(std::shared_ptr<models::Model> model);

  std::shared_ptr<models::Model> model_;
};

class LanguageSession {
 public:
  // Errors: invalid for options out of range, unsupported where a strategy prefers devices that there are none of and
  // that is strict, out_of_memory where the context does not fit.
  [[nodiscard]] static Result<std::unique_ptr<LanguageSession>> create(const LanguageModel& model,
                                                                       const Runtime& runtime,
                                                                       const SessionOptions& options = {});
  ~LanguageSession();
  LanguageSession(const LanguageSession&) = delete;
  LanguageSession& operator=(const LanguageSession&) = delete;

  // Appends the prompt to its sequence, and what is generated: another prompt may follow on it. A text that begins
  // its sequence gets the BOS of models that take one, and control tokens written in it become those tokens.
  // Errors: invalid for options out of range, an empty prompt and one that does not fit; those of the devices. A
  // context that becomes full later is no error: the text so far is the result, with the reason context_full, and its
  // last token had no room in the sequence.
  [[nodiscard]] Result<Generation> generate(std::string_view prompt, const GenerateOptions& options = {},
                                            const GenerateCallbacks& callbacks = {});
  [[nodiscard]] Result<Generation> generate(std::span<const Token> prompt, const GenerateOptions& options = {},
                                            const GenerateCallbacks& callbacks = {});

  // Appends tokens to their sequences in one step. Afterwards logits(i) are those of the i-th token that
  // wanted them. Errors: invalid for a bad token, sequence, batch size or a full context: then, and after any
  // other error, the sequences are as before; interrupted where RuntimeOptions::watch says so.
  [[nodiscard]] Status decode(std::span<const BatchToken> batch);
  // Appends tokens to one sequence in as many steps as it takes; the logits of the last are logits(0). Errors: as
  // decode; before the first step where all of them do not fit the context. The tokens of the steps before the error
  // stay.
  [[nodiscard]] Status prefill(std::uint32_t sequence, std::span<const Token> tokens);
  // F32 [vocabulary], until the next step; empty where nothing was wanted.
  [[nodiscard]] std::span<const float> logits(std::size_t index) const;

  // Forgets the tokens from `length` on. Errors: invalid for a sequence that is not there.
  [[nodiscard]] Status truncate(std::uint32_t sequence, std::size_t length);
  // Empty for a sequence that is not there.
  [[nodiscard]] std::span<const Token> tokens(std::uint32_t sequence) const;
  // Tokens that each sequence can hold.
  [[nodiscard]] std::uint32_t context() const;

 private:
  LanguageSession(std::shared_ptr<const models::Model> model, std::unique_ptr<const Runtime> runtime);

  std::shared_ptr<const models::Model> model_;
  std::unique_ptr<const Runtime> runtime_;
  std::unique_ptr<models::Session> session_;
};

}  // namespace shunt
