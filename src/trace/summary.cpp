#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "base/json.h"
#include "base/units.h"
#include "trace/recording.h"

namespace shunt::trace {
namespace {

// `stands_for`: the number of events that this one represents.
void add(Tally& tally, const ExecutionEvent& event, double stands_for = 1) {
  const double us = stands_for * us_of(event.duration_ns);
  ++tally.events;
  tally.failed += event.failed ? 1 : 0;
  tally.actual_us += us;
  tally.bytes += event.bytes;
  // A failed event has no time that could have been predicted.
  if (event.predicted_us <= 0 || event.failed) return;
  tally.predicted_us += stands_for * static_cast<double>(event.predicted_us);
  tally.compared_us += us;
}

// Scales up op times, since ops are timed one by one only in some runs of a plan.
class SampledRuns {
 public:
  explicit SampledRuns(const Recording& recording) {
    for (const ExecutionEvent& event : recording.events) {
      if (event.kind == Kind::run) ++plans_[event.plan].runs;
      if (event.kind == Kind::op) plans_[event.plan].with_ops.insert(event.step);
    }
  }
  // Returns how many ops a timed one represents. The first run of a plan, with cold caches, represents only itself.
  [[nodiscard]] double share(const ExecutionEvent& op) const {
    const auto& [runs, with_ops] = plans_.at(op.plan);
    if (with_ops.size() < 2) return std::max(1.0, static_cast<double>(runs));
    if (op.step == *with_ops.begin()) return 1;
    return std::max(1.0, static_cast<double>(runs - 1) / static_cast<double>(with_ops.size() - 1));
  }
  [[nodiscard]] std::uint64_t with_ops() const {
    std::uint64_t sum = 0;
    for (const auto& [plan, counts] : plans_) sum += counts.with_ops.size();
    return sum;
  }

 private:
  struct Counts {
    std::uint64_t runs = 0;
    std::set<std::uint32_t> with_ops;  // steps
  };
  std::unordered_map<std::uint32_t, Counts> plans_;
};

// Tallies by name.
class Table {
 public:
  void add(std::string name, const ExecutionEvent& event, double stands_for = 1) {
    const auto [place, is_new] = places_.try_emplace(std::move(name), rows_.size());
    if (is_new) rows_.push_back({.name = place->first});
    trace::add(rows_[place->second], event, stands_for);
  }

  [[nodiscard]] std::vector<Tally> by_time() && {
    std::ranges::stable_sort(rows_, std::ranges::greater(), &Tally::actual_us);
    return std::move(rows_);
  }

 private:
  std::unordered_map<std::string, std::size_t> places_;
  std::vector<Tally> rows_;
};

// Computes when something was busy, from many events in any order.
class BusyTime {
 public:
  void add(const ExecutionEvent& event) { spans_.push_back({event.start_ns, event.start_ns + event.duration_ns}); }
  // Joins overlapping spans. Call once, before the functions below.
  void join() {
    std::ranges::sort(spans_);
    std::vector<Span> joined;
    for (const Span& span : spans_)
      if (!joined.empty() && span.first <= joined.back().second)
        joined.back().second = std::max(joined.back().second, span.second);
      else
        joined.push_back(span);
    spans_ = std::move(joined);
  }
  [[nodiscard]] double us() const {
    double sum = 0;
    for (const auto& [begin, end] : spans_) sum += us_of(end - begin);
    return sum;
  }
  [[nodiscard]] double us_with(const BusyTime& other) const {
    double sum = 0;
    auto theirs = other.spans_.begin();
    for (const auto& [begin, end] : spans_) {
      while (theirs != other.spans_.end() && theirs->second <= begin) ++theirs;
      for (auto at = theirs; at != other.spans_.end() && at->first < end; ++at)
        sum += us_of(std::min(end, at->second) - std::max(begin, at->first));
    }
    return sum;
  }

 private:
  using Span = std::pair<std::uint64_t, std::uint64_t>;
  std::vector<Span> spans_;
};

constexpr std::size_t kMostCompared = 32;

std::vector<Overlap> overlaps_of(const Recording& recording) {
  std::map<std::string, BusyTime> devices;
  BusyTime copies;
  for (const ExecutionEvent& event : recording.events) {
    if (event.kind == Kind::program) devices[recording.text_of(event.device)].add(event);
    if (event.kind == Kind::transfer) copies.add(event);
  }
  std::vector<std::pair<std::string, BusyTime>> all(devices.begin(), devices.end());
  all.emplace_back("copies", std::move(copies));
  for (auto& [name, busy] : all) busy.join();
  // Limits the devices of a trace, since all pairs of them are compared.
  if (all.size() > kMostCompared) {
    std::ranges::sort(all, std::ranges::greater(), [](const auto& named) { return named.second.us(); });
    all.resize(kMostCompared);
  }
  std::vector<Overlap> overlaps;
  for (auto first = all.begin(); first != all.end(); ++first)
    for (auto second = std::next(first); second != all.end(); ++second) {
      const double us = first->second.us_with(second->second);
      if (us > 0)
        overlaps.push_back({.first = first->first,
                            .second = second->first,
                            .us = us,
                            .of_shorter = us / std::min(first->second.us(), second->second.us())});
    }
  return overlaps;
}

double span_us(const Recording& recording) {
  std::uint64_t end = 0;
  for (const ExecutionEvent& event : recording.events) end = std::max(end, event.start_ns + event.duration_ns);
  return us_of(end - origin_ns(recording));
}

std::string to_text(std::string_view heading, const std::vector<Tally>& rows) {
  if (rows.empty()) return {};
  std::size_t width = heading.size();
  double all_us = 0;
  for (const Tally& row : rows) {
    width = std::max(width, shortened(row.name).size());
    all_us += row.actual_us;
  }
  std::string text = fmt::format("\n{:<{}} {:>9} {:>12} {:>7} {:>12} {:>10}\n", heading, width, "events", "actual ms",
                                 "share", "predicted ms", "of actual");
  for (const Tally& row : rows) {
    text += fmt::format("{:<{}} {:>9} {:>12.3f} {:>5.1f} %", shortened(row.name), width, row.events,
                        row.actual_us / 1e3, all_us > 0 ? 100 * row.actual_us / all_us : 0);
    if (row.compared_us > 0)
      text += fmt::format(" {:>12.3f} {:>8.0f} %", row.predicted_us / 1e3, 100 * row.predicted_share());
    if (row.bytes > 0) text += fmt::format("  {:.2f} MiB", static_cast<double>(row.bytes) / (1U << 20U));
    if (row.failed > 0) text += fmt::format("  {} failed", row.failed);
    text += '\n';
  }
  return text;
}

std::string to_text(const std::vector<Overlap>& overlaps) {
  if (overlaps.empty()) return {};
  const auto named = [](const Overlap& overlap) {
    return fmt::format("{} and {}", shortened(overlap.first), shortened(overlap.second));
  };
  std::size_t width = 12;
  for (const Overlap& overlap : overlaps) width = std::max(width, named(overlap).size());
  std::string text = fmt::format("\n{:<{}} {:>12} {:>15}\n", "busy at once", width, "actual ms", "of the shorter");
  for (const Overlap& overlap : overlaps)
    text += fmt::format("{:<{}} {:>12.3f} {:>13.0f} %\n", named(overlap), width, overlap.us / 1e3,
                        100 * overlap.of_shorter);
  return text;
}

Json to_json(const std::vector<Overlap>& overlaps) {
  Json json = Json::array();
  for (const auto& [first, second, us, of_shorter] : overlaps)
    json.push_back(json_object({{"first", first}, {"second", second}, {"us", us}, {"of_shorter", of_shorter}}));
  return json;
}

Json to_json(const Tally& tally) {
  return json_object({{"name", tally.name},
                      {"events", tally.events},
                      {"failed", tally.failed},
                      {"actual_us", tally.actual_us},
                      {"predicted_us", tally.predicted_us},
                      {"compared_us", tally.compared_us},
                      {"bytes", tally.bytes}});
}

Json to_json(const std::vector<Tally>& rows) {
  Json json = Json::array();
  for (const Tally& row : rows) json.push_back(to_json(row));
  return json;
}

}  // namespace

ExecutionSummary summarize(const Recording& recording) {
  ExecutionSummary summary{.span_us = span_us(recording),
                           .runs = {.name = "runs"},
                           .events_recorded = recording.recorded,
                           .events_overwritten = recording.overwritten};
  const SampledRuns sampled(recording);
  summary.runs_with_ops = sampled.with_ops();
  Table devices;
  Table ops;
  Table ops_by_device;
  Table audits;
  Table links;
  Table loads;
  for (const ExecutionEvent& event : recording.events) {
    const std::string& device = recording.text_of(event.device);
    switch (event.kind) {
      case Kind::run:
        add(summary.runs, event);
        break;
      case Kind::notice:
        summary.notices.push_back(recording.text_of(event.what));
        break;
      case Kind::program:
        devices.add(device, event);
        break;
      case Kind::op:
        ops.add(std::string(recording.op_of(event)), event, sampled.share(event));
        ops_by_device.add(fmt::format("{} on {}", recording.op_of(event), device), event, sampled.share(event));
        break;
      case Kind::audit:
        audits.add(device, event);
        break;
      case Kind::transfer:
        links.add(fmt::format("{} -> {}", recording.text_of(event.from), device), event);
        break;
      case Kind::load:
        loads.add(fmt::format("{} for {}", recording.text_of(event.what), device), event);
        break;
    }
  }
  summary.devices = std::move(devices).by_time();
  summary.ops = std::move(ops).by_time();
  summary.ops_by_device = std::move(ops_by_device).by_time();
  summary.audits = std::move(audits).by_time();
  summary.links = std::move(links).by_time();
  summary.loads = std::move(loads).by_time();
  summary.overlaps = overlaps_of(recording);
  return summary;
}

std::string to_text(const ExecutionSummary& summary) {
  std::string text =
      fmt::format("{} events over {}", summary.events_recorded - summary.events_overwritten, in_time(summary.span_us));
  if (summary.events_overwritten > 0)
    text += fmt::format("; the first {} of {} are missing, newer ones took their place", summary.events_overwritten,
                        summary.events_recorded);
  text += '\n';
  for (const std::string& notice : summary.notices) text += fmt::format("! {}\n", notice);
  if (summary.runs.events > 0) text += to_text("runs of plans", {summary.runs});
  text += to_text("programs on", summary.devices);
  text += to_text("audits of", summary.audits);
  text += to_text("copies over", summary.links);
  text += to_text("loading weights", summary.loads);
  text += to_text(summary.overlaps);
  const bool is_sample = summary.runs_with_ops < summary.runs.events;
  text += to_text(is_sample ? fmt::format("ops ({} of {} runs)", summary.runs_with_ops, summary.runs.events) : "ops",
                  summary.ops);
  // If each op has one device, the table above says everything.
  if (summary.ops_by_device.size() > summary.ops.size()) text += to_text("ops by device", summary.ops_by_device);
  return text;
}

std::string to_json(const ExecutionSummary& summary) {
  const Json json = json_object({{"span_us", summary.span_us},
                                 {"events_recorded", summary.events_recorded},
                                 {"events_overwritten", summary.events_overwritten},
                                 {"notices", summary.notices},
                                 {"runs", to_json(summary.runs)},
                                 {"devices", to_json(summary.devices)},
                                 {"audits", to_json(summary.audits)},
                                 {"links", to_json(summary.links)},
                                 {"loads", to_json(summary.loads)},
                                 {"overlaps", to_json(summary.overlaps)},
                                 {"runs_with_ops", summary.runs_with_ops},
                                 {"ops", to_json(summary.ops)},
                                 {"ops_by_device", to_json(summary.ops_by_device)}});
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace shunt::trace
