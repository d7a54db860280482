#include "models/sequences.h"

#include <algorithm>

#include "models/step_planner.h"

namespace shunt::models {

void Sequences::reserve(std::span<const BatchToken> batch) {
  std::vector<std::size_t> length;
  for (const Sequence& sequence : sequences_) length.push_back(sequence.tokens.size());
  for (const BatchToken& entry : batch) {
    Sequence& sequence = sequences_[entry.sequence];
    if (++length[entry.sequence] <= sequence.pages.size() * kPageTokens) continue;
    if (free_pages_.empty()) free_pages_.push_back(untouched_page_++);
    sequence.pages.push_back(free_pages_.back());
    free_pages_.pop_back();
  }
}

void Sequences::add_computed(std::span<const BatchToken> batch) {
  for (const BatchToken& entry : batch) ++sequences_[entry.sequence].computed;
}

void Sequences::append(std::span<const BatchToken> batch) {
  for (const BatchToken& entry : batch) sequences_[entry.sequence].tokens.push_back(entry.token);
}

void Sequences::truncate(std::size_t index, std::size_t length) {
  Sequence& sequence = sequences_[index];
  if (length >= sequence.tokens.size()) return;
  sequence.tokens.resize(length);
  sequence.computed = std::min(sequence.computed, length);
  while (sequence.pages.size() > pages_of(static_cast<std::uint32_t>(length))) {
    free_pages_.push_back(sequence.pages.back());
    sequence.pages.pop_back();
  }
}

void Sequences::forget_cache() {
  for (Sequence& sequence : sequences_) sequence.computed = 0;
}

std::vector<std::int32_t> Sequences::positions_of(std::span<const BatchToken> batch) const {
  std::vector<std::int32_t> next;
  for (const Sequence& sequence : sequences_) next.push_back(static_cast<std::int32_t>(sequence.computed));
  std::vector<std::int32_t> positions;
  for (const BatchToken& entry : batch) positions.push_back(next[entry.sequence]++);
  return positions;
}

Sequences::Pages Sequences::cached_pages() const {
  Pages pages;
  for (const Sequence& sequence : sequences_)
    for (std::uint32_t page = 0; page < pages_of(static_cast<std::uint32_t>(sequence.computed)); ++page)
      pages.end = std::max(pages.end, static_cast<std::uint32_t>(sequence.pages[page]) + 1);
  return pages;
}

Sequences::Pages Sequences::pages_of_batch(std::span<const BatchToken> batch,
                                           std::span<const std::int32_t> positions) const {
  Pages pages;
  for (std::size_t index = 0; index < batch.size(); ++index) {
    const std::size_t place = static_cast<std::uint32_t>(positions[index]) / kPageTokens;
    const auto page = static_cast<std::uint32_t>(sequences_[batch[index].sequence].pages[place]);
    pages.begin = index == 0 ? page : std::min(pages.begin, page);
    pages.end = std::max(pages.end, page + 1);
  }
  return pages;
}

std::vector<std::int32_t> Sequences::page_table() const {
  std::vector<std::int32_t> table(sequences_.size() * pages_per_sequence_, -1);
  for (std::size_t row = 0; row < sequences_.size(); ++row)
    std::ranges::copy(sequences_[row].pages, table.begin() + static_cast<std::ptrdiff_t>(row * pages_per_sequence_));
  return table;
}

}  // namespace shunt::models
