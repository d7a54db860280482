#include "models/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

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

// Returns -log of the probability that softmax(logits) gives to `token`.
double negative_log_likelihood(std::span<const float> logits, Token token) {
  const auto best = static_cast<double>(std::ranges::max(logits));
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit) - best);
  return best + std::log(sum) - static_cast<double>(logits[static_cast<std::size_t>(token)]);
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
    if (!last) nll_sum += negative_log_likelihood(session.logits(row), tokens[wanted[row] + 1]);
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

// Sums over the logits of all tokens so far.
struct Sums {
  double error = 0;
  double power = 0;

  void add(std::span<const float> logits, std::span<const float> exact) {
    for (std::size_t i = 0; i < exact.size(); ++i) {
      error += std::pow(static_cast<double>(logits[i]) - static_cast<double>(exact[i]), 2);
      power += std::pow(static_cast<double>(exact[i]), 2);
    }
  }
};

void compare_best(std::span<const float> logits, std::span<const float> exact, Agreement& agreement) {
  const std::vector<ScoredToken> best = best_of(exact, 2);
  if (best.size() == 2 && !(best[0].logit - best[1].logit > Agreement::kDecidedMargin)) return;
  ++agreement.decided;
  if (best_of(logits, 1).front().token == best.front().token) ++agreement.same;
}

// Runs one step in both sessions and compares the logits of each token.
Status compare_step(Session& session, Session& exact, std::span<const Token> tokens, Agreement& agreement, Sums& sums) {
  std::vector<BatchToken> batch;
  for (const Token token : tokens) batch.push_back({.sequence = 0, .token = token, .wants_logits = true});
  SHUNT_TRY(session.decode(batch));
  SHUNT_TRY(exact.decode(batch));
  for (std::size_t row = 0; row < batch.size(); ++row) {
    sums.add(session.logits(row), exact.logits(row));
    compare_best(session.logits(row), exact.logits(row), agreement);
  }
  agreement.tokens += tokens.size();
  return {};
}

}  // namespace

Result<Agreement> compare(Session& session, Session& exact, std::span<const Token> tokens,
                          const CompareOptions& options) {
  for (const Session* each : {&session, &exact}) SHUNT_TRY(check_count(*each, tokens.size(), 1));
  const std::uint32_t vocabulary = session.model().config().vocabulary;
  if (vocabulary != exact.model().config().vocabulary)
    return fail(Code::invalid, fmt::format("a model with {} tokens cannot be compared with one that has {}", vocabulary,
                                           exact.model().config().vocabulary));
  const std::size_t prompt = tokens.size() - std::min(options.alone, tokens.size());
  const std::size_t batch = std::min(usual_step(session.options()), usual_step(exact.options()));
  Agreement agreement;
  Sums sums;
  while (agreement.tokens < tokens.size()) {
    const std::size_t begin = agreement.tokens;
    if (options.progress && !options.progress(begin)) return interrupted(begin);
    const std::size_t count = begin < prompt ? std::min(prompt - begin, batch) : 1;
    SHUNT_TRY(compare_step(session, exact, tokens.subspan(begin, count), agreement, sums));
  }
  agreement.nmse = sums.error / sums.power;
  return agreement;
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
