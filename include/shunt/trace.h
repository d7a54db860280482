// Recordings of what ran, when, where and why, and summaries of where the time went (docs/telemetry.md).
//
// A Recording is a copy of a runtime's events at one moment (Runtime::recording(), with RuntimeOptions::trace), or of
// those in a trace file. Recordings and summaries are plain values. Plain functions; any thread.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/status.h"

namespace shunt::trace {

// A run is one execution of a plan; it contains programs and transfers, and programs contain ops. A notice is a message
// to the user, such as a device failure. An audit is the comparison of an op with the reference, and includes the
// ops before it in its step. It failed if the result was wrong. A load is a stage of copying weights to a device;
// stages contain others.
#define SHUNT_TRACE_KINDS(X) X(program) X(op) X(transfer) X(run) X(notice) X(audit) X(load)

enum class Kind : std::uint8_t {
#define SHUNT_TRACE_KIND(name) name,
  SHUNT_TRACE_KINDS(SHUNT_TRACE_KIND)
#undef SHUNT_TRACE_KIND
};
[[nodiscard]] std::string_view name_of(Kind kind);

// The number of a text in the event's recording: Recording::text_of().
using Label = std::uint32_t;

struct ExecutionEvent {
  std::uint64_t start_ns = 0;  // on a monotonic clock
  std::uint64_t duration_ns = 0;
  Label what = 0;    // "OP NODE", or the name of the program or transfer
  Label device = 0;  // where it ran; a transfer's destination; empty for a run
  Label from = 0;    // a transfer's source device
  Label reason = 0;  // why it ran there; 0: unknown
  Kind kind = Kind::program;
  bool failed = false;
  Code code = Code::internal;  // if it failed
  std::uint32_t step = 0;      // submission number
  std::uint32_t plan = 0;      // number of its plan among those attached, from 1; 0: unknown
  float predicted_us = 0;      // 0: no prediction
  std::uint64_t bytes = 0;     // moved by a transfer or a load
};

// Lists of JSON texts by key.
using Attachments = std::map<std::string, std::vector<std::string>, std::less<>>;
inline constexpr std::string_view kPlans = "plans";  // the plans that ran, as from Computation::explain_json()

struct Recording {
  std::vector<ExecutionEvent> events;  // in the order in which they ended
  std::vector<std::string> labels;     // the texts of all labels; the first is empty
  Attachments attachments;
  std::uint64_t recorded = 0;     // number of events, including overwritten ones
  std::uint64_t overwritten = 0;  // number of missing events, which are the oldest

  [[nodiscard]] const std::string& text_of(Label label) const { return labels[label < labels.size() ? label : 0]; }
  // Returns the op that ran, such as "linear". REQUIRES: an event of kind op.
  [[nodiscard]] std::string_view op_of(const ExecutionEvent& event) const;
};

// Returns "ok" or the name of the error.
[[nodiscard]] std::string_view outcome_of(const ExecutionEvent& event);
// Converts nanoseconds to microseconds.
[[nodiscard]] constexpr double us_of(std::uint64_t ns) { return static_cast<double>(ns) / 1e3; }

// Writes one JSON object per line for each event, with times in microseconds since the earliest.
[[nodiscard]] std::string to_json_lines(const Recording& recording);

// Totals of a group of events.
struct Tally {
  std::string name;
  std::uint64_t events = 0;
  std::uint64_t failed = 0;
  double actual_us = 0;
  double predicted_us = 0;  // of the events with a prediction
  double compared_us = 0;   // actual time of the events with a prediction
  std::uint64_t bytes = 0;  // moved by transfers

  // Predicted time divided by actual time; 0 without predictions.
  [[nodiscard]] double predicted_share() const { return compared_us > 0 ? predicted_us / compared_us : 0; }
};

// How long two devices computed at the same time, or one computed during copies.
struct Overlap {
  std::string first;
  std::string second;  // "copies" for those of all links
  double us = 0;
  double of_shorter = 0;  // share of the busy time of the less busy one
};

// Where the time of a recording went, by device, by op, by both and by link.
struct ExecutionSummary {
  double span_us = 0;                    // from the first event's start to the last one's end
  std::vector<std::string> notices;      // in the order of their events
  Tally runs;                            // whole plans
  std::vector<Tally> devices;            // programs, by device
  std::uint64_t runs_with_ops = 0;       // number of runs in which each op was timed
  std::vector<Tally> ops;                // "linear"; times are scaled from the timed runs to all runs of a plan
  std::vector<Tally> ops_by_device;      // "linear on cpu:simd"
  std::vector<Tally> audits;             // by device; a failed audit means that the device was wrong
  std::vector<Tally> links;              // "cpu:simd -> vulkan:0"
  std::vector<Tally> loads;              // stages of copying weights, "reading for cuda:0"; some contain others
  std::vector<Overlap> overlaps;         // only those that are not zero
  std::uint64_t events_recorded = 0;     // including overwritten ones
  std::uint64_t events_overwritten = 0;  // missing from this summary
};

// Summarizes a recording. Each list is sorted from the longest time to the shortest.
[[nodiscard]] ExecutionSummary summarize(const Recording& recording);

// Formats a summary as text, one table per list.
[[nodiscard]] std::string to_text(const ExecutionSummary& summary);
[[nodiscard]] std::string to_json(const ExecutionSummary& summary);

}  // namespace shunt::trace
