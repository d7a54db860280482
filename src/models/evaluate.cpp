#include "models/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shunt::models {
namespace {

std::vector<Scored> best_of(std::span<const float> logits, std::size_t count) {
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
  std::vector<Scored> top;
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

// The tokens [begin, end) in one step. Their likelihoods are added to `nll_sum`.
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

}  // namespace

Result<Evaluation> evaluate(Session& session, std::span<const Token> tokens, const EvaluateOptions& options) {
  const std::size_t least = options.perplexity ? 2 : 1;
  if (tokens.size() < least)
    return fail(Code::invalid,
                fmt::format("{} tokens are too few to evaluate, at least {} must be given", tokens.size(), least));
  if (tokens.size() > session.context())
    return fail(Code::invalid, fmt::format("{} tokens do not fit the context of {}; choose a larger one with -c",
                                           tokens.size(), session.context()));
  Evaluation evaluation{.tokens = {tokens.begin(), tokens.end()}};
  double nll_sum = 0;
  for (std::size_t begin = 0; begin < tokens.size(); begin += session.options().batch) {
    if (options.progress && !options.progress(begin))
      return fail(Code::invalid, fmt::format("interrupted after {} tokens", begin));
    const std::size_t end = std::min<std::size_t>(tokens.size(), begin + session.options().batch);
    SHUNT_TRY(step(session, begin, end, options, evaluation, nll_sum));
  }
  if (options.perplexity) evaluation.mean_nll = nll_sum / static_cast<double>(tokens.size() - 1);
  return evaluation;
}

}  // namespace shunt::models
