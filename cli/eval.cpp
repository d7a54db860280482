// shunt eval: shows the most likely next tokens of a text or its perplexity, or compares the results with exact ones.
#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <sstream>

#include "answers.h"
#include "command.h"
#include "input.h"
#include "interrupt.h"
#include "loading.h"
#include "ops/arithmetic.h"
#include "options.h"
#include "output.h"

namespace shunt::cli {
namespace {

using models::Agreement;
using models::Evaluation;
using models::Session;

// The value of --against that names no device.
constexpr std::string_view kSameDevices = "exact";

struct EvalOptions {
  std::string model;
  std::optional<std::string> text;
  std::string text_file;
  std::optional<std::string> tokens;
  std::uint32_t top = 10;
  bool every = false;
  bool perplexity = false;
  std::string against;  // devices, or kSameDevices
  SessionOptions session;
  RuntimeOptions runtime;
  std::string trace;
  bool json = false;
};

std::vector<Token> parse_ids(const std::string& list) {
  std::vector<Token> tokens;
  std::istringstream words(list);
  for (std::string word; words >> word;) {
    Token token = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (error != std::errc() || end != word.data() + word.size() || token < 0)
      refuse(fmt::format("--tokens: \"{}\" is not a token id; give numbers separated by spaces", word));
    tokens.push_back(token);
  }
  return tokens;
}

std::string to_text(const Evaluation& evaluation, const EvalOptions& options, const models::Tokenizer& tokenizer) {
  const std::size_t count = evaluation.tokens.size();
  std::string text;
  for (std::size_t index = 0; index < evaluation.tops.size(); ++index) {
    const std::size_t position = options.every ? index : count - 1;
    const Token after = evaluation.tokens[position];
    text += fmt::format("after token {} of {}, {} {}:\n", position + 1, count, after,
                        in_quotes(tokenizer.piece(after, true)));
    for (const models::ScoredToken& entry : evaluation.tops[index])
      text += fmt::format("{:>8}  {:>10.5f}  {}\n", entry.token, entry.logit,
                          in_quotes(tokenizer.piece(entry.token, true)));
  }
  if (evaluation.mean_nll)
    text += fmt::format("perplexity {:.5f}, mean negative log likelihood {:.6f}, over {} tokens\n",
                        std::exp(*evaluation.mean_nll), *evaluation.mean_nll, count - 1);
  return text;
}

// Evaluates with a progress line; Ctrl-C ends it.
Result<Evaluation> evaluate(Session& session, const std::vector<Token>& tokens, const EvalOptions& options) {
  const std::atomic<bool>& ending = catch_interrupts();
  ProgressLine line;
  return models::evaluate(
      session, tokens,
      {.top = options.top, .every = options.every, .perplexity = options.perplexity, .progress = [&](std::size_t done) {
         if (tokens.size() > models::usual_step(session.options()))
           line.show(fmt::format("{} of {} tokens", done, tokens.size()));
         return !ending.load();
       }});
}

std::string allowed(double most) { return std::isinf(most) ? std::string() : fmt::format(" (allowed: {})", most); }

std::string to_text(const Agreement& agreement, const std::string& against) {
  const NumericsBounds& most = bounds_of(agreement.numerics);
  std::string text =
      fmt::format("{} numerics against exact ones of {}, {}:\n", name_of(agreement.numerics),
                  against == kSameDevices ? "the same devices" : against, in_words(agreement.tokens, "token"));
  text += fmt::format("  mean KL divergence  {:.2g} nats{}; largest {:.2g}\n", agreement.mean_kl, allowed(most.mean_kl),
                      agreement.largest_kl);
  if (agreement.mean_nll)
    text += fmt::format("  perplexity          {:.5f}, exact {:.5f}; relative change {:.2g}{}\n",
                        std::exp(*agreement.mean_nll), std::exp(*agreement.exact_mean_nll),
                        agreement.perplexity_change(), allowed(most.perplexity));
  text +=
      fmt::format("  same best token     {} of {}; {} of the {} whose two best logits are more than {} apart\n",
                  agreement.same_best, agreement.tokens, agreement.same, agreement.decided, Agreement::kDecidedMargin);
  return text + fmt::format("  NMSE of the logits  {:.2g}{}\n", agreement.nmse, allowed(most.nmse));
}

// Compares the session with an exact one on the devices of --against. Errors: internal if they differ by more than the
// session's numerics may.
Status compare(const models::Model& model, const Runtime& same, Session& session, const std::vector<Token>& tokens,
               const EvalOptions& options) {
  std::unique_ptr<Runtime> others;
  if (options.against != kSameDevices) {
    RuntimeOptions chosen = options.runtime;
    chosen.devices = options.against;
    chosen.trace = false;
    SHUNT_TRY_ASSIGN(others, open_runtime(chosen, "--against"));
  }
  SessionOptions exactly = options.session;
  exactly.numerics = Numerics::exact;
  SHUNT_TRY_ASSIGN(const auto exact, Session::create(model, others ? *others : same, exactly));
  const std::atomic<bool>& ending = catch_interrupts();
  ProgressLine line;
  SHUNT_TRY_ASSIGN(const Agreement agreement,
                   models::compare(session, *exact, tokens, {.progress = [&](std::size_t done) {
                                     line.show(fmt::format("{} of {} tokens", done, tokens.size()));
                                     return !ending.load();
                                   }}));
  line.clear();
  SHUNT_TRY(options.json ? print_json(cli::to_json(agreement)) : print(to_text(agreement, options.against)));
  if (agreement.ok()) return {};
  return fail(Code::internal,
              fmt::format("the results differ from exact ones by more than {} numerics may (docs/numerics.md); run "
                          "shunt verify to see which ops differ",
                          name_of(agreement.numerics)));
}

Status execute(EvalOptions& options) {
  if (!options.against.empty() && (options.every || options.perplexity))
    refuse("--against excludes --every and --perplexity; leave them out");
  if (!options.text_file.empty()) {
    SHUNT_TRY_ASSIGN(options.text, read_text(options.text_file));
  }
  if (!options.text && !options.tokens) refuse("there is nothing to evaluate; give --text, --file or --tokens");
  std::vector<Token> tokens;
  if (options.tokens) tokens = parse_ids(*options.tokens);
  SHUNT_TRY(prepare_trace(options.trace, options.runtime, options.session.profile));
  SHUNT_TRY_ASSIGN(const auto runtime, open_runtime(options.runtime));
  SHUNT_TRY_ASSIGN(const auto model, models::Model::load(options.model));
  if (options.text) {
    SHUNT_TRY_ASSIGN(tokens, encode_raw(model->tokenizer(), *options.text));
  }
  if (tokens.empty())
    refuse("there is nothing to evaluate: no tokens are given; name some with --tokens, --text or --file");
  if (options.perplexity && tokens.size() < 2) refuse("--perplexity needs at least two tokens; give a longer text");
  if (options.every || options.perplexity || !options.against.empty())
    options.session.max_batch_tokens = models::kEvaluatedRowsPerStep;
  SHUNT_TRY_ASSIGN(const auto session, Session::create(*model, *runtime, options.session));
  const Origin origin = origin_of("eval", options.model, *session, *runtime, options.runtime);
  if (!options.against.empty()) {
    SHUNT_TRY(compare(*model, *runtime, *session, tokens, options));
    return write_trace(*runtime, options.trace, origin);
  }
  SHUNT_TRY_ASSIGN(const Evaluation evaluation, evaluate(*session, tokens, options));
  SHUNT_TRY(write_trace(*runtime, options.trace, origin));
  return options.json ? print_json(cli::to_json(evaluation, options.every))
                      : print(to_text(evaluation, options, model->tokenizer()));
}

}  // namespace

Action eval(CommandLine& line) {
  auto options = std::make_shared<EvalOptions>();
  add_model(line, options->model);
  const Option text =
      line.option("--text", options->text, "Evaluate this text; special tokens are parsed, and BOS is added");
  const Option file =
      line.input("-f,--file", options->text_file, "Evaluate the text in this file, as --text does").excludes(text);
  line.option("--tokens", options->tokens, "Evaluate these tokens, such as \"1 2 3\"; nothing is added")
      .value_name("IDS")
      .excludes(text)
      .excludes(file);
  add_number(line, "--top", options->top, fmt::format("Number of most likely next tokens to show [{}]", options->top),
             1U, 1U << 30U);
  line.flag("--every", options->every, "Show them after every token, instead of after the last one only");
  line.flag("--perplexity", options->perplexity, "Show the mean negative log likelihood and the perplexity");
  line.option(
          "--against", options->against,
          fmt::format("Compare the results with exact ones of these devices, such as cpu:scalar, or, given \"{}\", of "
                      "the same ones; exit with 1 if they differ by more than --numerics may",
                      kSameDevices))
      .value_name("DEVICES");
  add_session(line, options->session, options->runtime);
  add_runtime(line, options->runtime);
  add_trace(line, options->trace);
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
