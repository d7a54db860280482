// shunt run: text out of a model, once or in turns.
#include <unistd.h>

#include <chrono>
#include <iostream>
#include <iterator>
#include <random>

#include "command.h"
#include "interrupt.h"
#include "models/generate.h"
#include "trace/chrome.h"

namespace shunt::cli {
namespace {

using namespace models;

struct Options {
  std::string model;
  std::string prompt;
  bool has_prompt = false;
  bool chat = false;
  std::string system;
  GenerateOptions generate;
  SessionArguments session;
  RuntimeOptions runtime;
  std::string trace;
  bool has_seed = false;
  bool json = false;
};

double rate(std::size_t count, double seconds) { return seconds > 0 ? static_cast<double>(count) / seconds : 0; }

class Run {
 public:
  explicit Run(Options& options) : options_(options) {}

  Status execute() {
    const auto start = std::chrono::steady_clock::now();
    options_.runtime.trace = !options_.trace.empty();
    SHUNT_TRY_ASSIGN(runtime_, Runtime::create(options_.runtime));
    SHUNT_TRY_ASSIGN(model_, load_model(options_.model));
    SHUNT_TRY_ASSIGN(const SessionOptions session_settings, session_options(options_.session));
    SHUNT_TRY_ASSIGN(session_, Session::create(*model_, *runtime_, session_settings));
    load_s_ = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    if (!options_.has_seed) options_.generate.sampling.seed = std::random_device{}();
    Status status = options_.has_prompt ? answer_once() : isatty(STDIN_FILENO) != 0 ? converse() : answer_stdin();
    if (status && !options_.trace.empty()) status = trace::write_chrome_trace(runtime_->recorder(), options_.trace);
    return status;
  }

 private:
  Result<std::vector<Token>> prompt_tokens() const {
    const Tokenizer& tokenizer = model_->tokenizer();
    if (!options_.chat)
      return tokenizer.encode(options_.prompt, {.add_bos = tokenizer.adds_bos(), .parse_special = true});
    if (!model_->chat()) return std::unexpected(model_->chat().error());
    std::vector<Message> messages;
    if (!options_.system.empty()) messages.push_back({"system", options_.system});
    messages.push_back({"user", options_.prompt});
    return model_->chat()->encode(messages, tokenizer, true);
  }

  // `echo` is given out once the prompt has gone in without an error.
  Result<Generation> stream(std::span<const Token> tokens, bool live, std::string_view echo = "") {
    ProgressLine line;
    Status written;
    bool first = true;
    GenerateCallbacks callbacks{.interrupted = catch_interrupts()};
    callbacks.on_prompt = [&](std::size_t done, std::size_t total) {
      if (total > session_->options().batch) line.show(fmt::format("prompt: {} of {} tokens", done, total));
      if (done == total && !echo.empty()) {
        line.clear();
        written = print(echo);
      }
    };
    callbacks.on_text = [&](std::string_view text) {
      line.clear();
      // The leading space of a reply belongs to the first word's token, not to the text.
      if (std::exchange(first, false) && options_.chat && text.starts_with(' ')) text.remove_prefix(1);
      if (live && written) written = print(text);
    };
    SHUNT_TRY_ASSIGN(Generation generation, generate(*session_, tokens, options_.generate, callbacks));
    SHUNT_TRY(written);
    return generation;
  }

  Status answer_once() {
    SHUNT_TRY_ASSIGN(const std::vector<Token> tokens, prompt_tokens());
    const bool live = !options_.json;
    const std::string_view echo = live && !options_.chat ? std::string_view(options_.prompt) : "";
    SHUNT_TRY_ASSIGN(const Generation generation, stream(tokens, live, echo));
    if (live) SHUNT_TRY(print("\n"));
    if (options_.json) SHUNT_TRY(print_json(to_json(tokens, generation)));
    SHUNT_TRY(summarize(generation));
    return check_context(generation);
  }

  Status answer_stdin() {
    options_.prompt.assign(std::istreambuf_iterator<char>(std::cin), {});
    while (!options_.prompt.empty() && options_.prompt.back() == '\n') options_.prompt.pop_back();
    return answer_once();
  }

  Status converse() {
    if (options_.json) return fail(Code::invalid, "--json needs a prompt");
    if (!model_->chat()) return std::unexpected(model_->chat().error());
    options_.chat = true;
    say(dim(fmt::format("chat with {}; end with Ctrl-D", options_.model)));
    std::vector<Token> so_far;
    bool first = true;
    while (true) {
      fmt::print(stderr, "> ");
      static_cast<void>(std::fflush(stderr));
      std::string line;
      if (!std::getline(std::cin, line) || was_interrupted()) break;
      if (line.empty()) continue;
      std::vector<Message> messages;
      if (std::exchange(first, false) && !options_.system.empty()) messages.push_back({"system", options_.system});
      messages.push_back({"user", line});
      SHUNT_TRY_ASSIGN(const std::vector<Token> next,
                       model_->chat()->encode_next(so_far, messages, model_->tokenizer(), true));
      // The last token of a reply was given out but is not in the cache yet.
      std::vector<Token> pending(so_far.begin() + static_cast<std::ptrdiff_t>(session_->tokens(0).size()),
                                 so_far.end());
      pending.insert(pending.end(), next.begin(), next.end());
      SHUNT_TRY_ASSIGN(const Generation generation, stream(pending, true));
      SHUNT_TRY(print("\n"));
      so_far.insert(so_far.end(), next.begin(), next.end());
      so_far.insert(so_far.end(), generation.tokens.begin(), generation.tokens.end());
      SHUNT_TRY(summarize(generation));
      SHUNT_TRY(check_context(generation));
    }
    say("");
    return {};
  }

  Status check_context(const Generation& generation) const {
    if (generation.stop != StopReason::context_full) return {};
    return fail(Code::invalid,
                fmt::format("the context of {} tokens is full; start with a larger one (-c)", session_->context()));
  }

  Result<std::vector<std::string>> devices() {
    SHUNT_TRY_ASSIGN(const Plan* plan, session_->plan_for(1, 1));
    return used_devices(*plan);
  }

  Status summarize(const Generation& generation) {
    SHUNT_TRY_ASSIGN(const std::vector<std::string> used, devices());
    const std::uint32_t threads = runtime_->devices().front()->info().compute_units;
    say(dim(fmt::format(
        "[{} with {} threads; context {} of {}; prompt {} tokens, {:.1f} tokens/s; generated {} tokens, "
        "{:.1f} tokens/s; ended by: {}; seed {}]",
        fmt::join(used, ", "), threads, session_->tokens(0).size(), session_->context(), generation.prompt_tokens,
        rate(generation.prompt_tokens, generation.prompt_s), generation.tokens.size(),
        rate(generation.steps, generation.generate_s), name_of(generation.stop), options_.generate.sampling.seed)));
    return {};
  }

  Json to_json(const std::vector<Token>& prompt, const Generation& generation) {
    const auto used = devices();
    return {{"prompt_tokens", prompt},
            {"tokens", generation.tokens},
            {"text", generation.text},
            {"stop", name_of(generation.stop)},
            {"seed", options_.generate.sampling.seed},
            {"context", session_->context()},
            {"timings",
             {{"load_s", load_s_},
              {"prompt_s", generation.prompt_s},
              {"generate_s", generation.generate_s},
              {"prompt_tokens_per_s", rate(generation.prompt_tokens, generation.prompt_s)},
              {"generate_tokens_per_s", rate(generation.steps, generation.generate_s)}}},
            {"devices", used ? *used : std::vector<std::string>()}};
  }

  Options& options_;
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Session> session_;
  double load_s_ = 0;
};

void add_sampling(CLI::App& command, SamplingOptions& sampling) {
  command.add_flag("--greedy", sampling.greedy, "Always the likeliest token");
  command.add_option("--temperature", sampling.temperature, "Divides the logits; 0 is greedy")->capture_default_str();
  command.add_option("--top-k", sampling.top_k, "Only the k likeliest tokens; 0: all")->capture_default_str();
  command.add_option("--top-p", sampling.top_p, "Only the fewest tokens that reach this probability")
      ->capture_default_str();
  command.add_option("--min-p", sampling.min_p, "Only tokens at least this times as likely as the best")
      ->capture_default_str();
  command.add_option("--repeat-penalty", sampling.repeat_penalty, "Makes recent tokens less likely; 1: off")
      ->capture_default_str();
}

}  // namespace

Action run(CLI::App& command);
Action run(CLI::App& command) {
  auto options = std::make_shared<Options>();
  add_model(command, options->model);
  CLI::Option* prompt = command.add_option("prompt", options->prompt, "Text to go on from (default: stdin, or a chat)");
  command.add_flag("--chat", options->chat, "Take the prompt as a user's message, through the model's chat template");
  command.add_option("--system", options->system, "System message of a chat");
  command.add_option("-n,--tokens", options->generate.max_tokens,
                     "Most tokens to generate (default: until the model ends)");
  add_sampling(command, options->generate.sampling);
  command.add_option("--stop", options->generate.stops, "Text that ends generation; may be given again")
      ->take_all()
      ->expected(1);
  command.add_flag("--ignore-eos", options->generate.ignore_end, "Go on after the model's end token");
  CLI::Option* seed =
      command.add_option("--seed", options->generate.sampling.seed, "Seed of the random choice (default: a new one)");
  add_session(command, options->session);
  add_runtime(command, options->runtime);
  command.add_option("--trace", options->trace, "Write what ran when, for chrome://tracing or ui.perfetto.dev");
  add_json(command, options->json);
  return [options, prompt, seed] {
    options->has_prompt = prompt->count() > 0;
    options->has_seed = seed->count() > 0;
    return Run(*options).execute();
  };
}

}  // namespace shunt::cli
