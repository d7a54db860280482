// Records what the enclosing scope does as one event, from its begin to its end. Owned by one thread at a time.
#pragma once

#include <cstdint>
#include <string_view>

#include "trace/recorder.h"

namespace shunt::trace {

class Span {
 public:
  // `recorder` may be null and must outlive it. `bytes`: those moved, or 0.
  Span(Recorder* recorder, Kind kind, std::string_view what, std::string_view device, std::uint64_t bytes = 0)
      : recorder_(recorder != nullptr && recorder->enabled() ? recorder : nullptr) {
    if (recorder_ == nullptr) return;
    event_ = {.start_ns = now_ns(),
              .what = recorder_->intern(what),
              .device = recorder_->intern(device),
              .kind = kind,
              .bytes = bytes};
  }
  ~Span() {
    if (recorder_ == nullptr) return;
    event_.duration_ns = now_ns() - event_.start_ns;
    recorder_->record(event_);
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  Recorder* recorder_;
  ExecutionEvent event_;
};

}  // namespace shunt::trace
