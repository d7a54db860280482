#include "devices/gl/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "devices/gl/program.h"
#include "devices/health.h"

namespace shunt::gl {
namespace {

constexpr std::uint64_t kAlignmentBytes = 256;

bool is_emulated(std::string_view renderer) {
  constexpr std::string_view kOnTheCpu[] = {"llvmpipe", "softpipe", "swrast", "Software Rasterizer", "SwiftShader"};
  return std::ranges::any_of(kOnTheCpu, [&](std::string_view name) { return renderer.contains(name); });
}

DeviceInfo describe(const Context& context, std::size_t number) {
  const Description& from = context.description();
  const bool emulated = is_emulated(from.renderer);
  DeviceInfo info;
  info.id = fmt::format("{}:{}", name_of(context.api()), number);
  info.name = from.renderer;
  info.vendor = from.vendor;
  info.type = emulated ? DeviceType::cpu : from.has_own_memory ? DeviceType::discrete : DeviceType::other;
  info.emulated = emulated;
  info.compute_resource = emulated ? "cpu" : "gpu:" + (from.uuid.empty() ? from.renderer : from.uuid);
  info.memory_pool = info.id;
  info.memory_bytes = from.memory_bytes;
  info.alignment_bytes =
      std::max({kAlignmentBytes, from.limits.storage_alignment_bytes, from.limits.uniform_alignment_bytes});
  info.largest_binding_bytes = from.limits.largest_binding_bytes;
  info.features = {from.version};
  info.prior = {.launch_us = emulated ? 200.0 : 50.0,
                .op_us = emulated ? 50.0 : 10.0,
                .flops_per_s = emulated ? 0.2e9 : 1e12,
                .bytes_per_s = emulated ? 0.5e9 : 100e9,
                .uncertainty = 0.9};
  return info;
}

class GlDevice final : public Device {
 public:
  static Result<std::unique_ptr<Device>> create(std::shared_ptr<Context> context, std::size_t number) {
    SHUNT_TRY_ASSIGN(std::unique_ptr<Kernels> kernels, Kernels::create(context));
    DeviceInfo info = describe(*context, number);
    return std::unique_ptr<Device>(new GlDevice(std::move(context), std::move(kernels), std::move(info)));
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override { return context_->memory_available(); }

  [[nodiscard]] Support supports(std::span<const OpCall> run) const override {
    return dispatch_support(run, context_->description().limits);
  }

  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse) override {
    SHUNT_TRY(health_.get().status);
    auto buffer = GlBuffer::create(context_, bytes);
    if (!buffer) return std::unexpected(health_.note(std::unexpected(buffer.error())).error());
    return std::move(*buffer);
  }

  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    return Event(now("a write", [&] { return static_cast<GlBuffer*>(to.buffer)->write(to.offset, from); }));
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override {
    return Event(now("a read", [&] { return static_cast<GlBuffer*>(from.buffer)->read(from.offset, to); }));
  }

  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    SHUNT_TRY(health_.get().status);
    auto program = GlProgram::create(context_, *kernels_, request);
    if (!program) return std::unexpected(health_.note(std::unexpected(program.error())).error());
    return std::move(*program);
  }

  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    if (Status lost = health_.get().status; !lost) return Event(std::move(lost));
    auto& mine = static_cast<GlProgram&>(program);
    // Nothing was started, so the device is as it was.
    const Deadline deadline = deadline_of(submission);
    if (has_passed(deadline)) return Event(late(mine, "its deadline had passed before it was submitted"));
    Status started = now(name_of(mine), [&] { return mine.submit(submission.parameters, deadline); });
    if (!started) return Event(std::move(started));
    Event event(this);
    pending_.push_back({&mine, event, deadline});
    return event;
  }

  bool advance() override {
    if (pending_.empty()) return false;
    Status alive = health_.get().status;
    Pending first = pending_.front();
    if (alive) {
      Result<bool> ended = wait(first);
      if (ended && !*ended && !has_passed(first.deadline)) return true;
      pending_.pop_front();
      const Status outcome = outcome_of(*first.program, std::move(ended));
      alive = health_.get().status;
      first.event.complete(outcome);
    }
    // What was lost is lost for all.
    std::deque<Pending> rest;
    if (!alive) rest.swap(pending_);
    for (Pending& each : rest) each.event.complete(alive);
    return true;
  }

  [[nodiscard]] Health health() const override { return health_.get(); }

 private:
  struct Pending {
    GlProgram* program;
    Event event;
    Deadline deadline;
  };

  GlDevice(std::shared_ptr<Context> context, std::unique_ptr<Kernels> kernels, DeviceInfo info)
      : context_(std::move(context)), kernels_(std::move(kernels)), info_(std::move(info)) {}

  static std::string name_of(const GlProgram& program) { return fmt::format("program \"{}\"", program.name()); }
  [[nodiscard]] std::unexpected<Error> at(std::string_view what, Error error) const {
    return fail_at(fmt::format("{} on {}", what, info_.id), std::move(error));
  }
  [[nodiscard]] Status late(const GlProgram& program, std::string why) const {
    return at(name_of(program), {Code::timed_out, std::move(why)});
  }

  // `ended`: whether it has, by its deadline.
  Status outcome_of(const GlProgram& program, Result<bool> ended) {
    if (!ended) return health_.note(at(name_of(program), std::move(ended).error()));
    if (!*ended) return health_.note(late(program, "it still ran at its deadline"));
    if (program.was_cut_short()) return late(program, "its deadline came between its ops");
    return {};
  }

  Result<bool> wait(const Pending& pending) const {
    const Current current(*context_);
    SHUNT_TRY(current.status());
    return pending.program->wait(static_cast<std::uint64_t>(patience_until(pending.deadline).count()));
  }

  // Does something at once, with the context, unless the device was lost.
  template <class Work>
  Status now(std::string_view what, const Work& work) {
    SHUNT_TRY(health_.get().status);
    const Current current(*context_);
    Status done = current.status();
    if (done) done = work();
    if (done) return done;
    return health_.note(at(what, std::move(done).error()));
  }

  std::shared_ptr<Context> context_;
  std::unique_ptr<Kernels> kernels_;
  DeviceInfo info_;
  std::deque<Pending> pending_;
  HealthRecord health_;
};

}  // namespace

BackendReport open_api(Api api, const Adjust& adjust) {
  BackendReport report{.api = std::string(name_of(api))};
  if (shaders().empty() || source_of(shaders().front(), api).empty()) {
    report.absent_because = shaders().empty() ? "this build has no kernels for it: glslc was missing"
                                              : "this build has no kernels for it: spirv-cross was missing";
    return report;
  }
  auto egl = Egl::open();
  if (!egl) {
    report.absent_because = egl.error().message;
    return report;
  }
  report.absent_because = "no driver offers EGL without a window; install libegl-mesa0 or the vendor's driver";
  for (const Display& display : (*egl)->displays()) {
    if (display.is_last_resort && !report.devices.empty()) continue;
    auto context = Context::create(*egl, display, api, adjust);
    auto device = context ? GlDevice::create(std::move(*context), report.devices.size())
                          : std::unexpected(std::move(context).error());
    if (device)
      report.devices.push_back(std::move(*device));
    else
      report.absent_because = device.error().message;
  }
  return report;
}

}  // namespace shunt::gl

namespace shunt {

Result<BackendReport> open_gl(const OpenOptions&) { return gl::open_api(gl::Api::gl); }
Result<BackendReport> open_gles(const OpenOptions&) { return gl::open_api(gl::Api::gles); }

}  // namespace shunt
