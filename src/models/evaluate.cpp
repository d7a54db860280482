#include "models/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "ops/arithmetic.h"

namespace shunt::models {
namespace {

std::vector<ScoredToken> best_of(std::span<const float> logits, std::size_t count) {
  std::vector<Token> order(logits.size());
  std::iota(order.begin(), order.end(), 0);
  const auto logit = [&](Token id) { return logits[static_cast<std::size_t>(id)]; };
  // NaN sorts last, which makes this a strict weak order.
  const auto better = [&](Token a, Token b) {
    if (std::isnan(logit(a)) != std::isnan(logit(b))) return std::isnan(logit(b));
    return logit(a) > logit(b) || (!(logit(b) > logit(a)) && a < b);
  };
  const auto end = order.begin() + static_cast<std::ptrdiff_t>(std::min(count, order.size()));
  std::ranges::partial_sort(order, end, better);
  std::vector<ScoredToken> top;
  std::transform(order.begin(), end, std::back_inserter(top), [&](Token id) { return ScoredToken{id, logit(id)}; });
  return top;
}

// The distribution that softmax makes of logits.
class Distribution {
 public:
  explicit Distribution(std::span<const float> logits) : logits_(logits) {
    const auto best = static_cast<double>(std::ranges::max(logits));
    double sum = 0;
    for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - best);
    log_sum_ = best + std::log(sum);
  }

  [[nodiscard]] std::size_t size() const { return logits_.size(); }
  [[nodiscard]] double log_of(std::size_t token) const { return static_cast<double>(logits_[token]) - log_sum_; }
  [[nodiscard]] double negative_log_likelihood(Token token) const { return -log_of(static_cast<std::size_t>(token)); }

 private:
  std::span<const float> logits_;
  double log_sum_ = 0;
};

double kl_divergence(const Distribution& exact, const Distribution& other) {
  double sum = 0;
  for (std::size_t token = 0; token < exact.size(); ++token)
    sum += std::exp(exact.log_of(token)) * (exact.log_of(token) - other.log_of(token));
  return sum;
}

// Runs the tokens [begin, end) in one step and adds their negative log likelihoods to `nll_sum`.
Status step(Session& session, std::size_t begin, std::size_t end, const EvaluateOptions& options,
            Evaluation& evaluation, double& nll_sum) {
  const std::vector<Token>& tokens = evaluation.tokens;
  std::vector<BatchToken> batch;
  std::vector<std::size_t> wanted;
  for (std::size_t i = begin; i < end; ++i) {
    const bool wants = options.every || options.perplexity || i + 1 == tokens.size();
    if (wants) wanted.push_back(i);
    batch.push_back({.sequence = 0, .token = tokens[i], .wants_logits = wants});
  }
  SHUNT_TRY(session.decode(batch));
  for (std::size_t row = 0; row < wanted.size(); ++row) {
    const bool last = wanted[row] + 1 == tokens.size();
    if (!last) nll_sum += Distribution(session.logits(row)).negative_log_likelihood(tokens[wanted[row] + 1]);
    if (last || options.every) evaluation.tops.push_back(best_of(session.logits(row), options.top));
  }
  return {};
}

// Errors: invalid for too few tokens, and for more than the context holds.
Status check_count(const Session& session, std::size_t count, std::size_t least) {
  if (count < least)
    return fail(Code::invalid,
                fmt::format("{} tokens are too few to evaluate, at least {} must be given", count, least));
  if (count > session.context())
    return fail(Code::invalid, fmt::format("{} tokens do not fit the context of {}; choose a larger one with -c", count,
                                           session.context()));
  return {};
}

std::unexpected<Error> interrupted(std::size_t done) {
  return fail(Code::interrupted, fmt::format("interrupted after {} tokens", done));
}

// Compares two sessions token by token.
class Comparison {
 public:
  Comparison(Session& session, Session& exact, std::span<const Token> tokens)
      : session_(session), exact_(exact), tokens_(tokens) {
    agreement_.numerics = session.options().numerics;
  }

  [[nodiscard]] std::size_t done() const { return agreement_.tokens; }

  // Runs the next tokens through both sessions in one step, and compares the results of each.
  Status step(std::size_t count) {
    std::vector<BatchToken> batch;
    for (const Token token : tokens_.subspan(done(), count))
      batch.push_back({.sequence = 0, .token = token, .wants_logits = true});
    SHUNT_TRY(session_.decode(batch));
    SHUNT_TRY(exact_.decode(batch));
    for (std::size_t row = 0; row < count; ++row) add(session_.logits(row), exact_.logits(row));
    return {};
  }

  [[nodiscard]] Agreement result() const {
    Agreement agreement = agreement_;
    const auto tokens = static_cast<double>(agreement.tokens);
    agreement.nmse = error_ / power_;
    agreement.mean_kl = kl_ / tokens;
    if (agreement.tokens == 1) return agreement;
    agreement.mean_nll = nll_ / (tokens - 1);
    agreement.exact_mean_nll = exact_nll_ / (tokens - 1);
    return agreement;
  }

 private:
  void add(std::span<const float> logits, std::span<const float> exact) {
    for (std::size_t i = 0; i < exact.size(); ++i) {
      error_ += std::pow(static_cast<double>(logits[i]) - static_cast<double>(exact[i]), 2);
      power_ += std::pow(static_cast<double>(exact[i]), 2);
    }
    add_distributions(Distribution(logits), Distribution(exact));
    add_best(best_of(logits, 1).front().token, best_of(exact, 2));
    ++agreement_.tokens;
  }

  void add_distributions(const Distribution& here, const Distribution& exact) {
    const double kl = kl_divergence(exact, here);
    kl_ += kl;
    agreement_.largest_kl = std::max(agreement_.largest_kl, kl);
    if (done() + 1 == tokens_.size()) return;
    nll_ += here.negative_log_likelihood(tokens_[done() + 1]);
    exact_nll_ += exact.negative_log_likelihood(tokens_[done() + 1]);
  }

  void add_best(Token best, std::span<const ScoredToken> exact) {
    const bool is_same = best == exact.front().token;
    if (is_same) ++agreement_.same_best;
    if (exact.size() == 2 && !(exact[0].logit - exact[1].logit > Agreement::kDecidedMargin)) return;
    ++agreement_.decided;
    if (is_same) ++agreement_.same;
  }

  Session& session_;
  Session& exact_;
  std::span<const Token> tokens_;
  Agreement agreement_;  // result() adds its means
  double error_ = 0;
  double power_ = 0;
  double kl_ = 0;
  double nll_ = 0;
  double exact_nll_ = 0;
};

}  // namespace

double kl_divergence(std::span<const float> exact, std::span<const float> logits) {
  return kl_divergence(Distribution(exact), Distribution(logits));
}

double Agreement::perplexity_change() const {
  return mean_nll && exact_mean_nll ? std::abs(std::expm1(*mean_nll - *exact_mean_nll)) : 0;
}

bool Agreement::ok() const {
  const NumericsBounds& most = bounds_of(numerics);
  return nmse <= most.nmse && mean_kl <= most.mean_kl && perplexity_change() <= most.perplexity &&
         (numerics != Numerics::exact || same == decided);
}

Result<Agreement> compare(Session& session, Session& exact, std::span<const Token> tokens,
                          const CompareOptions& options) {
  for (const Session* each : {&session, &exact}) SHUNT_TRY(check_count(*each, tokens.size(), 1));
  const std::uint32_t vocabulary = session.model().config().vocabulary;
  if (vocabulary != exact.model().config().vocabulary)
    return fail(Code::invalid, fmt::format("a model with {} tokens cannot be compared with one that has {}", vocabulary,
                                           exact.model().config().vocabulary));
  const std::size_t prompt = tokens.size() - std::min(options.alone, tokens.size());
  const std::size_t batch = std::min(usual_step(session.options()), usual_step(exact.options()));
  Comparison comparison(session, exact, tokens);
  while (comparison.done() < tokens.size()) {
    const std::size_t begin = comparison.done();
    if (options.progress && !options.progress(begin)) return interrupted(begin);
    SHUNT_TRY(comparison.step(begin < prompt ? std::min(prompt - begin, batch) : 1));
  }
  return comparison.result();
}

Result<Evaluation> evaluate(Session& session, std::span<const Token> tokens, const EvaluateOptions& options) {
  SHUNT_TRY(check_count(session, tokens.size(), options.perplexity ? 2 : 1));
  Evaluation evaluation{.tokens = {tokens.begin(), tokens.end()}};
  double nll_sum = 0;
  for (std::size_t begin = 0; begin < tokens.size(); begin += usual_step(session.options())) {
    if (options.progress && !options.progress(begin)) return interrupted(begin);
    const std::size_t end = std::min<std::size_t>(tokens.size(), begin + usual_step(session.options()));
    SHUNT_TRY(step(session, begin, end, options, evaluation, nll_sum));
  }
  if (options.perplexity) evaluation.mean_nll = nll_sum / static_cast<double>(tokens.size() - 1);
  return evaluation;
}

}  // namespace shunt::models
