// A run of ops as pipelines and bind groups, made once; each submission encodes them again, as WebGPU requires.
//
// All storage is bound read_write, as naga declares it. WebGPU refuses a dispatch that binds one buffer both read and
// read_write; since values share one arena, read-only inputs would not work. It also refuses two writable bindings of
// the same bytes: an input that overlaps another operand is copied to scratch memory within the submission.
#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "devices/shaders/dispatch.h"
#include "devices/webgpu/buffer.h"
#include "devices/webgpu/pipeline.h"

namespace shunt::webgpu {

[[nodiscard]] DispatchLimits limits_of(const Context& context);
// Device::supports().
[[nodiscard]] Support program_support(std::span<const OpCall> run, const DispatchLimits& limits);

class WebGpuProgram final : public Program {
 public:
  // The buffers and `pipelines` must outlive it. Errors: unsupported if an op has no kernel, out_of_memory, internal.
  [[nodiscard]] static Result<std::unique_ptr<WebGpuProgram>> create(std::shared_ptr<Context> context,
                                                                     Pipelines& pipelines,
                                                                     const ProgramRequest& request);

  [[nodiscard]] std::uint64_t scratch_bytes() const override;
  [[nodiscard]] const std::string& name() const { return name_; }
  // Starts it; errors arrive with the outcome.
  [[nodiscard]] std::shared_ptr<Outcome> submit(const Submission& submission);

 private:
  // An operand's binding that differs from the call's.
  struct Moved {
    std::uint32_t binding = 0;
    Binding from;  // no buffer: the call has no such operand
    std::uint64_t at = 0;
  };
  struct Launch {
    const Pipeline* pipeline = nullptr;
    Owned<BindGroupHandle> group;
    std::array<std::uint32_t, 2> grid{};
    std::uint32_t op = 0;
    std::vector<Moved> moved;
  };

  explicit WebGpuProgram(std::shared_ptr<Context> context) : context_(std::move(context)) {}
  [[nodiscard]] static std::vector<Moved> moved_of(const Dispatch& dispatch, const Pipeline& pipeline);
  [[nodiscard]] Status make_steps(const DispatchPlan& plan, Pipelines& pipelines);
  [[nodiscard]] Status make_buffers(const DispatchPlan& plan);
  [[nodiscard]] Status make_groups(const DispatchPlan& plan);
  [[nodiscard]] BindGroupEntry entry_of(const Dispatch& dispatch, const Launch& step, std::uint32_t binding) const;

  std::shared_ptr<Context> context_;
  std::string name_;
  std::unique_ptr<WebGpuBuffer> blocks_;     // the uniform blocks
  std::unique_ptr<WebGpuBuffer> constants_;  // same layout: one buffer cannot be uniform and writable; may be null
  std::unique_ptr<WebGpuBuffer> scratch_;    // moved operands, one dispatch after the other; may be null
  std::vector<Launch> steps_;                // one per dispatch
};

}  // namespace shunt::webgpu
