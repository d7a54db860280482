#include "devices/webgl/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "devices/health.h"
#include "devices/webgl/program.h"

namespace shunt::webgl {
namespace {

constexpr std::uint64_t kAlignmentBytes = 256;

bool is_emulated(std::string_view renderer) {
  constexpr std::string_view kOnTheCpu[] = {"llvmpipe", "softpipe", "swrast", "Software Rasterizer", "SwiftShader"};
  return std::ranges::any_of(kOnTheCpu, [&](std::string_view name) { return renderer.contains(name); });
}

DeviceInfo describe(const Context& context) {
  const bool emulated = is_emulated(context.renderer());
  DeviceInfo info;
  info.id = "webgl2:0";
  info.name = context.renderer();
  info.type = emulated ? DeviceType::cpu : DeviceType::other;
  info.emulated = emulated;
  info.compute_resource = emulated ? "cpu" : "gpu:" + context.renderer();
  info.memory_pool = info.id;
  info.alignment_bytes = kAlignmentBytes;
  info.largest_binding_bytes = context.limits().largest_binding_bytes;
  info.features = {"WebGL 2.0"};
  info.prior = {.launch_us = emulated ? 500.0 : 300.0,
                .op_us = emulated ? 100.0 : 20.0,
                .flops_per_s = emulated ? 0.05e9 : 0.1e12,
                .bytes_per_s = emulated ? 0.1e9 : 20e9,
                .uncertainty = 0.9};
  return info;
}

class WebglDevice final : public Device {
 public:
  WebglDevice(std::shared_ptr<Context> context, std::unique_ptr<Kernels> kernels)
      : context_(std::move(context)), kernels_(std::move(kernels)), info_(describe(*context_)) {}

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override { return std::nullopt; }

  [[nodiscard]] Support supports(std::span<const OpCall> run) const override {
    Support support = dispatch_support(run, context_->limits());
    if (!support) return support;
    for (const OpCall& call : run) {
      const Shader& shader = *choose_shader(call, context_->limits().largest_binding_bytes).shader;
      support.reason = source_refusal(shader);
      if (support.reason.empty() && call.output->kind != TensorKind::state && !call.output->is_contiguous())
        support.reason = fmt::format("{}: the result has gaps, and draws have none", shunt::name_of(call.op));
      if (!support) return support;
      support.scratch_bytes += WebglProgram::scratch_bytes_of(call, shader, context_->limits().largest_binding_bytes);
    }
    return support;
  }

  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse) override {
    SHUNT_TRY(health_.get().status);
    auto texture = Texture::create(context_, bytes);
    if (!texture) return std::unexpected(health_.note(std::unexpected(texture.error())).error());
    return std::move(*texture);
  }

  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    return Event(now("a write", [&] { return static_cast<Texture*>(to.buffer)->write(to.offset, from); }));
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override {
    return Event(now("a read", [&] { return static_cast<Texture*>(from.buffer)->read(from.offset, to); }));
  }

  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    SHUNT_TRY(health_.get().status);
    auto program = WebglProgram::create(context_, *kernels_, request);
    if (!program) return std::unexpected(health_.note(std::unexpected(program.error())).error());
    return std::move(*program);
  }

  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    if (Status lost = health_.get().status; !lost) return Event(std::move(lost));
    auto& mine = static_cast<WebglProgram&>(program);
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
    poll_patiently([this] { return complete_first(); });
    return true;
  }

  [[nodiscard]] Health health() const override { return health_.get(); }

 private:
  struct Pending {
    WebglProgram* program;
    Event event;
    Deadline deadline;
  };

  static std::string name_of(const WebglProgram& program) { return fmt::format("program \"{}\"", program.name()); }
  [[nodiscard]] std::unexpected<Error> at(std::string_view what, Error error) const {
    return fail_at(fmt::format("{} on {}", what, info_.id), std::move(error));
  }
  [[nodiscard]] Status late(const WebglProgram& program, std::string why) const {
    return at(name_of(program), {Code::timed_out, std::move(why)});
  }

  // Ends the oldest submission if it is over; true if it is, or none is left.
  bool complete_first() {
    if (pending_.empty()) return true;
    Status alive = health_.get().status;
    Pending first = pending_.front();
    if (alive) {
      Result<bool> ended = first.program->has_ended();
      if (ended && !*ended && !has_passed(first.deadline)) return false;
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

  // `ended`: whether it has, by its deadline.
  Status outcome_of(const WebglProgram& program, Result<bool> ended) {
    if (!ended) return health_.note(at(name_of(program), std::move(ended).error()));
    if (!*ended) return health_.note(late(program, "it still ran at its deadline"));
    if (program.was_cut_short()) return late(program, "its deadline came between its ops");
    return {};
  }

  // Does something at once, unless the device was lost.
  template <class Work>
  Status now(std::string_view what, const Work& work) {
    SHUNT_TRY(health_.get().status);
    Status done = work();
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

Result<std::unique_ptr<Device>> open_device(const Functions& functions) {
  if (std::ranges::all_of(shaders(), [](const Shader& shader) { return !source_refusal(shader).empty(); }))
    return fail(Code::unsupported, "this build has no kernels for it: glslc or spirv-cross was missing");
  SHUNT_TRY_ASSIGN(std::shared_ptr<Context> context, Context::create(functions));
  SHUNT_TRY_ASSIGN(std::unique_ptr<Kernels> kernels, Kernels::create(context));
  return std::make_unique<WebglDevice>(std::move(context), std::move(kernels));
}

}  // namespace shunt::webgl

namespace shunt {

Result<BackendReport> open_webgl2(const OpenOptions&) {
  BackendReport report{.api = "webgl2"};
  auto functions = webgl::open_api();
  auto device = functions ? webgl::open_device(*functions) : std::unexpected(std::move(functions).error());
  if (device)
    report.devices.push_back(std::move(*device));
  else
    report.absent_because = device.error().message;
  return report;
}

}  // namespace shunt
