// Metal: the GPUs of Apple's machines. No thread of its own; advance() polls the GPU.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "devices/backend.h"
#include "devices/health.h"
#include "devices/identity.h"
#include "devices/metal/program.h"
#include "devices/pending.h"
#include "devices/waiting.h"

namespace shunt::metal {
namespace {

// MTLCommandBufferStatus.
constexpr std::uint64_t kCompleted = 4;
constexpr std::uint64_t kFailed = 5;

// MTLCommandBufferError; others concern only the program.
Code code_of(std::int64_t number) {
  switch (number) {
    case 2:  // Timeout
      return Code::timed_out;
    case 4:   // AccessRevoked
    case 11:  // DeviceRemoved
      return Code::device_lost;
    case 8:  // OutOfMemory
      return Code::out_of_memory;
    default:
      return Code::internal;
  }
}

DeviceInfo describe(const Context& context, std::size_t number) {
  const Messages& call = context.call();
  const Id device = context.device();
  const bool unified = call.has_unified_memory(device);
  DeviceInfo info;
  info.id = fmt::format("metal:{}", number);
  info.name = context.name();
  info.vendor = context.name().substr(0, context.name().find(' '));
  info.type = unified ? DeviceType::integrated : DeviceType::discrete;
  info.api_version = "MSL 2.3";
  info.uuid = fmt::format("{:032x}", call.registry_id(device));
  info.memory_bytes = call.working_set_bytes(device);
  info.alignment_bytes = context.limits().uniform_alignment_bytes;
  info.largest_binding_bytes = context.limits().shader.largest_binding_bytes;
  info.features = {DeviceFeature::fp16, DeviceFeature::atomics, DeviceFeature::shared_memory, DeviceFeature::subgroups};
  info.features.insert(DeviceFeature::unified_memory, unified);
  info.prior = {.launch_us = 100, .op_us = 5, .flops_per_s = 1e12, .bytes_per_s = 100e9, .uncertainty = 0.9};
  if (context.runtime().simulated()) {
    info.name += " (simulated)";
    info.vendor = "simulated";
    info.type = DeviceType::cpu;
    info.emulated = true;
    info.details = {"simulated"};
    info.prior = {.launch_us = 100, .op_us = 50, .flops_per_s = 20e6, .bytes_per_s = 100e6, .uncertainty = 0.9};
  }
  identify(info, {});
  return info;
}

class MetalDevice final : public Device {
 public:
  static Result<std::unique_ptr<Device>> create(std::shared_ptr<const ObjectiveC> runtime, Owned device,
                                                std::size_t number) {
    SHUNT_TRY_ASSIGN(std::shared_ptr<Context> context, Context::create(std::move(runtime), std::move(device)));
    SHUNT_TRY_ASSIGN(std::unique_ptr<Pipelines> pipelines, Pipelines::create(context));
    DeviceInfo info = describe(*context, number);
    return std::unique_ptr<Device>(new MetalDevice(std::move(context), std::move(pipelines), std::move(info)));
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override {
    const std::uint64_t used = context_->call().allocated_bytes(context_->device());
    return info_.memory_bytes - std::min(info_.memory_bytes, used);
  }
  [[nodiscard]] Support supports(std::span<const OpCall> run) const override {
    return dispatch_support(run, context_->limits());
  }

  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse) override {
    return health_.attempt_buffer(bytes, [&] { return MetalBuffer::create(context_, bytes); });
  }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> import_host(std::span<const std::byte>,
                                                            std::shared_ptr<const void>) override {
    return fail(Code::unsupported, fmt::format("{} takes whole pages of memory only", info_.id));
  }

  // All memory is mapped, and its buffers are idle: the caller has waited for programs that use them.
  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    if (Status status = health_.get().status; !status || from.empty()) return Event(std::move(status));
    std::memcpy(to.buffer->host().data() + to.offset, from.data(), from.size());
    return Event(Status{});
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override {
    if (Status status = health_.get().status; !status || to.empty()) return Event(std::move(status));
    std::memcpy(to.data(), from.buffer->host().data() + from.offset, to.size());
    return Event(Status{});
  }

  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    return health_.attempt_program(request, [&] { return MetalProgram::create(context_, *pipelines_, request); });
  }

  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    if (Status status = health_.get().status; !status) return Event(std::move(status));
    auto& mine = static_cast<MetalProgram&>(program);
    Result<Owned> commands = mine.submit(submission);
    if (!commands) return Event(named(mine, std::move(commands).error()));
    Event event(this);
    pending_.push_back({&mine, std::move(*commands), event, deadline_of(submission)});
    return event;
  }

  // Metal's own wait has no timeout, and a callback would need an Objective-C block, so the status is polled.
  bool advance(std::chrono::nanoseconds patience) override {
    if (pending_.empty()) return false;
    poll_patiently(patience, [this] { return complete(); });
    return true;
  }

  [[nodiscard]] Health health() const override { return health_.get(); }

 private:
  struct Pending {
    MetalProgram* program;
    Owned commands;
    Event event;
    Deadline deadline;
  };

  MetalDevice(std::shared_ptr<Context> context, std::unique_ptr<Pipelines> pipelines, DeviceInfo info)
      : context_(std::move(context)), pipelines_(std::move(pipelines)), info_(std::move(info)) {}

  [[nodiscard]] Status named(const MetalProgram& program, const Error& error) const {
    return health_.at(fmt::format("program \"{}\"", program.name()), error);
  }

  // Returns how a submission ended; nullopt while it runs.
  [[nodiscard]] std::optional<Status> end_of(const Pending& pending) const {
    const Messages& call = context_->call();
    const std::uint64_t status = call.status(pending.commands.get());
    if (status == kCompleted) return Status{};
    if (status == kFailed) {
      const Pool pool(context_->runtime());
      const Id error = call.error(pending.commands.get());
      return named(*pending.program, {code_of(call.code(error)), context_->runtime().describe(error)});
    }
    if (has_passed(pending.deadline)) return named(*pending.program, {Code::timed_out, "not done by its deadline"});
    return std::nullopt;
  }

  // Completes what is over or late; a lost device fails all that is pending. Returns false if nothing has ended.
  bool complete() {
    return complete_ended(pending_, [this](const Pending& each) -> std::optional<Status> {
      if (Status lost = health_.get().status; !lost) return lost;
      std::optional<Status> ended = end_of(each);
      if (ended) ended = health_.note(std::move(*ended));
      return ended;
    });
  }

  std::shared_ptr<Context> context_;
  std::unique_ptr<Pipelines> pipelines_;
  DeviceInfo info_;
  std::deque<Pending> pending_;
  HealthRecord health_{info_.id};
};

}  // namespace
}  // namespace shunt::metal

namespace shunt {

Result<BackendReport> open_metal(const OpenOptions&) {
  BackendReport report{.api = "metal", .devices = {}};
  auto runtime = metal::ObjectiveC::open();
  if (!runtime) {
    report.stop(std::move(runtime).error());
    return report;
  }
  if (!has_shaders(ShaderLanguage::msl)) {
    report.stop(StartStage::not_built, "this build has no kernels for it: glslc or spirv-cross was missing");
    return report;
  }
  report.stop(StartStage::no_device, "Metal finds no GPU");
  for (metal::Owned& found : (*runtime)->devices()) {
    report.add(metal::MetalDevice::create(*runtime, std::move(found), report.devices.size()));
  }
  return report;
}

}  // namespace shunt
