#include "devices/webgl/device.h"

#include <fmt/format.h>

#include <algorithm>

#include "devices/identity.h"
#include "devices/shaders/gl_names.h"
#include "devices/submissions.h"
#include "devices/webgl/program.h"

namespace shunt::webgl {
namespace {

constexpr std::uint64_t kAlignmentBytes = 256;

DeviceInfo describe(const Context& context) {
  const bool emulated = is_software_renderer(context.renderer());
  DeviceInfo info;
  info.id = "webgl2:0";
  info.name = context.renderer();
  info.type = emulated ? DeviceType::cpu : DeviceType::other;
  info.emulated = emulated;
  info.api_version = "WebGL 2.0";
  info.alignment_bytes = kAlignmentBytes;
  info.largest_binding_bytes = context.limits().shader.largest_binding_bytes;
  info.prior = {.launch_us = emulated ? 500.0 : 300.0,
                .op_us = emulated ? 100.0 : 20.0,
                .flops_per_s = emulated ? 0.05e9 : 0.1e12,
                .bytes_per_s = emulated ? 0.1e9 : 20e9,
                .uncertainty = 0.9};
  identify(info, {});
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
      const ShaderLimits& limits = context_->limits().shader;
      const Shader& shader = *choose_shader(call, limits).shader;
      if (call.output->kind != TensorKind::state && !call.output->is_contiguous())
        support.reason = fmt::format("{}: the result has gaps, and draws have none", name_of(call.op));
      constexpr std::size_t kFirstPassInput = kFirstPassBinding - kFirstInputBinding;
      if (support.reason.empty() && !shader.essl300_first.empty() && call.has_input(kFirstPassInput))
        support.reason = fmt::format("{}: {} would be bound where the first pass is", name_of(call.op),
                                     info_of(call.op).inputs[kFirstPassInput]);
      if (!support) return support;
      support.scratch_bytes += WebglProgram::scratch_bytes_of(call, shader, limits.largest_binding_bytes);
    }
    return support;
  }

  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse) override {
    return health_.attempt_buffer(bytes, [&] { return Texture::create(context_, bytes); });
  }

  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    return Event(health_.attempt("a write", [&] { return static_cast<Texture*>(to.buffer)->write(to.offset, from); }));
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override {
    return Event(health_.attempt("a read", [&] { return static_cast<Texture*>(from.buffer)->read(from.offset, to); }));
  }

  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    return health_.attempt_program(request, [&] { return WebglProgram::create(context_, *kernels_, request); });
  }

  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    auto& mine = static_cast<WebglProgram&>(program);
    return submissions_.submit(mine, submission,
                               [&](const Deadline& deadline) -> Status { return mine.submit(submission, deadline); });
  }

  bool advance(std::chrono::nanoseconds patience) override {
    if (submissions_.empty()) return false;
    poll_patiently(patience, [this] {
      return submissions_.complete_first(
          [](const WebglProgram& program, const Deadline&) { return program.has_ended(); });
    });
    return true;
  }

  [[nodiscard]] Health health() const override { return health_.get(); }

 private:
  std::shared_ptr<Context> context_;
  std::unique_ptr<Kernels> kernels_;
  DeviceInfo info_;
  HealthRecord health_{info_.id};
  Submissions<WebglProgram> submissions_{*this, health_};
};

}  // namespace

Result<std::unique_ptr<Device>> open_device(const Functions& functions) {
  if (!has_shaders(ShaderLanguage::essl300))
    return fail(Code::unsupported, "this build has no kernels for it: glslc or spirv-cross was missing");
  SHUNT_TRY_ASSIGN(std::shared_ptr<Context> context, Context::create(functions));
  SHUNT_TRY_ASSIGN(std::unique_ptr<Kernels> kernels, Kernels::create(context));
  return std::make_unique<WebglDevice>(std::move(context), std::move(kernels));
}

}  // namespace shunt::webgl

namespace shunt {

Result<BackendReport> open_webgl2(const OpenOptions&) {
  BackendReport report{.api = "webgl2", .devices = {}};
  auto functions = webgl::open_api();
  auto device = functions ? webgl::open_device(*functions) : std::unexpected(std::move(functions).error());
  if (device)
    report.devices.push_back(std::move(*device));
  else
    report.stop(StartStage::no_library, device.error().message);
  return report;
}

}  // namespace shunt
