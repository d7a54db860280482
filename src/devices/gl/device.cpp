#include "devices/gl/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "devices/gl/program.h"
#include "devices/identity.h"
#include "devices/shaders/gl_names.h"
#include "devices/submissions.h"

namespace shunt::gl {
namespace {

constexpr std::uint64_t kAlignmentBytes = 256;

DeviceInfo describe(const Context& context, std::size_t number, const OpenOptions& options) {
  const Description& from = context.description();
  const bool emulated = is_software_renderer(from.renderer);
  DeviceInfo info;
  info.id = fmt::format("{}:{}", name_of(context.api()), number);
  info.name = from.renderer;
  info.vendor = from.vendor;
  info.type = emulated ? DeviceType::cpu : from.has_own_memory ? DeviceType::discrete : DeviceType::other;
  info.emulated = emulated;
  info.uuid = from.uuid;
  info.driver = from.driver;
  info.api_version = from.version;
  info.memory_bytes = from.memory_bytes;
  info.alignment_bytes =
      std::max({kAlignmentBytes, from.limits.storage_alignment_bytes, from.limits.uniform_alignment_bytes});
  info.largest_binding_bytes = from.limits.shader.largest_binding_bytes;
  info.shared_memory_bytes = from.shared_memory_bytes;
  info.largest_workgroup = from.largest_workgroup;
  info.features = from.features;
  info.prior = {.launch_us = emulated ? 200.0 : 50.0,
                .op_us = emulated ? 50.0 : 10.0,
                .flops_per_s = emulated ? 0.2e9 : 1e12,
                .bytes_per_s = emulated ? 0.5e9 : 100e9,
                .uncertainty = 0.9};
  identify(info, options.known);
  return info;
}

class GlDevice final : public Device {
 public:
  static Result<std::unique_ptr<Device>> create(std::shared_ptr<Context> context, std::size_t number,
                                                const OpenOptions& options) {
    SHUNT_TRY_ASSIGN(std::unique_ptr<Kernels> kernels, Kernels::create(context));
    DeviceInfo info = describe(*context, number, options);
    return std::unique_ptr<Device>(new GlDevice(std::move(context), std::move(kernels), std::move(info)));
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override { return context_->memory_available(); }

  [[nodiscard]] Support supports(std::span<const OpCall> run) const override {
    return dispatch_support(run, context_->description().limits);
  }

  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse) override {
    return health_.attempt_buffer(bytes, [&] { return GlBuffer::create(context_, bytes); });
  }

  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    return Event(now("a write", [&] { return static_cast<GlBuffer*>(to.buffer)->write(to.offset, from); }));
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override {
    return Event(now("a read", [&] { return static_cast<GlBuffer*>(from.buffer)->read(from.offset, to); }));
  }

  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    return health_.attempt_program(request, [&] { return GlProgram::create(context_, *kernels_, request); });
  }

  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    auto& mine = static_cast<GlProgram&>(program);
    return submissions_.submit(mine, submission, [&](const Deadline& deadline) -> Status {
      const Current current(*context_);
      SHUNT_TRY(current.status());
      return mine.submit(submission, deadline);
    });
  }

  bool advance(std::chrono::nanoseconds patience) override {
    if (submissions_.empty()) return false;
    submissions_.complete_first([this, patience](const GlProgram& program, const Deadline& deadline) -> Result<bool> {
      const Current current(*context_);
      SHUNT_TRY(current.status());
      return program.wait(static_cast<std::uint64_t>(patience_until(deadline, patience).count()));
    });
    return true;
  }

  [[nodiscard]] Health health() const override { return health_.get(); }

 private:
  GlDevice(std::shared_ptr<Context> context, std::unique_ptr<Kernels> kernels, DeviceInfo info)
      : context_(std::move(context)), kernels_(std::move(kernels)), info_(std::move(info)) {}

  // Does work immediately, with the context current.
  template <class Work>
  Status now(std::string_view what, const Work& work) {
    return health_.attempt(what, [&]() -> Status {
      const Current current(*context_);
      SHUNT_TRY(current.status());
      return work();
    });
  }

  std::shared_ptr<Context> context_;
  std::unique_ptr<Kernels> kernels_;
  DeviceInfo info_;
  HealthRecord health_{info_.id};
  Submissions<GlProgram> submissions_{*this, health_};
};

}  // namespace

BackendReport open_api(Api api, const OpenOptions& options, const Adjust& adjust) {
  BackendReport report{.api = std::string(name_of(api)), .devices = {}};
  if (!has_shaders(language_of(api))) {
    report.stop(StartStage::not_built, shaders().empty() ? "this build has no kernels for it: glslc was missing"
                                                         : "this build has no kernels for it: spirv-cross was missing");
    return report;
  }
  auto egl = Egl::open();
  if (!egl) {
    report.stop(std::move(egl).error());
    return report;
  }
  report.stop(StartStage::no_device,
              "no driver offers EGL without a window; install libegl-mesa0 or the vendor's driver");
  for (const Display& display : (*egl)->displays()) {
    if (display.is_last_resort && !report.devices.empty()) continue;
    auto context = Context::create(*egl, display, api, adjust);
    report.add(context ? GlDevice::create(std::move(*context), report.devices.size(), options)
                       : std::unexpected(std::move(context).error()));
  }
  return report;
}

}  // namespace shunt::gl

namespace shunt {

Result<BackendReport> open_gl(const OpenOptions& options) { return gl::open_api(gl::Api::gl, options); }
Result<BackendReport> open_gles(const OpenOptions& options) { return gl::open_api(gl::Api::gles, options); }

}  // namespace shunt
