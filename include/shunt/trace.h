// What ran, when, where and why, as a runtime recorded it, and where the time went (docs/telemetry.md).
//
// A Recording is what a runtime's recorder held at one moment (Runtime::recording(), with RuntimeOptions::trace), or
// what a file has of that; recordings and their summaries are plain values. Plain functions; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/status.h"

namespace shunt::trace {

// A run is a plan from its start to its end, with programs and transfers in it, and ops in programs. A notice is what
// the user is told meanwhile, such as that a device failed. An audit is an op that was held against the reference, with
// what came before it; it failed where the result was wrong.
#define SHUNT_TRACE_KINDS(X) X(program) X(op) X(transfer) X(run) X(notice) X(audit)

enum class Kind : std::uint8_t {
#define SHUNT_TRACE_KIND(name) name,
  SHUNT_TRACE_KINDS(SHUNT_TRACE_KIND)
#undef SHUNT_TRACE_KIND
};
[[nodiscard]] std::string_view name_of(Kind kind);

// A text of the recording that an event is of: Recording::text_of().
using Label = std::uint32_t;

struct ExecutionEvent {
  std::uint64_t start_ns = 0;  // by a clock that only goes forward
  std::uint64_t duration_ns = 0;
  Label what = 0;    // "OP NODE", or the name of the program or transfer
  Label device = 0;  // where it ran; of a transfer where to, of a run none
  Label from = 0;    // of a transfer: the device that it comes from
  Label reason = 0;  // why there; 0: unknown
  Kind kind = Kind::program;
  bool failed = false;
  Code code = Code::internal;  // where failed
  std::uint32_t step = 0;      // submission number
  std::uint32_t plan = 0;      // that it is part of, by its place among those attached, from 1 on; 0: unknown
  float predicted_us = 0;      // 0: no prediction
  std::uint64_t bytes = 0;     // moved by a transfer
};

// JSON texts, as lists by key.
using Attachments = std::map<std::string, std::vector<std::string>, std::less<>>;
inline constexpr std::string_view kPlans = "plans";  // those that ran, as Computation::explain_json() has them

struct Recording {
  std::vector<ExecutionEvent> events;  // as they ended, the first to end first
  std::vector<std::string> labels;     // the texts of an event's labels; the first is empty
  Attachments attachments;
  std::uint64_t recorded = 0;     // events, including
  std::uint64_t overwritten = 0;  // those that are missing: the oldest

  [[nodiscard]] const std::string& text_of(Label label) const { return labels[label < labels.size() ? label : 0]; }
  // The kind of op that ran, such as "linear". REQUIRES: an event of kind op.
  [[nodiscard]] std::string_view op_of(const ExecutionEvent& event) const;
};

// "ok", or the name of the error.
[[nodiscard]] std::string_view outcome_of(const ExecutionEvent& event);
// Microseconds.
[[nodiscard]] constexpr double us_of(std::uint64_t ns) { return static_cast<double>(ns) / 1e3; }

// One JSON object per event and line, times in microseconds since the earliest.
[[nodiscard]] std::string to_json_lines(const Recording& recording);

// What some events come to.
struct Tally {
  std::string name;
  std::uint64_t events = 0;
  std::uint64_t failed = 0;
  double actual_us = 0;
  double predicted_us = 0;  // of the events that had a prediction
  double compared_us = 0;   // what these took
  std::uint64_t bytes = 0;  // moved

  // Predicted time over actual time; 0 where nothing was predicted.
  [[nodiscard]] double predicted_share() const { return compared_us > 0 ? predicted_us / compared_us : 0; }
};

// How long two devices computed at once, or one computed while there were copies.
struct Overlap {
  std::string first;
  std::string second;  // "copies" for those of all links
  double us = 0;
  double of_shorter = 0;  // of what the less busy one of the two was busy
};

// Where the time of a recording went: by device, by op, by both, and by link, for any number of each.
struct ExecutionSummary {
  double span_us = 0;                    // from the first event's start to the last one's end
  std::vector<std::string> notices;      // in their order
  Tally runs;                            // of whole plans
  std::vector<Tally> devices;            // their programs, by device
  std::uint64_t runs_with_ops = 0;       // of the runs, those in which ops were timed one by one
  std::vector<Tally> ops;                // "linear"; the times of a plan's ops stand for all of its runs
  std::vector<Tally> ops_by_device;      // "linear on cpu:simd"
  std::vector<Tally> audits;             // by device; those that failed showed it to be wrong
  std::vector<Tally> links;              // "cpu:simd -> vulkan:0"
  std::vector<Overlap> overlaps;         // where there were any
  std::uint64_t events_recorded = 0;     // including
  std::uint64_t events_overwritten = 0;  // those that are not part of this
};

// Each list from the longest time to the shortest.
[[nodiscard]] ExecutionSummary summarize(const Recording& recording);

// For people: a table per list.
[[nodiscard]] std::string to_text(const ExecutionSummary& summary);
[[nodiscard]] std::string to_json(const ExecutionSummary& summary);

}  // namespace shunt::trace
