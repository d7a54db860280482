#include "trace/recorder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>

namespace shunt::trace {
namespace {

// An event as words that can be stored atomically one by one.
using Words = std::array<std::uint64_t, 7>;

std::uint64_t pack(std::uint32_t low, std::uint32_t high) { return std::uint64_t{high} << 32U | low; }
std::uint32_t low(std::uint64_t word) { return static_cast<std::uint32_t>(word); }
std::uint32_t high(std::uint64_t word) { return static_cast<std::uint32_t>(word >> 32U); }

Words encode(const ExecutionEvent& event) {
  const auto flags = static_cast<std::uint32_t>(event.kind) | static_cast<std::uint32_t>(event.failed) << 8U |
                     static_cast<std::uint32_t>(event.code) << 16U;
  return {event.start_ns,
          event.duration_ns,
          pack(event.what, event.device),
          pack(event.reason, flags),
          pack(event.step, std::bit_cast<std::uint32_t>(event.predicted_us)),
          event.bytes,
          pack(event.from, event.plan)};
}

ExecutionEvent decode(const Words& words) {
  const std::uint32_t flags = high(words[3]);
  return {.start_ns = words[0],
          .duration_ns = words[1],
          .what = low(words[2]),
          .device = high(words[2]),
          .from = low(words[6]),
          .reason = low(words[3]),
          .kind = static_cast<Kind>(flags & 0xFFU),
          .failed = (flags >> 8U & 1U) != 0,
          .code = static_cast<Code>(flags >> 16U),
          .step = low(words[4]),
          .plan = high(words[6]),
          .predicted_us = std::bit_cast<float>(high(words[4])),
          .bytes = words[5]};
}

}  // namespace

std::uint64_t now_ns() {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
          .count());
}

std::string_view name_of(Kind kind) {
  constexpr std::string_view kNames[] = {
#define SHUNT_TRACE_KIND(name) #name,
      SHUNT_TRACE_KINDS(SHUNT_TRACE_KIND)
#undef SHUNT_TRACE_KIND
  };
  return kNames[static_cast<std::size_t>(kind)];
}

Recorder::Recorder(std::size_t capacity) : labels_{""}, label_ids_{{"", 0}} {
  if (capacity == 0) return;
  const std::size_t rounded = std::bit_ceil(capacity);
  slots_ = std::make_unique<Slot[]>(rounded);
  mask_ = rounded - 1;
}

// A seqlock per slot: the sequence is odd while its words change, and twice the event's number plus two once they are
// complete. A writer that finds the slot taken by a later event, or still being written, gives up.
void Recorder::record(const ExecutionEvent& event) {
  if (!enabled() || slots_ == nullptr) return;
  const std::uint64_t number = next_.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = slots_[number & mask_];
  std::uint64_t seen = slot.sequence.load(std::memory_order_relaxed);
  if ((seen & 1U) != 0 || seen > 2 * number ||
      !slot.sequence.compare_exchange_strong(seen, 2 * number + 1, std::memory_order_acq_rel))
    return;
  const Words words = encode(event);
  for (std::size_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_release);
  slot.sequence.store(2 * number + 2, std::memory_order_release);
}

std::vector<ExecutionEvent> Recorder::snapshot() const {
  std::vector<ExecutionEvent> events;
  if (slots_ == nullptr) return events;
  const std::uint64_t end = next_.load(std::memory_order_acquire);
  const std::uint64_t capacity = mask_ + 1;
  const std::uint64_t oldest = end > capacity ? end - capacity : 0;
  for (std::uint64_t number = std::max(oldest, first_.load(std::memory_order_relaxed)); number < end; ++number) {
    const Slot& slot = slots_[number & mask_];
    if (slot.sequence.load(std::memory_order_acquire) != 2 * number + 2) continue;
    Words words;
    for (std::size_t i = 0; i < kWords; ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
    if (slot.sequence.load(std::memory_order_acquire) == 2 * number + 2) events.push_back(decode(words));
  }
  return events;
}

std::uint64_t Recorder::recorded() const {
  return next_.load(std::memory_order_relaxed) - first_.load(std::memory_order_relaxed);
}

std::uint64_t Recorder::overwritten() const { return recorded() - std::min<std::uint64_t>(recorded(), mask_ + 1); }

void Recorder::clear() { first_.store(next_.load(std::memory_order_relaxed), std::memory_order_relaxed); }

Label Recorder::intern(std::string_view text) {
  const std::scoped_lock lock(texts_mutex_);
  const auto [place, inserted] = label_ids_.try_emplace(std::string(text), static_cast<Label>(labels_.size()));
  if (inserted) labels_.emplace_back(text);
  return place->second;
}

std::string Recorder::text_of(Label label) const {
  const std::scoped_lock lock(texts_mutex_);
  return label < labels_.size() ? labels_[label] : std::string();
}

std::vector<std::string> Recorder::labels() const {
  const std::scoped_lock lock(texts_mutex_);
  return labels_;
}

std::uint32_t Recorder::attach(std::string_view key, std::string json) {
  if (!enabled()) return 0;
  const std::scoped_lock lock(texts_mutex_);
  std::vector<std::string>& texts = attachments_[std::string(key)];
  texts.push_back(std::move(json));
  return static_cast<std::uint32_t>(texts.size());
}

Attachments Recorder::attachments() const {
  const std::scoped_lock lock(texts_mutex_);
  return attachments_;
}

}  // namespace shunt::trace
