// A language model from a GGUF file: its metadata, tokenizer and chat formats, and sessions that compute logits and
// text.
//
// A LanguageModel owns the open file; all its calls are safe from many threads. A LanguageSession holds sequences of
// tokens and their KV cache, and serves one thread at a time. It shares ownership of what it uses of the model and the
// runtime, so all three may be destroyed in any order. Everything else is a plain value.
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

#include "shunt/numerics.h"
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
  // Begin with the BOS token. A text that already begins with its marker gets no second one.
  bool add_bos = false;
  // End with the EOS token: for complete texts, not for prompts that the model continues.
  bool add_eos = false;
  // Parse control tokens such as "</s>" in the text. User-defined tokens are always parsed.
  bool parse_special = false;
};

struct DecodeOptions {
  // Write control tokens by name, except a leading BOS. Otherwise they have no text.
  bool control = false;
  // Drop the leading space that encode() adds: for tokens that begin a text.
  bool drop_prefix = true;
};

struct Message {
  std::string role;  // "system", "user" or "assistant"
  std::string content;
};

struct ChatOptions {
  std::string_view format;        // one of LanguageModel::chat_formats(); empty: the model's own
  std::span<const Token> so_far;  // an earlier conversation, ending with a reply, that the messages continue
  bool add_reply_opening = true;  // end where the model's reply begins
};

// The largest context that a session chooses by itself.
inline constexpr std::uint32_t kDefaultContext = 8192;

struct SessionOptions {
  // Tokens that each sequence can hold. 0: the model's own context length, at most kDefaultContext and what fits.
  std::uint32_t context = 0;
  std::uint32_t max_sequences = 1;
  DType cache_dtype = DType::F16;  // one of cache_dtypes(); Q8_0 for heads of a multiple of 32 elements
  // Tokens in one step. 0: at most 4096; a prompt is read in steps of 512, or of more where that is predicted to be
  // faster.
  std::uint32_t max_batch_tokens = 0;
  bool fuse = true;  // let devices claim fused ops
  Strategy strategy = Strategy::automatic;
  Numerics numerics = Numerics::automatic;
  // Another choice replaces the first device only if that one would take more than 1 + margin times as long. Empty:
  // 0.05, or 1 while any device's rates are priors.
  std::optional<double> margin = std::nullopt;
  bool profile = false;  // record the time of each op in a sample of the steps
};

struct BatchToken {
  std::uint32_t sequence = 0;
  Token token = 0;
  bool wants_logits = false;
};

// The filters apply in this order: repetition penalty, top-k, top-p, min-p, temperature. Top-p and min-p use the
// probabilities before the temperature. A seed gives the same result on every platform.
struct SamplingOptions {
  float temperature = 0.8F;          // >= 0; divides the logits; 0 is greedy
  std::uint32_t top_k = 40;          // keeps the k most likely tokens; 0: all
  float top_p = 0.95F;               // (0, 1]; keeps the fewest most likely tokens with this total probability; 1: all
  float min_p = 0.05F;               // [0, 1]; keeps tokens at least this many times as likely as the best; 0: all
  float repeat_penalty = 1.0F;       // > 0; divides positive and multiplies negative logits of recent tokens; 1: off
  std::uint32_t repeat_last_n = 64;  // how many tokens count as recent; 0: none
  std::uint64_t seed = 0;
  bool greedy = false;  // take the best token after the repetition penalty; the other filters are ignored
};

struct GenerateOptions {
  std::uint32_t max_tokens = 0;  // 0: until the end token or a full context
  SamplingOptions sampling;
  std::vector<std::string> stops;  // texts that end generation; they are not part of the output
  bool ignore_end = false;         // continue after end tokens
  std::uint32_t sequence = 0;
};

struct LoadOptions {
  bool read_ahead = false;  // read all weights into memory now, so that the first steps do not wait for the disk
  Watch watch = {};         // progress and interruption of the read-ahead
};

struct GenerateCallbacks {
  // Receives new text in whole characters, as soon as it cannot begin a stop text. Returns false to end generation.
  std::function<bool(std::string_view text)> on_text;
  // Receives prompt tokens done and in total, after each step of the prompt.
  std::function<void(std::size_t done, std::size_t total)> on_prompt;
  // Ends this call after the current step once it is set, by a signal handler for example. RuntimeOptions::watch does
  // the same for all calls.
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
  std::vector<Token> tokens;  // the generated tokens without the end token
  std::string text;
  StopReason stop = StopReason::length;
  std::uint32_t prompt_tokens = 0;
  double prompt_s = 0;      // time to the first logits
  double generate_s = 0;    // time after them
  std::uint32_t steps = 0;  // decode steps: tokens computed one at a time
};

class LanguageModel {
 public:
  // Opens a GGUF file, or a split model by any of its parts. Errors: io; invalid for a truncated or inconsistent file;
  // unsupported for an unknown architecture, tokenizer or tensor type, with a list of the known ones; interrupted.
  [[nodiscard]] static Result<std::unique_ptr<LanguageModel>> load(const std::string& path,
                                                                   const LoadOptions& options = {});
  // REQUIRES: the bytes begin at a multiple of 8 and outlive the model and its sessions.
  [[nodiscard]] static Result<std::unique_ptr<LanguageModel>> from_memory(std::span<const std::byte> bytes);
  ~LanguageModel();
  LanguageModel(const LanguageModel&) = delete;
  LanguageModel& operator=(const LanguageModel&) = delete;

  // The model's name in the file; empty if it has none.
  [[nodiscard]] std::string_view name() const;
  [[nodiscard]] std::string_view architecture() const;
  // The context length in tokens that the model was trained with.
  [[nodiscard]] std::uint32_t context_length() const;
  // The number of tokens; they are 0 to vocabulary() - 1.
  [[nodiscard]] std::uint32_t vocabulary() const;
  [[nodiscard]] std::uint64_t weight_bytes() const;

  // Errors: invalid if the text is longer than 1 GiB or not UTF-8, or if the vocabulary lacks a requested token.
  [[nodiscard]] Result<std::vector<Token>> encode(std::string_view text, const EncodeOptions& options = {}) const;
  // Returns the text that encode() turns into these tokens. It need not be UTF-8, because a token may be part of a
  // character. Errors: invalid if a token is outside the vocabulary.
  [[nodiscard]] Result<std::string> decode(std::span<const Token> tokens, const DecodeOptions& options = {}) const;
  [[nodiscard]] std::optional<Token> bos() const;
  // True if a prompt for this model begins with BOS.
  [[nodiscard]] bool adds_bos() const;
  // True if this token ends the model's output.
  [[nodiscard]] bool is_end(Token token) const;

  // The name of the model's own chat format. Errors: unsupported, with the reason why it has none.
  [[nodiscard]] Result<std::string_view> chat_format() const;
  [[nodiscard]] static std::vector<std::string_view> chat_formats();
  // Encodes messages as a prompt. Errors: unsupported if there is no such format or the vocabulary lacks one of its
  // tokens; invalid for a role that the format lacks, or an order of messages that it cannot express.
  [[nodiscard]] Result<std::vector<Token>> apply_chat_template(std::span<const Message> messages,
                                                               const ChatOptions& options = {}) const;

 private:
  friend class LanguageSession;
  explicit LanguageModel(std::shared_ptr<models::Model> model);

  std::shared_ptr<models::Model> model_;
};

class LanguageSession {
 public:
  // Errors: invalid for options out of range; unsupported if RuntimeOptions::strict is set and the strategy prefers a
  // kind of device that is not there; out_of_memory if the context does not fit.
  [[nodiscard]] static Result<std::unique_ptr<LanguageSession>> create(const LanguageModel& model,
                                                                       const Runtime& runtime,
                                                                       const SessionOptions& options = {});
  ~LanguageSession();
  LanguageSession(const LanguageSession&) = delete;
  LanguageSession& operator=(const LanguageSession&) = delete;

  // Appends the prompt and the generated tokens to the sequence, so another prompt may follow. A text that begins its
  // sequence gets a BOS if the model takes one; control tokens in the text are parsed. Errors: invalid for options out
  // of range, an empty prompt or one that does not fit; those of the devices. A context that fills up later is not an
  // error: generation stops with context_full, and the last token is not in the sequence.
  [[nodiscard]] Result<Generation> generate(std::string_view prompt, const GenerateOptions& options = {},
                                            const GenerateCallbacks& callbacks = {});
  [[nodiscard]] Result<Generation> generate(std::span<const Token> prompt, const GenerateOptions& options = {},
                                            const GenerateCallbacks& callbacks = {});

  // Appends tokens to their sequences in one step. Afterwards logits(i) belong to the i-th token with wants_logits.
  // After an error all sequences are as before. Errors: invalid for a bad token, sequence or batch size, or a full
  // context; interrupted by RuntimeOptions::watch; those of the devices.
  [[nodiscard]] Status decode(std::span<const BatchToken> batch);
  // Appends tokens to one sequence in as many steps as needed. logits(0) belong to the last token. Errors: as decode();
  // if the tokens do not all fit the context, before the first step. Steps before the error keep their tokens.
  [[nodiscard]] Status prefill(std::uint32_t sequence, std::span<const Token> tokens);
  // F32 [vocabulary], valid until the next step; empty if no token wanted these logits. After generate() they may be
  // empty, too, since it reads all logits only if the sampling options need more than the 64 best.
  [[nodiscard]] std::span<const float> logits(std::size_t index) const;

  // Drops the tokens from position `length` on. Errors: invalid for an unknown sequence.
  [[nodiscard]] Status truncate(std::uint32_t sequence, std::size_t length);
  // The tokens of a sequence; empty for an unknown one.
  [[nodiscard]] std::span<const Token> tokens(std::uint32_t sequence) const;
  // The number of tokens that each sequence can hold.
  [[nodiscard]] std::uint32_t context() const;

 private:
  LanguageSession(std::shared_ptr<const models::Model> model, std::unique_ptr<const Runtime> runtime);

  std::shared_ptr<const models::Model> model_;
  std::unique_ptr<const Runtime> runtime_;
  std::unique_ptr<models::Session> session_;
};

}  // namespace shunt
