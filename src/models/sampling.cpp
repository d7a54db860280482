#include "models/sampling.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace shunt::models {
namespace {

Status check(bool good, std::string_view option, float value, std::string_view possible) {
  if (good) return {};
  return fail(Code::invalid, fmt::format("sampling: {} is {}; it must be {}", option, value, possible));
}

// A total order, so that sorting gives the same result on every platform.
constexpr auto kBetter = [](const auto& a, const auto& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.token < b.token;
};

// Returns exp((logit - best) / temperature). If the best logit is infinite, only logits equal to it count.
double weight_of(float logit, float best, float temperature) {
  if (logit == best) return 1.0;
  if (std::isinf(best)) return 0.0;
  return std::exp((static_cast<double>(logit) - static_cast<double>(best)) / static_cast<double>(temperature));
}

}  // namespace

Status validate(const SamplingOptions& options) {
  SHUNT_TRY(check(options.temperature >= 0 && std::isfinite(options.temperature), "temperature", options.temperature,
                  "0 (greedy) or more"));
  SHUNT_TRY(check(options.top_p > 0 && options.top_p <= 1, "top_p", options.top_p, "above 0 and at most 1 (off)"));
  SHUNT_TRY(check(options.min_p >= 0 && options.min_p <= 1, "min_p", options.min_p, "from 0 (off) to 1"));
  return check(options.repeat_penalty > 0 && std::isfinite(options.repeat_penalty), "repeat_penalty",
               options.repeat_penalty, "above 0; 1 is off");
}

std::uint64_t SplitMix64::next() {
  state_ += 0x9E3779B97F4A7C15U;
  std::uint64_t mixed = state_;
  mixed = (mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9U;
  mixed = (mixed ^ (mixed >> 27)) * 0x94D049BB133111EBU;
  return mixed ^ (mixed >> 31);
}

double SplitMix64::next_unit() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }

Result<Sampler> Sampler::create(const SamplingOptions& options) {
  SHUNT_TRY(validate(options));
  return Sampler(options);
}

Result<std::int32_t> Sampler::sample(std::span<const float> logits, std::span<const std::int32_t> history) {
  collect(logits, history, most());
  return choose(logits.size());
}

Result<std::int32_t> Sampler::sample(std::span<const ScoredToken> best, std::span<const std::int32_t> history) {
  note_recent(history);
  candidates_.clear();
  for (const ScoredToken& scored : best) {
    const bool is_recent = std::ranges::binary_search(recent_, scored.token);
    const float logit = is_recent ? penalized(scored.logit) : scored.logit;
    candidates_.push_back({.logit = logit, .token = scored.token, .weight = 0});
  }
  std::ranges::sort(candidates_, kBetter);
  candidates_.resize(std::min(candidates_.size(), most()));
  return choose(best.size());
}

std::size_t Sampler::most() const {
  if (is_greedy()) return 1;
  return options_.top_k == 0 ? std::numeric_limits<std::size_t>::max() : options_.top_k;
}

std::uint32_t Sampler::needed(std::uint32_t vocabulary) const {
  if (most() >= vocabulary || options_.repeat_penalty < 1) return 0;
  // A penalty may move recent tokens down, each by any number of places.
  const std::size_t needed = most() + (options_.repeat_penalty > 1 ? options_.repeat_last_n : 0);
  return needed < vocabulary ? static_cast<std::uint32_t>(needed) : 0;
}

Result<std::int32_t> Sampler::choose(std::size_t logits) {
  const double unit = is_greedy() ? 0 : random_.next_unit();
  if (candidates_.empty())
    return fail(Code::invalid, fmt::format("sampling: none of the {} logits is a number", logits));
  const Candidate best = *std::ranges::min_element(candidates_, kBetter);
  if (is_greedy() || best.logit == -std::numeric_limits<float>::infinity()) return best.token;
  keep_probable(best.logit);
  return draw(unit);
}

void Sampler::note_recent(std::span<const std::int32_t> history) {
  recent_.clear();
  if (options_.repeat_penalty == 1) return;
  const auto last = history.last(std::min<std::size_t>(history.size(), options_.repeat_last_n));
  recent_.assign(last.begin(), last.end());
  std::ranges::sort(recent_);
  const auto twice = std::ranges::unique(recent_);
  recent_.erase(twice.begin(), twice.end());
}

float Sampler::penalized(float logit) const {
  return logit > 0 ? logit / options_.repeat_penalty : logit * options_.repeat_penalty;
}

void Sampler::collect(std::span<const float> logits, std::span<const std::int32_t> history, std::size_t most) {
  note_recent(history);
  candidates_.clear();
  candidates_.reserve(std::min(most, logits.size()));
  has_dropped_ = false;
  std::size_t begin = 0;
  for (const std::int32_t token : recent_) {
    if (token < 0 || static_cast<std::size_t>(token) >= logits.size()) continue;
    const auto at = static_cast<std::size_t>(token);
    collect_from(logits, begin, at, most);
    consider(penalized(logits[at]), token, most);
    begin = at + 1;
  }
  collect_from(logits, begin, logits.size(), most);
  // A heap's order depends on the platform, and with it how sums over the candidates round.
  if (has_dropped_) std::ranges::sort(candidates_, kBetter);
}

void Sampler::collect_from(std::span<const float> logits, std::size_t begin, std::size_t end, std::size_t most) {
  // Few logits are among the best so far, so most stretches are only compared, many at once.
  constexpr std::size_t kStretch = 64;
  while (begin < end) {
    const std::size_t stretch_end = std::min(end, begin + kStretch);
    unsigned some = has_dropped_ ? 0 : 1;
    if (has_dropped_) {
      const float worst = candidates_.front().logit;
      for (std::size_t i = begin; i < stretch_end; ++i) some |= logits[i] > worst ? 1U : 0U;
    }
    for (; some != 0 && begin < stretch_end; ++begin) consider(logits[begin], static_cast<std::int32_t>(begin), most);
    begin = stretch_end;
  }
}

void Sampler::consider(float logit, std::int32_t token, std::size_t most) {
  if (std::isnan(logit)) return;
  const Candidate candidate{.logit = logit, .token = token, .weight = 0};
  if (candidates_.size() < most) return candidates_.push_back(candidate);
  if (!has_dropped_) std::ranges::make_heap(candidates_, kBetter);
  has_dropped_ = true;
  if (!kBetter(candidate, candidates_.front())) return;
  std::ranges::pop_heap(candidates_, kBetter);
  candidates_.back() = candidate;
  std::ranges::push_heap(candidates_, kBetter);
}

// Top-p and min-p each keep some of the best candidates, so their order makes no difference. Min-p goes first because
// it is cheaper and leaves less to sort.
void Sampler::keep_probable(float best) {
  double total = 0;
  for (Candidate& candidate : candidates_) total += candidate.weight = weight_of(candidate.logit, best, 1);

  std::erase_if(candidates_,
                [&](const Candidate& candidate) { return candidate.weight < static_cast<double>(options_.min_p); });
  std::ranges::sort(candidates_, kBetter);
  if (options_.top_p == 1) return;
  double sum = 0;
  for (std::size_t count = 0; count < candidates_.size(); ++count) {
    sum += candidates_[count].weight;
    if (sum < total * static_cast<double>(options_.top_p)) continue;
    candidates_.resize(count + 1);
    return;
  }
}

// REQUIRES: the candidates are sorted.
std::int32_t Sampler::draw(double unit) {
  double total = 0;
  for (Candidate& candidate : candidates_) {
    candidate.weight = weight_of(candidate.logit, candidates_[0].logit, options_.temperature);
    total += candidate.weight;
  }
  double rest = unit * total;
  for (const Candidate& candidate : candidates_) {
    rest -= candidate.weight;
    if (rest < 0) return candidate.token;
  }
  return candidates_[0].token;  // only reached by rounding
}

}  // namespace shunt::models
