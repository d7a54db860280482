// Searches for the device that should run each part of a graph. Input and output are plain numbers.
//
// Items run in a given order, and those of one group run on one device. A placement is timed on a timeline: devices
// work at once, links carry one copy at a time, and neighbours on one device are one step. The bytes in each memory are
// compared with its budget. Deterministic: the search is limited by counted work, not by time.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "plan/simulation.h"
#include "shunt/graph.h"

namespace shunt {

inline constexpr double kCannot = std::numeric_limits<double>::infinity();

struct SearchProblem {
  struct Item {
    std::uint32_t group = 0;
    std::uint32_t made = kNone;        // the value it makes or changes
    std::vector<std::uint32_t> reads;  // values
    std::vector<std::uint32_t> holds;  // weights and state, which must be in the same pool
    std::vector<double> us;            // by device; kCannot: it cannot run there
  };
  std::vector<Lane> lanes;
  std::vector<std::uint64_t> budget_bytes;  // by memory
  std::vector<Item> items;
  std::vector<std::uint64_t> value_bytes;
  std::vector<std::uint64_t> held_bytes;
  std::vector<std::uint32_t> outputs;  // values that are needed at the end
  // The device whose pool holds each value from the beginning, in addition to the budgets. kNone: a value that no item
  // makes is everywhere. Shorter than the values: kNone for the rest.
  std::vector<std::uint32_t> homes = {};
  [[nodiscard]] std::uint32_t home_of(std::uint32_t value) const { return value < homes.size() ? homes[value] : kNone; }
  [[nodiscard]] Copied copied(std::uint32_t value) const {
    return home_of(value) == kNone ? Copied::value : Copied::weight;
  }
  std::uint32_t groups = 0;
  // A device that may do well for each group; kNone: unknown; empty: for no group. The search also starts from these.
  std::vector<std::uint32_t> suggested = {};
};

// Returns the time to start on a device after something on `before`; kNone: after nothing.
[[nodiscard]] double us_to_start(const Lane& lane, std::uint32_t device, std::uint32_t before);
// Returns the total time of each group's items, by group and device.
[[nodiscard]] std::vector<double> us_of_groups(const SearchProblem& problem);
// Returns for each item the bytes that it holds and no earlier one does.
[[nodiscard]] std::vector<std::uint64_t> newly_held_bytes(const SearchProblem& problem);

struct Score {
  double over_bytes = 0;  // summed over all budgets
  double us = kCannot;    // until the last item has ended
  [[nodiscard]] bool operator<(const Score& other) const {
    return over_bytes != other.over_bytes ? over_bytes < other.over_bytes : us < other.us;
  }
};

// Computes the score of placements.
class Evaluator {
 public:
  // `problem` must outlive it.
  explicit Evaluator(const SearchProblem& problem);
  // `device_of_group`: one per group.
  [[nodiscard]] Score operator()(std::span<const std::uint32_t> device_of_group);
  // Peak bytes of the last placement, by memory.
  [[nodiscard]] std::span<const std::uint64_t> memory_bytes() const { return most_bytes_; }

 private:
  void begin();
  void close();
  void add(std::uint32_t item, std::uint32_t device);
  // Returns the step that puts a value into the pool of `device`, and adds a copy if there is none; kNone: no step
  // needs to.
  std::uint32_t bring(std::uint32_t value, std::uint32_t device);
  // Returns whether an item must begin a new step. It must if it reads a value that another device makes in the same
  // memory, and the open step does not wait for it. Steps wait only before they begin.
  [[nodiscard]] bool brings_news(const SearchProblem::Item& item, std::uint32_t device) const;
  void count(std::uint32_t memory, std::uint64_t bytes);
  [[nodiscard]] std::uint32_t& there(std::uint32_t value, std::uint32_t pool) { return there_[value * pools_ + pool]; }

  const SearchProblem& problem_;
  std::size_t pools_ = 0;
  bool shares_pools_ = false;  // several devices share one
  std::vector<std::uint32_t> memory_of_pool_;
  std::vector<std::vector<std::uint32_t>> ends_;  // by item: the values that no later item reads
  Simulation steps_;
  std::uint32_t open_ = kNone;            // the device of the open step, if any
  std::uint64_t batch_bytes_ = 0;         // of weights that the open step waits for
  std::vector<std::uint32_t> awaited_;    // the makers of values that the open step, or the next, waits for
  std::vector<CopyWindow> windows_;       // by device, of steps
  std::vector<std::uint32_t> ops_steps_;  // all steps of ops, in order
  std::vector<std::uint32_t> last_step_;  // by device
  std::vector<std::uint32_t> needed_;     // steps that an item waits for
  std::vector<std::uint32_t> there_;      // by value and pool: the step that put it there
  std::vector<std::uint32_t> home_;       // by value: the device that made it
  std::vector<bool> held_;                // by held tensor and pool
  std::vector<std::uint64_t> bytes_;      // by memory: now, and at the peak
  std::vector<std::uint64_t> most_bytes_;
};

struct SearchResult {
  std::vector<std::uint32_t> device_of_group;
  Score score;
};

// For each device: everything on it, except what it cannot run, which goes where it runs fastest. Scored.
[[nodiscard]] std::vector<SearchResult> single_devices(const SearchProblem& problem);

// Returns the best placement found with a bounded amount of work. If no placement is possible, its time is kCannot.
[[nodiscard]] SearchResult search(const SearchProblem& problem);

}  // namespace shunt
