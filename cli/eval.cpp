// shunt eval: the best next tokens of a text, and its perplexity.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <sstream>

#include "command.h"
#include "interrupt.h"
#include "loading.h"
#include "options.h"
#include "output.h"

namespace shunt::cli {
namespace {

using models::BatchToken;
using models::Session;
using models::Token;

struct Options {
  std::string model;
  std::optional<std::string> text;
  std::optional<std::string> tokens;
  std::uint32_t top = 10;
  bool every = false;
  bool perplexity = false;
  models::SessionOptions session;
  RuntimeOptions runtime;
  std::string trace;
  bool json = false;
};

struct Scored {
  Token id = 0;
  float logit = 0;
};
using Top = std::vector<Scored>;

// Rows of logits of one step where all are wanted: with a vocabulary of 128k tokens 32 MiB.
constexpr std::uint32_t kRowsPerStep = 64;

std::vector<Token> parse_ids(const std::string& list) {
  std::vector<Token> tokens;
  std::istringstream words(list);
  for (std::string word; words >> word;) {
    Token token = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (error != std::errc() || end != word.data() + word.size() || token < 0)
      refuse(fmt::format("--tokens: \"{}\" is no token id; give numbers with spaces between them", word));
    tokens.push_back(token);
  }
  return tokens;
}

Top best_of(std::span<const float> logits, std::size_t count) {
  std::vector<Token> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](Token id) { return logits[static_cast<std::size_t>(id)]; };
  // Not-a-number comes last, so that this is an order.
  const auto better = [&](Token a, Token b) {
    if (std::isnan(logit(a)) != std::isnan(logit(b))) return std::isnan(logit(b));
    return logit(a) > logit(b) || (!(logit(b) > logit(a)) && a < b);
  };
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::ranges::partial_sort(order, end, better);
  Top top;
  std::transform(order.begin(), end, std::back_inserter(top), [&](Token id) { return Scored{id, logit(id)}; });
  return top;
}

// -log of the probability that softmax(logits) gives to `token`.
double negative_log_likelihood(std::span<const float> logits, Token token) {
  const auto best = static_cast<double>(std::ranges::max(logits));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - best);
  return best + std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(token)]);
}

Json to_json(const Top& top) {
  Json json = Json::array();
  for (const Scored& entry : top) json.push_back({{"id", entry.id}, {"logit", entry.logit}});
  return json;
}

// What one evaluation finds out.
class Evaluation {
 public:
  Evaluation(const Options& options, std::vector<Token> tokens) : options_(options), tokens_(std::move(tokens)) {}

  Status run(Session& session) {
    const std::atomic<bool>& ending = catch_interrupts();
    ProgressLine line;
    for (std::size_t begin = 0; begin < tokens_.size(); begin += session.options().batch) {
      if (ending.load()) return fail(Code::invalid, fmt::format("interrupted after {} tokens", begin));
      if (tokens_.size() > session.options().batch) line.show(fmt::format("{} of {} tokens", begin, tokens_.size()));
      SHUNT_TRY(step(session, begin, std::min<std::size_t>(tokens_.size(), begin + session.options().batch)));
    }
    return {};
  }

  [[nodiscard]] Json json() const {
    Json json = {{"tokens", tokens_}, {"top", Json::array()}, {"mean_nll", nullptr}, {"perplexity", nullptr}};
    if (options_.every)
      for (const Top& top : tops_) json["top"].push_back(to_json(top));
    else
      json["top"] = to_json(tops_.back());
    if (options_.perplexity) {
      json["mean_nll"] = mean_nll();
      json["perplexity"] = std::exp(mean_nll());
    }
    return json;
  }

  [[nodiscard]] std::string text(const models::Tokenizer& tokenizer) const {
    std::string text;
    for (std::size_t index = 0; index < tops_.size(); ++index) {
      const std::size_t position = options_.every ? index : tokens_.size() - 1;
      const Token after = tokens_[position];
      text += fmt::format("after token {} of {}, {} {}:\n", position + 1, tokens_.size(), after,
                          in_quotes(tokenizer.piece(after, true)));
      for (const Scored& entry : tops_[index])
        text +=
            fmt::format("{:>8}  {:>10.5f}  {}\n", entry.id, entry.logit, in_quotes(tokenizer.piece(entry.id, true)));
    }
    if (options_.perplexity)
      text += fmt::format("perplexity {:.5f}, mean negative log likelihood {:.6f}, over {} tokens\n",
                          std::exp(mean_nll()), mean_nll(), tokens_.size() - 1);
    return text;
  }

 private:
  [[nodiscard]] double mean_nll() const { return nll_sum_ / static_cast<double>(tokens_.size() - 1); }

  Status step(Session& session, std::size_t begin, std::size_t end) {
    std::vector<BatchToken> batch;
    std::vector<std::size_t> wanted;
    for (std::size_t i = begin; i < end; ++i) {
      const bool wants = options_.every || options_.perplexity || i + 1 == tokens_.size();
      if (wants) wanted.push_back(i);
      batch.push_back({.sequence = 0, .token = tokens_[i], .wants_logits = wants});
    }
    SHUNT_TRY(session.decode(batch));
    for (std::size_t row = 0; row < wanted.size(); ++row) {
      const std::size_t position = wanted[row];
      const bool last = position + 1 == tokens_.size();
      if (!last) nll_sum_ += negative_log_likelihood(session.logits(row), tokens_[position + 1]);
      if (last || options_.every) tops_.push_back(best_of(session.logits(row), options_.top));
    }
    return {};
  }

  const Options& options_;
  std::vector<Token> tokens_;
  std::vector<Top> tops_;  // of each position, or of the last one only
  double nll_sum_ = 0;
};

Status execute(Options& options) {
  if (options.text.has_value() == options.tokens.has_value()) refuse("give either --text or --tokens");
  std::vector<Token> tokens;
  if (options.tokens) tokens = parse_ids(*options.tokens);
  SHUNT_TRY(prepare_trace(options.trace, options.model, options.runtime, options.session));
  SHUNT_TRY_ASSIGN(const auto runtime, open_runtime(options.runtime));
  SHUNT_TRY_ASSIGN(const auto model, load_model(options.model));
  if (options.text) {
    SHUNT_TRY_ASSIGN(tokens, encode_raw(model->tokenizer(), *options.text));
  }
  if (tokens.empty()) refuse("there is nothing to evaluate: no tokens are given");
  if (options.perplexity && tokens.size() < 2) refuse("--perplexity needs at least two tokens");
  if (options.every || options.perplexity) options.session.batch = kRowsPerStep;
  SHUNT_TRY_ASSIGN(const auto session, Session::create(*model, *runtime, options.session));
  if (tokens.size() > session->context())
    return fail(Code::invalid, fmt::format("{} tokens do not fit the context of {}; choose a larger one with -c",
                                           tokens.size(), session->context()));
  Evaluation evaluation(options, std::move(tokens));
  SHUNT_TRY(evaluation.run(*session));
  SHUNT_TRY(write_trace(*runtime, options.trace));
  return options.json ? print_json(evaluation.json()) : print(evaluation.text(model->tokenizer()));
}

}  // namespace

Action eval(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_model(app, options->model);
  app.add_option("--text", options->text, "Evaluate this text; special tokens in it are parsed, BOS is added");
  app.add_option("--tokens", options->tokens, "Evaluate these tokens, such as \"1 2 3\"; nothing is added")
      ->type_name("IDS");
  add_number(app, "--top", options->top, fmt::format("How many of the best next tokens to show [{}]", options->top), 1U,
             1U << 30U);
  app.add_flag("--every", options->every, "Show them after every token, not only after the last");
  app.add_flag("--perplexity", options->perplexity, "Show the mean negative log likelihood and the perplexity");
  add_session(app, options->session);
  add_runtime(app, options->runtime);
  add_trace(app, options->trace);
  add_json(app, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
