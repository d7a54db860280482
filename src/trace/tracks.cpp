#include "trace/tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

namespace shunt::trace {
namespace {

// In track order.
enum class Place : std::uint8_t { host, device, link };

struct Row {
  std::string name;
  std::size_t lanes = 0;
  std::set<std::size_t> free;                      // lanes on which nothing runs
  std::multimap<std::uint64_t, std::size_t> busy;  // the others, by the end of their events
  std::size_t first_track = 0;
};

Place place_of(Kind kind) {
  switch (kind) {
    case Kind::run:
    case Kind::notice:
      return Place::host;
    case Kind::transfer:
      return Place::link;
    case Kind::program:
    case Kind::op:
    case Kind::audit:
    case Kind::load:
      break;
  }
  return Place::device;
}

std::string row_of(const Recording& recording, const ExecutionEvent& event) {
  const std::string& device = recording.text_of(event.device);
  switch (event.kind) {
    case Kind::run:
      return "runs";
    case Kind::notice:
      return "notices";
    case Kind::transfer:
      return fmt::format("link {} -> {}", recording.text_of(event.from), device);
    case Kind::op:
      return fmt::format("{} ops", device);
    case Kind::audit:
      return fmt::format("{} audits", device);
    case Kind::load:
      return fmt::format("{} weights", device);
    case Kind::program:
      break;
  }
  return device;
}

// Returns the first lane that is free when the event begins, or a new one. REQUIRES: events come in the order in which
// they begin.
std::size_t lane_of(Row& row, const ExecutionEvent& event) {
  const auto still_busy = row.busy.upper_bound(event.start_ns);
  for (auto ended = row.busy.begin(); ended != still_busy; ++ended) row.free.insert(ended->second);
  row.busy.erase(row.busy.begin(), still_busy);
  if (row.free.empty()) row.free.insert(row.lanes++);
  const std::size_t lane = *row.free.begin();
  row.free.erase(row.free.begin());
  row.busy.emplace(event.start_ns + event.duration_ns, lane);
  return lane;
}

std::vector<std::size_t> by_start(const std::vector<ExecutionEvent>& events) {
  std::vector<std::size_t> order(events.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::size_t index) { return events[index].start_ns; });
  return order;
}

}  // namespace

Tracks tracks_of(const Recording& recording) {
  std::map<std::pair<Label, Label>, std::size_t> seen;  // devices and links, numbered as they appear
  std::map<std::tuple<Place, std::size_t, Kind>, Row> rows;
  std::vector<std::pair<const Row*, std::size_t>> lanes(recording.events.size());
  for (const std::size_t index : by_start(recording.events)) {
    const ExecutionEvent& event = recording.events[index];
    const std::size_t number = seen.try_emplace({event.from, event.device}, seen.size()).first->second;
    Row& row = rows[{place_of(event.kind), number, event.kind}];
    if (row.name.empty()) row.name = row_of(recording, event);
    lanes[index] = {&row, lane_of(row, event)};
  }
  Tracks tracks;
  for (auto& [key, row] : rows) {
    row.first_track = tracks.names.size();
    for (std::size_t lane = 0; lane < row.lanes; ++lane)
      tracks.names.push_back(lane == 0 ? row.name : fmt::format("{} ({})", row.name, lane + 1));
  }
  for (const auto& [row, lane] : lanes) tracks.of_event.push_back(static_cast<std::uint32_t>(row->first_track + lane));
  return tracks;
}

}  // namespace shunt::trace
