// WebGPU as a device, through Dawn. It has no thread of its own; advance() waits for the GPU and runs due callbacks.
//
// Reads and submissions are pending until then; writes are copied at once, and their errors surface at the next event.
// A timeout or a loss ends the device: what may still run on it cannot be cancelled.
#pragma once

#include <deque>
#include <memory>
#include <string>

#include "devices/backend.h"
#include "devices/health.h"
#include "devices/waiting.h"
#include "devices/webgpu/program.h"

namespace shunt::webgpu {

class WebGpuDevice final : public Device {
 public:
  [[nodiscard]] static Result<std::unique_ptr<WebGpuDevice>> create(std::shared_ptr<Context> context, std::string id,
                                                                    const OpenOptions& options);

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override { return std::nullopt; }
  [[nodiscard]] Support supports(std::span<const OpCall> run) const override;
  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse use) override;
  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override;
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override;
  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override;
  [[nodiscard]] Event submit(Program& program, const Submission& submission) override;
  bool advance(std::chrono::nanoseconds patience) override;
  [[nodiscard]] Health health() const override { return health_.get(); }

  // For fault injection.
  [[nodiscard]] Context& context() { return *context_; }

 private:
  struct Pending {
    std::shared_ptr<Outcome> outcome;
    Event event;
    std::string what;
    Deadline deadline;
    std::unique_ptr<WebGpuBuffer> mapped;  // of a read
    std::size_t skipped = 0;               // bytes before those requested
    std::span<std::byte> to;
  };

  WebGpuDevice(std::shared_ptr<Context> context, std::unique_ptr<Writer> writer, DeviceInfo info);
  [[nodiscard]] Status usable();
  [[nodiscard]] Result<std::unique_ptr<WebGpuBuffer>> readback(std::uint64_t bytes);
  [[nodiscard]] std::chrono::nanoseconds until_deadline(std::chrono::nanoseconds patience) const;
  [[nodiscard]] bool has_ended(const Pending& pending) const;
  [[nodiscard]] Status end_of(Pending& pending);
  [[nodiscard]] Status copy_out(Pending& pending);

  std::shared_ptr<Context> context_;
  std::unique_ptr<Writer> writer_;
  Pipelines pipelines_;
  DeviceInfo info_;
  std::unique_ptr<WebGpuBuffer> readback_;  // kept for the next read
  std::deque<Pending> pending_;
  HealthRecord health_{info_.id};
};

}  // namespace shunt::webgpu
