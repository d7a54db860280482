// Completes the work of a device that is polled: submissions and reads that it has started and not yet reported.
//
// Owned by the device; one thread.
#pragma once

#include <deque>
#include <optional>
#include <utility>
#include <vector>

#include "devices/event.h"

namespace shunt {

// Completes each entry of `pending`, a struct with an Event `event`, for which `end_of(entry)` returns a Status and not
// nullopt. Callbacks of events may ask the device for more, so all of them are removed first. Returns whether there
// were any.
template <class Entry, class EndOf>
bool complete_ended(std::deque<Entry>& pending, const EndOf& end_of) {
  std::vector<std::pair<Event, Status>> ended;
  for (auto entry = pending.begin(); entry != pending.end();) {
    std::optional<Status> status = end_of(*entry);
    if (!status) {
      ++entry;
      continue;
    }
    ended.emplace_back(std::move(entry->event), std::move(*status));
    entry = pending.erase(entry);
  }
  for (auto& [event, status] : ended) event.complete(std::move(status));
  return !ended.empty();
}

}  // namespace shunt
