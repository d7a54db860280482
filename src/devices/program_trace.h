// Traces a prepared program: one event per submission and, on request, one per op. Labels are interned beforehand.
// Constant once made; any thread may record.
#pragma once

#include <string_view>
#include <vector>

#include "devices/device.h"
#include "trace/recorder.h"

namespace shunt {

class ProgramTrace {
 public:
  // `recorder` may be null; it must outlive this.
  ProgramTrace(const ProgramRequest& request, std::string_view device, trace::Recorder* recorder);

  // Returns whether a recorder is attached and enabled.
  [[nodiscard]] bool is_on() const { return recorder_ != nullptr && recorder_->enabled(); }
  [[nodiscard]] bool wants_ops(const Submission& submission) const { return is_on() && submission.profile; }
  // `in_ops`: the ops were submitted one by one, for which there is no prediction.
  void record_program(std::uint64_t start_ns, std::uint64_t end_ns, std::uint32_t step, const Status& status,
                      bool in_ops = false) const;
  void record_op(std::size_t op, std::uint64_t start_ns, std::uint64_t end_ns, std::uint32_t step) const;

 private:
  trace::Recorder* recorder_;
  trace::ExecutionEvent program_;  // the part known beforehand, of this and of ops_
  std::vector<trace::ExecutionEvent> ops_;
};

}  // namespace shunt
