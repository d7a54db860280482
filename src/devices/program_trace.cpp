#include "devices/program_trace.h"

#include <fmt/format.h>

namespace shunt {

ProgramTrace::ProgramTrace(const ProgramRequest& request, std::string_view device, trace::Recorder* recorder)
    : recorder_(recorder) {
  if (recorder == nullptr) return;
  program_ = {.what = recorder->intern(request.name),
              .device = recorder->intern(device),
              .kind = trace::Kind::program,
              .plan = request.plan,
              .predicted_us = static_cast<float>(request.predicted_us)};
  for (const ProgramOp& op : request.ops)
    ops_.push_back({.what = recorder->intern(fmt::format("{} {}", name_of(op.call.op), op.name)),
                    .device = program_.device,
                    .reason = recorder->intern(op.reason),
                    .kind = trace::Kind::op,
                    .plan = request.plan,
                    .predicted_us = static_cast<float>(op.predicted_us)});
}

void ProgramTrace::record_program(std::uint64_t start_ns, std::uint64_t end_ns, std::uint32_t step,
                                  const Status& status, bool in_ops) const {
  if (recorder_ == nullptr) return;
  trace::ExecutionEvent event = program_;
  event.start_ns = start_ns;
  event.duration_ns = end_ns - start_ns;
  event.step = step;
  event.failed = !status;
  if (!status) event.code = status.error().code;
  if (in_ops) event.predicted_us = 0;
  recorder_->record(event);
}

void ProgramTrace::record_op(std::size_t op, std::uint64_t start_ns, std::uint64_t end_ns, std::uint32_t step) const {
  if (recorder_ == nullptr) return;
  trace::ExecutionEvent event = ops_[op];
  event.start_ns = start_ns;
  event.duration_ns = end_ns - start_ns;
  event.step = step;
  recorder_->record(event);
}

}  // namespace shunt
