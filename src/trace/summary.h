// Where the time of a recording went: by device, by op, by both, and by link, for any number of each. A plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trace/recording.h"

namespace shunt::trace {

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

struct ExecutionSummary {
  double span_us = 0;                    // from the first event's start to the last one's end
  std::vector<std::string> notices;      // in their order
  Tally runs;                            // of whole plans
  std::vector<Tally> devices;            // their programs, by device
  std::uint64_t runs_with_ops = 0;       // of the runs, those in which ops were timed one by one
  std::vector<Tally> ops;                // "matmul"; the times of a plan's ops stand for all of its runs
  std::vector<Tally> ops_by_device;      // "matmul on cpu:simd"
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
