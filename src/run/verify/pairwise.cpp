#include "run/verify/pairwise.h"

#include <algorithm>

namespace shunt {
namespace {

// Tracks the pairs of options that have not been together yet. Options of all picks are numbered consecutively.
class Pairs {
 public:
  explicit Pairs(std::span<const std::uint32_t> options) : first_(1, 0) {
    for (const std::uint32_t count : options) first_.push_back(first_.back() + count);
    open_.assign(std::size_t{first_.back()} * first_.back(), false);
    for (std::size_t pick = 0; pick < options.size(); ++pick)
      for (std::size_t other = 0; other < options.size(); ++other)
        if (pick != other) open_all(pick, other);
  }

  [[nodiscard]] bool is_open(std::size_t pick, std::uint32_t option, std::size_t other, std::uint32_t its) const {
    return open_[place(pick, option, other, its)];
  }

  // Counts the open pairs that an option would close with those already chosen.
  [[nodiscard]] std::uint32_t gain(std::size_t pick, std::uint32_t option, const Combination& chosen) const {
    std::uint32_t closed = 0;
    for (std::size_t other = 0; other < chosen.size(); ++other)
      if (chosen[other] != kFree && is_open(pick, option, other, chosen[other])) ++closed;
    return closed;
  }

  void close(const Combination& chosen) {
    for (std::size_t pick = 0; pick < chosen.size(); ++pick)
      for (std::size_t other = 0; other < chosen.size(); ++other)
        if (pick != other) open_[place(pick, chosen[pick], other, chosen[other])] = false;
  }

  static constexpr std::uint32_t kFree = 0xFFFFFFFFU;

 private:
  [[nodiscard]] std::size_t place(std::size_t pick, std::uint32_t option, std::size_t other, std::uint32_t its) const {
    return std::size_t{first_[pick] + option} * first_.back() + first_[other] + its;
  }
  void open_all(std::size_t pick, std::size_t other) {
    for (std::uint32_t option = 0; option < first_[pick + 1] - first_[pick]; ++option)
      for (std::uint32_t its = 0; its < first_[other + 1] - first_[other]; ++its)
        open_[place(pick, option, other, its)] = true;
  }

  std::vector<std::uint32_t> first_;  // number of the first option of each pick
  std::vector<bool> open_;
};

// Fills in the free picks, each with the option that closes most pairs. Ties go to the next one after `turn`, so that
// options without open pairs still vary.
void fill_in(Combination& chosen, std::span<const std::uint32_t> options, const Pairs& pairs, std::size_t turn) {
  for (std::size_t pick = 0; pick < chosen.size(); ++pick) {
    if (chosen[pick] != Pairs::kFree) continue;
    std::uint32_t best = 0;
    std::uint32_t most = 0;
    for (std::uint32_t step = 0; step < options[pick]; ++step) {
      const auto option = static_cast<std::uint32_t>((turn + step) % options[pick]);
      const std::uint32_t gain = pairs.gain(pick, option, chosen);
      if (step == 0 || gain > most) {
        best = option;
        most = gain;
      }
    }
    chosen[pick] = best;
  }
}

}  // namespace

std::vector<Combination> pairwise(std::span<const std::uint32_t> options) {
  std::vector<Combination> combinations;
  Pairs pairs(options);
  const auto add = [&](Combination chosen) {
    fill_in(chosen, options, pairs, combinations.size());
    pairs.close(chosen);
    combinations.push_back(std::move(chosen));
  };
  const Combination free(options.size(), Pairs::kFree);
  for (std::size_t pick = 0; pick < options.size(); ++pick)
    for (std::uint32_t option = 0; option < options[pick]; ++option)
      for (std::size_t other = pick + 1; other < options.size(); ++other)
        for (std::uint32_t its = 0; its < options[other]; ++its) {
          if (!pairs.is_open(pick, option, other, its)) continue;
          Combination chosen = free;
          chosen[pick] = option;
          chosen[other] = its;
          add(std::move(chosen));
        }
  // With fewer than two picks there are no pairs.
  if (options.size() < 2) {
    Combination chosen(options.size(), 0);
    do combinations.push_back(chosen);
    while (next_combination(chosen, options));
  }
  return combinations;
}

bool next_combination(Combination& combination, std::span<const std::uint32_t> options) {
  for (std::size_t pick = options.size(); pick-- > 0;) {
    if (++combination[pick] < options[pick]) return true;
    combination[pick] = 0;
  }
  return false;
}

}  // namespace shunt
