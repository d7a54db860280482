#include "models/generate.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "base/stopwatch.h"
#include "models/text/stop_matcher.h"
#include "models/text/utf8.h"

namespace shunt {

std::string_view name_of(StopReason reason) {
  switch (reason) {
#define SHUNT_STOP_REASON(reason, name) \
  case StopReason::reason:              \
    return name;
    SHUNT_STOP_REASONS(SHUNT_STOP_REASON)
#undef SHUNT_STOP_REASON
  }
  return "unknown";
}

namespace models {
namespace {

// Tokens to expect of an answer without a limit.
constexpr std::uint32_t kUsualAnswer = 256;

// Joins the bytes of tokens into whole characters and holds back what may begin a stop string.
class TextOutput {
 public:
  TextOutput(StopMatcher matcher, const GenerateCallbacks& callbacks, std::string& text)
      : matcher_(std::move(matcher)), callbacks_(callbacks), text_(text) {}

  // Appends bytes. Returns why the text must end with them, or nullopt.
  std::optional<StopReason> push(std::string_view bytes) {
    emit(matcher_.push(characters_.push(bytes)));
    if (refused_) return StopReason::interrupted;
    if (matcher_.stopped_by()) return StopReason::stop_string;
    return std::nullopt;
  }
  void flush() {
    emit(matcher_.push(characters_.flush()));
    emit(matcher_.flush());
  }

 private:
  void emit(const std::string& text) {
    if (text.empty() || refused_) return;
    text_ += text;
    if (callbacks_.on_text) refused_ = !callbacks_.on_text(text);
  }

  Utf8Stream characters_;
  StopMatcher matcher_;
  const GenerateCallbacks& callbacks_;
  std::string& text_;
  bool refused_ = false;  // on_text returned false
};

}  // namespace

Result<Generation> generate(Session& session, std::span<const Token> prompt, const GenerateOptions& options,
                            const GenerateCallbacks& callbacks) {
  SHUNT_TRY_ASSIGN(Sampler sampler, Sampler::create(options.sampling));
  SHUNT_TRY_ASSIGN(StopMatcher matcher, StopMatcher::create(options.stops));
  if (prompt.empty()) return fail(Code::invalid, "the prompt is empty; give some text");
  Generation result{.prompt_tokens = static_cast<std::uint32_t>(prompt.size())};
  TextOutput output(std::move(matcher), callbacks, result.text);
  bool stopped = false;  // the caller interrupted the generation
  const auto interrupted = [&] {
    stopped = stopped || session.watch().is_interrupted() ||
              (callbacks.interrupted != nullptr && callbacks.interrupted->load());
    return stopped;
  };
  const Tokenizer& tokenizer = session.model().tokenizer();
  const std::uint32_t sequence = options.sequence;

  const std::size_t room = session.context() - std::min<std::size_t>(session.context(), prompt.size());
  const std::uint32_t wanted = options.max_tokens != 0 ? options.max_tokens : kUsualAnswer;
  session.prepare_for({.prompt_tokens = prompt.size(), .generated_tokens = std::min<std::size_t>(wanted, room)},
                      callbacks.interrupted);

  const Stopwatch prompt_watch;
  const std::uint32_t needed = sampler.needed(session.model().config().vocabulary);
  const bool needs_all = needed == 0 || needed > session.candidate_count();
  const auto results = needs_all ? Session::Results::logits : Session::Results::candidates;
  const auto append = [&](std::span<const Token> tokens, const Session::AfterStep& after_step) -> Status {
    Status status = session.prefill(sequence, tokens, after_step, results);
    if (status || status.error().code != Code::interrupted) return status;
    stopped = true;
    return {};
  };
  SHUNT_TRY(append(prompt, [&](std::size_t done) {
    if (callbacks.on_prompt) callbacks.on_prompt(done, prompt.size());
    return !interrupted();
  }));
  result.prompt_s = prompt_watch.seconds();

  const Stopwatch generation_watch;
  std::vector<Token> history(session.tokens(sequence).begin(), session.tokens(sequence).end());
  while (true) {
    if (interrupted()) {
      result.stop = StopReason::interrupted;
      break;
    }
    SHUNT_TRY_ASSIGN(const Token token, needs_all ? sampler.sample(session.logits(0), history)
                                                  : sampler.sample(session.candidates(0), history));
    if (tokenizer.is_end(token) && !options.ignore_end) {
      result.stop = StopReason::end_token;
      break;
    }
    result.tokens.push_back(token);
    history.push_back(token);
    if (const auto ended = output.push(tokenizer.piece(token, options.ignore_end))) {
      result.stop = *ended;
      break;
    }
    if (options.max_tokens != 0 && result.tokens.size() >= options.max_tokens) break;
    if (session.tokens(sequence).size() >= session.context()) {
      result.stop = StopReason::context_full;
      break;
    }
    SHUNT_TRY(append(std::span(&token, 1), {}));
    if (!stopped) ++result.steps;
  }
  output.flush();
  result.generate_s = generation_watch.seconds();
  return result;
}

}  // namespace models
}  // namespace shunt
