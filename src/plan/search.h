// Searches which device should run which part of a graph: numbers in, numbers out.
//
// Items run in a given order. Those of one group run on one device. The time of a placement is that of a timeline on
// which devices work at once, links carry one copy at a time, and neighbours on one device are one step; what a pool
// must hold is held against its budget. Deterministic: the work is counted, not timed.
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
    std::vector<std::uint32_t> holds;  // what must lie in the same pool: weights and state
    std::vector<double> us;            // by device; kCannot where it cannot run
  };
  std::vector<Lane> lanes;
  std::vector<std::uint64_t> budget_bytes;  // by memory
  std::vector<Item> items;
  std::vector<std::uint64_t> value_bytes;
  std::vector<std::uint64_t> held_bytes;
  std::vector<std::uint32_t> outputs;  // values that must be there in the end
  // By value the device in whose pool it is from the beginning, beside what the budgets say; kNone: of what is not
  // made it is everywhere. Shorter than the values: kNone for the rest.
  std::vector<std::uint32_t> homes = {};
  [[nodiscard]] std::uint32_t home_of(std::uint32_t value) const { return value < homes.size() ? homes[value] : kNone; }
  std::uint32_t groups = 0;
  // By group a device that may do well, kNone where nobody knows; empty: for no group. One more place to start from.
  std::vector<std::uint32_t> suggested = {};
};

// What the items of each group take together, by group and device.
[[nodiscard]] std::vector<double> us_of_groups(const SearchProblem& problem);
// For each item the bytes that it holds and no earlier one does.
[[nodiscard]] std::vector<std::uint64_t> newly_held_bytes(const SearchProblem& problem);

struct Score {
  double over_bytes = 0;  // of all budgets together
  double us = kCannot;    // until the last item has ended
  [[nodiscard]] bool operator<(const Score& other) const {
    return over_bytes != other.over_bytes ? over_bytes < other.over_bytes : us < other.us;
  }
};

// Counts what a placement costs.
class Evaluator {
 public:
  // `problem` must outlive it.
  explicit Evaluator(const SearchProblem& problem);
  // `device_of_group`: one per group.
  [[nodiscard]] Score operator()(std::span<const std::uint32_t> device_of_group);
  // Of the last placement, by memory.
  [[nodiscard]] std::span<const std::uint64_t> memory_bytes() const { return most_bytes_; }

 private:
  void begin();
  void close();
  void add(std::uint32_t item, std::uint32_t device);
  // The step that puts a value into the pool of `device`, where a copy of it is put if there is none; kNone: none has
  // to.
  std::uint32_t bring(std::uint32_t value, std::uint32_t device);
  // Whether an item must begin another step, because it reads a value that another device makes in the same memory and
  // the open step does not wait for: steps wait only before they begin.
  [[nodiscard]] bool brings_news(const SearchProblem::Item& item, std::uint32_t device) const;
  void count(std::uint32_t memory, std::uint64_t bytes);
  [[nodiscard]] std::uint32_t& there(std::uint32_t value, std::uint32_t pool) { return there_[value * pools_ + pool]; }

  const SearchProblem& problem_;
  std::size_t pools_ = 0;
  bool shares_pools_ = false;  // several devices have one
  std::vector<std::uint32_t> memory_of_pool_;
  std::vector<std::vector<std::uint32_t>> ends_;  // by item: the values that nobody reads later
  Simulation steps_;
  std::uint32_t open_ = kNone;            // the device of the step that goes on, if it does
  std::uint64_t streamed_bytes_ = 0;      // that it waits for
  std::vector<std::uint32_t> ops_steps_;  // all steps of ops, in their order
  std::vector<std::uint32_t> last_step_;  // by device
  std::vector<std::uint32_t> needed_;     // steps that an item waits for
  std::vector<std::uint32_t> there_;      // by value and pool: the step that put it there
  std::vector<std::uint32_t> home_;       // by value: the device that made it
  std::vector<bool> held_;                // by what is held, and pool
  std::vector<std::uint64_t> bytes_;      // by memory: now, and at most
  std::vector<std::uint64_t> most_bytes_;
};

struct SearchResult {
  std::vector<std::uint32_t> device_of_group;
  Score score;
};

// For each device: all on it, but for what it cannot run, which goes where it runs fastest. Scored.
[[nodiscard]] std::vector<SearchResult> single_devices(const SearchProblem& problem);

// The best of what can be found with a bounded amount of work. Where no placement is possible its time is kCannot.
[[nodiscard]] SearchResult search(const SearchProblem& problem);

}  // namespace shunt
