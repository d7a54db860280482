// shunt eval: logits and perplexity of a text.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <sstream>

#include "command.h"

namespace shunt::cli {
namespace {

using namespace models;

struct Options {
  std::string model;
  std::string text;
  std::string tokens;
  std::size_t top = 10;
  bool every = false;
  bool perplexity = false;
  SessionArguments session;
  RuntimeOptions runtime;
  bool json = false;
};

Result<std::vector<Token>> tokens_of(const Options& options, const Tokenizer& tokenizer) {
  if (options.tokens.empty())
    return tokenizer.encode(options.text, {.add_bos = tokenizer.adds_bos(), .parse_special = true});
  std::vector<Token> tokens;
  std::istringstream words(options.tokens);
  for (std::string word; words >> word;) {
    Token token = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), token);
    if (error != std::errc() || end != word.data() + word.size())
      return fail(Code::invalid, fmt::format("--tokens: \"{}\" is no token id", word));
    tokens.push_back(token);
  }
  return tokens;
}

Json best_of(std::span<const float> logits, std::size_t count) {
  std::vector<std::size_t> order(logits.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  count = std::min(count, order.size());
  std::ranges::partial_sort(
      order, order.begin() + static_cast<std::ptrdiff_t>(count),
      [&](std::size_t a, std::size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
  Json top = Json::array();
  for (std::size_t i = 0; i < count; ++i) top.push_back({{"id", order[i]}, {"logit", logits[order[i]]}});
  return top;
}

// -log of the probability that softmax(logits) gives to `token`.
double negative_log_likelihood(std::span<const float> logits, Token token) {
  const auto best = static_cast<double>(*std::ranges::max_element(logits));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - best);
  return best + std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(token)]);
}

class Eval {
 public:
  explicit Eval(const Options& options) : options_(options) {}

  Status execute() {
    SHUNT_TRY_ASSIGN(const auto runtime, Runtime::create(options_.runtime));
    SHUNT_TRY_ASSIGN(const auto model, load_model(options_.model));
    SHUNT_TRY_ASSIGN(const std::vector<Token> tokens, tokens_of(options_, model->tokenizer()));
    if (tokens.empty()) return fail(Code::invalid, "there are no tokens; give --text or --tokens");
    SHUNT_TRY_ASSIGN(SessionOptions settings, session_options(options_.session));
    // Rows of logits of one step, in memory at once.
    if (options_.every || options_.perplexity) settings.batch = kRowsPerStep;
    SHUNT_TRY_ASSIGN(const auto session, Session::create(*model, *runtime, settings));
    if (tokens.size() > session->context())
      return fail(Code::invalid, fmt::format("{} tokens do not fit the context of {}; choose a larger one (-c)",
                                             tokens.size(), session->context()));
    ProgressLine line;
    for (std::size_t begin = 0; begin < tokens.size(); begin += settings.batch) {
      SHUNT_TRY(step(*session, tokens, begin, std::min<std::size_t>(tokens.size(), begin + settings.batch)));
      line.show(
          fmt::format("{} of {} tokens", std::min<std::size_t>(begin + settings.batch, tokens.size()), tokens.size()));
    }
    line.clear();
    return report(tokens);
  }

 private:
  static constexpr std::uint32_t kRowsPerStep = 64;

  Status step(Session& session, std::span<const Token> tokens, std::size_t begin, std::size_t end) {
    std::vector<BatchToken> batch;
    std::vector<std::size_t> wanted;
    for (std::size_t i = begin; i < end; ++i) {
      const bool wants = options_.every || options_.perplexity || i + 1 == tokens.size();
      if (wants) wanted.push_back(i);
      batch.push_back({.sequence = 0, .token = tokens[i], .wants_logits = wants});
    }
    SHUNT_TRY(session.decode(batch));
    for (std::size_t row = 0; row < wanted.size(); ++row) {
      const auto logits = session.logits(row);
      const std::size_t position = wanted[row];
      if (position + 1 < tokens.size()) nll_sum_ += negative_log_likelihood(logits, tokens[position + 1]);
      if (options_.every) tops_.push_back(best_of(logits, options_.top));
      if (position + 1 == tokens.size()) last_ = best_of(logits, options_.top);
    }
    return {};
  }

  Status report(const std::vector<Token>& tokens) {
    Json json = {{"tokens", tokens}, {"top", options_.every ? tops_ : last_}};
    const double mean = tokens.size() > 1 ? nll_sum_ / static_cast<double>(tokens.size() - 1) : 0;
    if (options_.perplexity) {
      json["mean_nll"] = mean;
      json["perplexity"] = std::exp(mean);
    }
    if (options_.json) return print_json(json);
    std::string text;
    if (options_.perplexity)
      text +=
          fmt::format("mean nll {:.6f}, perplexity {:.6f} over {} tokens\n", mean, std::exp(mean), tokens.size() - 1);
    const auto list = [&](const Json& top) {
      for (const Json& entry : top)
        text += fmt::format("{:>8} {:>12.5f}\n", entry["id"].get<std::size_t>(), entry["logit"].get<double>());
    };
    if (options_.every)
      for (std::size_t i = 0; i < tops_.size(); ++i) {
        text += fmt::format("after token {} ({})\n", i, tokens[i]);
        list(tops_[i]);
      }
    else if (!options_.perplexity)
      list(last_);
    return print(text);
  }

  const Options& options_;
  double nll_sum_ = 0;
  Json tops_ = Json::array();
  Json last_ = Json::array();
};

}  // namespace

Action eval(CLI::App& command);
Action eval(CLI::App& command) {
  auto options = std::make_shared<Options>();
  add_model(command, options->model);
  CLI::Option_group* source = command.add_option_group("source", "What to evaluate");
  source->add_option("--text", options->text, "Text; special tokens in it are parsed, BOS is added");
  source->add_option("--tokens", options->tokens, "Token ids, \"1 2 3\"; nothing is added");
  source->require_option(1);
  command.add_option("--top", options->top, "How many of the best logits to show")->capture_default_str();
  command.add_flag("--every", options->every, "Show them after every token, not only after the last");
  command.add_flag("--perplexity", options->perplexity, "Mean negative log likelihood and perplexity");
  add_session(command, options->session);
  add_runtime(command, options->runtime);
  add_json(command, options->json);
  return [options] { return Eval(*options).execute(); };
}

}  // namespace shunt::cli
