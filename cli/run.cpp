// shunt run: generates text with a model, once or in a chat.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "answers.h"
#include "base/nearest.h"
#include "base/stopwatch.h"
#include "command.h"
#include "files.h"
#include "input.h"
#include "interrupt.h"
#include "loading.h"
#include "options.h"
#include "output.h"

namespace shunt::cli {
namespace {

using models::ChatTemplate;
using models::Model;
using models::Session;

// Smaller models are read in a moment.
constexpr std::uint64_t kLargeBytes = 128U << 20U;

struct RunOptions {
  std::string model;
  std::optional<std::string> prompt;
  std::string prompt_file;
  bool chat = false;
  bool raw = false;
  std::string chat_template;  // its name; empty: the model's own
  std::optional<std::string> system;
  GenerateOptions generate;
  SamplingArguments sampling;
  SessionOptions session;
  RuntimeOptions runtime;
  std::string trace;
  bool json = false;

  [[nodiscard]] bool converses() const { return !prompt && !raw && is_terminal(STDIN_FILENO); }
};

// Empty if only one token was generated: it came from the last step of the prompt.
std::string speed(std::size_t count, double seconds) {
  return count > 0 ? fmt::format(", {:.1f} tokens/s", rate(count, seconds)) : std::string();
}

class Run {
 public:
  // REQUIRES: the options outlive it; notices of their runtime go through it.
  explicit Run(RunOptions& options) : options_(options) {
    options.runtime.on_notice = [this](const std::string& text) {
      begin_line();
      note(text);
    };
  }

  Status execute() {
    const Stopwatch watch;
    SHUNT_TRY_ASSIGN(runtime_, open_runtime(options_.runtime));
    SHUNT_TRY_ASSIGN(model_, Model::load(options_.model));
    if (!options_.chat_template.empty())
      chosen_.emplace(ChatTemplate::named(options_.chat_template, model_->tokenizer()));
    if (options_.chat && !chat()) return std::unexpected(chat().error());
    SHUNT_TRY_ASSIGN(session_, Session::create(*model_, *runtime_, options_.session));
    load_s_ = watch.seconds();
    if (session_->context() > model_->config().context_length)
      note(fmt::format("The model was made for {} tokens; the text may degrade beyond them.",
                       model_->config().context_length));
    const Status status = options_.prompt ? answer() : converse();
    SHUNT_TRY(write_trace(*runtime_, options_.trace,
                          origin_of("run", options_.model, *session_, *runtime_, options_.runtime),
                          Speeds{.prompt_tokens = sum_.prompt_tokens,
                                 .prompt_tokens_per_s = rate(sum_.prompt_tokens, sum_.prompt_s),
                                 .generated_tokens = sum_.tokens.size(),
                                 .generated_tokens_per_s = rate(sum_.steps, sum_.generate_s)}));
    return status;
  }

 private:
  [[nodiscard]] const Result<ChatTemplate>& chat() const { return chosen_ ? *chosen_ : model_->chat(); }

  Result<std::vector<Token>> encode_prompt() const {
    if (!options_.chat) return encode_raw(model_->tokenizer(), *options_.prompt);
    return chat()->encode(first_messages(*options_.prompt), model_->tokenizer(), true);
  }

  [[nodiscard]] std::vector<Message> first_messages(const std::string& content) const {
    std::vector<Message> messages;
    if (options_.system) messages.push_back({"system", *options_.system});
    messages.push_back({"user", content});
    return messages;
  }

  // Feeds `tokens` to the model and generates. Streams to stdout: `echo` once the prompt is done, then the text.
  // Without an echo the text is a reply.
  Result<Generation> generate(std::span<const Token> tokens, std::optional<std::string_view> echo) {
    Status written;
    bool begins = true;
    const auto show = [&](std::string_view text) {
      line_.clear();
      if (!options_.json && written) written = print(text);
      if (!options_.json && !text.empty()) is_within_line_ = !text.ends_with('\n');
      if (!written) end_soon();
    };
    const auto on_prompt = [&](std::size_t done, std::size_t total) {
      if (total > session_->prompt_step(total)) line_.show(fmt::format("prompt: {} of {} tokens", done, total));
      if (done == total && echo) show(*echo);
    };
    const auto on_text = [&](std::string_view text) {
      // The first word of a reply may begin with the space that separates words.
      if (std::exchange(begins, false) && !echo && text.starts_with(' ')) text.remove_prefix(1);
      show(text);
      return written.has_value();
    };
    const std::atomic<bool>& ending = catch_interrupts();
    on_prompt(0, tokens.size());
    // The first step waits for weights that are not in memory yet.
    if (sum_.prompt_tokens == 0 && model_->weight_bytes() >= kLargeBytes)
      line_.show(fmt::format("reading {}", options_.model));
    auto generation = models::generate(*session_, tokens, options_.generate,
                                       {.on_text = on_text, .on_prompt = on_prompt, .interrupted = &ending});
    line_.clear();
    SHUNT_TRY(written);
    if (generation)
      add_up(*generation);
    else
      begin_line();  // for the error
    return generation;
  }

  // Ends the current line of text if a terminal shows both stdout and stderr, so that a message gets its own line.
  void begin_line() {
    line_.clear();
    if (std::exchange(is_within_line_, false) && is_terminal(STDOUT_FILENO) && is_terminal(STDERR_FILENO)) say("");
  }

  void add_up(const Generation& generation) {
    sum_.prompt_tokens += generation.prompt_tokens;
    sum_.prompt_s += generation.prompt_s;
    sum_.generate_s += generation.generate_s;
    sum_.steps += generation.steps;
    sum_.tokens.insert(sum_.tokens.end(), generation.tokens.begin(), generation.tokens.end());
    sum_.stop = generation.stop;
  }

  Status answer() {
    SHUNT_TRY_ASSIGN(const std::vector<Token> tokens, encode_prompt());
    if (tokens.size() > session_->context())
      return fail(Code::invalid, fmt::format("the prompt has {} tokens, but the context holds {}; choose a larger "
                                             "context with -c, or shorten the prompt",
                                             tokens.size(), session_->context()));
    std::optional<std::string_view> echo;
    if (!options_.chat) echo = *options_.prompt;
    SHUNT_TRY_ASSIGN(const Generation generation, generate(tokens, echo));
    if (options_.json) {
      SHUNT_TRY(print_json(cli::to_json(generation, {.prompt = tokens,
                                                     .seed = options_.generate.sampling.seed,
                                                     .context = session_->context(),
                                                     .load_s = load_s_,
                                                     .devices = devices()})));
    } else {
      SHUNT_TRY(end_text());
    }
    SHUNT_TRY(summarize());
    return check_context();
  }

  Status converse() {
    if (!chat()) return fail(Code::unsupported, fmt::format("cannot chat with this model: {}", chat().error().message));
    catch_interrupts();
    note(fmt::format("Chat with {}. Ctrl-C stops a reply, Ctrl-D ends the chat.", options_.model));
    std::vector<Token> so_far;
    LineReader lines;
    Status status;
    while (status && !was_interrupted()) {
      ask("> ");
      const auto line = lines.next();
      if (!line) break;
      if (line->find_first_not_of(" \t\r") != std::string::npos) status = reply(*line, so_far);
    }
    say("");
    if (!session_->used_devices().empty()) SHUNT_TRY(summarize());
    return status;
  }

  // Does one turn of a chat. `so_far` is the whole conversation, whose end may not be in the session yet.
  Status reply(const std::string& content, std::vector<Token>& so_far) {
    const std::vector<Message> messages =
        so_far.empty() ? first_messages(content) : std::vector<Message>{{"user", content}};
    SHUNT_TRY_ASSIGN(const std::vector<Token> next, chat()->encode_next(so_far, messages, model_->tokenizer(), true));
    so_far.insert(so_far.end(), next.begin(), next.end());
    SHUNT_TRY_ASSIGN(const Generation generation, generate(std::span(so_far).subspan(session_->tokens(0).size()), {}));
    so_far.insert(so_far.end(), generation.tokens.begin(), generation.tokens.end());
    SHUNT_TRY(end_text());
    if (generation.stop == StopReason::interrupted) forget_interrupt();
    return check_context();
  }

  [[nodiscard]] Status check_context() const {
    if (sum_.stop != StopReason::context_full) return {};
    return fail(Code::invalid,
                fmt::format("the context of {} tokens is full; choose a larger one with -c, or {}", session_->context(),
                            options_.prompt ? "generate fewer with -n" : "begin a new chat"));
  }

  Status end_text() {
    is_within_line_ = false;
    return print("\n");
  }

  [[nodiscard]] std::vector<std::string> devices() const {
    return {session_->used_devices().begin(), session_->used_devices().end()};
  }

  Status summarize() {
    const std::uint32_t context = session_->context();
    const std::uint32_t threads = runtime_->devices().front().compute_units;
    note(fmt::format("devices    {}{}", fmt::join(devices(), ", "),
                     threads == 0 ? "" : fmt::format(", {}", in_words(threads, "thread"))));
    note(fmt::format("context    {} ({}), {} in use", in_words(context, "token"),
                     context_origin(options_.session, model_->config(), context), session_->tokens(0).size()));
    note(fmt::format("prompt     {}{}", in_words(sum_.prompt_tokens, "token"),
                     speed(sum_.prompt_tokens, sum_.prompt_s)));
    note(fmt::format("generated  {}{}; ended by: {}", in_words(sum_.tokens.size(), "token"),
                     speed(sum_.steps, sum_.generate_s), name_of(sum_.stop)));
    const SamplingOptions& sampling = options_.generate.sampling;
    if (!sampling.greedy && sampling.temperature > 0) note(fmt::format("seed       {}", sampling.seed));
    return {};
  }

  const RunOptions& options_;
  ProgressLine line_;
  bool is_within_line_ = false;  // whether the text on stdout is in the middle of a line
  std::unique_ptr<Runtime> runtime_;
  std::unique_ptr<models::Model> model_;
  std::optional<Result<ChatTemplate>> chosen_;  // with --template
  std::unique_ptr<Session> session_;
  double load_s_ = 0;
  Generation sum_;  // of all turns, with the stop reason of the last
};

std::string check_template(const std::string& name) {
  const std::vector<std::string_view> names = ChatTemplate::names();
  if (std::ranges::find(names, name) != names.end()) return {};
  return fmt::format("\"{}\"{} is not one of {}", name, did_you_mean(name, names), fmt::join(names, ", "));
}

Status execute(RunOptions& options) {
  options.generate.sampling = sampling_options(options.sampling);
  if (!options.prompt_file.empty()) {
    SHUNT_TRY_ASSIGN(options.prompt, read_text(options.prompt_file));
  }
  SHUNT_TRY(prepare_trace(options.trace, options.runtime, options.session.profile));
  if (options.converses()) {
    if (options.json) refuse("--json needs a prompt; give one, or pipe it in");
  } else {
    if (options.system && !options.chat) refuse("--system needs --chat; add it");
    if (!options.chat_template.empty() && !options.chat) refuse("--template needs --chat; add it");
    if (!options.prompt) {
      if (is_terminal(STDIN_FILENO)) note("Type the prompt, then Ctrl-D:");
      SHUNT_TRY_ASSIGN(options.prompt, read_stdin());
      if (options.prompt->empty())
        return fail(Code::invalid,
                    "the prompt from stdin is empty; pipe some text in, or give the prompt as an argument");
    }
  }
  return Run(options).execute();
}

}  // namespace

Action run(CommandLine& line) {
  auto options = std::make_shared<RunOptions>();
  add_model(line, options->model);
  const Option prompt = line.option("PROMPT", options->prompt, "Text to continue [a chat on a terminal, else stdin]");
  line.input("-f,--file", options->prompt_file, "Read the prompt from this file").excludes(prompt);
  const Option chat =
      line.flag("--chat", options->chat, "Send the prompt as a user's message in the model's chat format");
  const Option system = line.option("--system", options->system, "System message of the chat");
  const Option named = line.option("--template", options->chat_template,
                                   "Name of a chat format; an unknown name lists them all [the model's own]")
                           .value_name("NAME")
                           .check(check_template);
  line.flag("--raw", options->raw, "Take the prompt as it is, and never chat")
      .excludes(chat)
      .excludes(system)
      .excludes(named);
  add_number(line, "-n,--tokens", options->generate.max_tokens,
             "Number of tokens to generate at most [until the model ends the text]", 1U, 1U << 30U);
  line.option("--stop", options->generate.stops, "Stop before this text; repeat it for several texts")
      .check([](const std::string& text) { return std::string(text.empty() ? "a stop text must not be empty" : ""); });
  line.flag("--ignore-eos", options->generate.ignore_end, "Continue when the model would end the text");
  add_session(line, options->session, options->runtime);
  add_runtime(line, options->runtime);
  add_sampling(line, options->sampling);
  add_trace(line, options->trace);
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
