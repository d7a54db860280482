#include "devices/webgpu/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "devices/backend.h"
#include "devices/identity.h"
#include "devices/pending.h"
#include "devices/webgpu/commands.h"

namespace shunt::webgpu {
namespace {

// A larger read gets a buffer of its own.
constexpr std::uint64_t kKeptReadbackBytes = std::uint64_t{16} << 20U;

DeviceType type_of(AdapterType type) {
  switch (type) {
    case AdapterType::discrete:
      return DeviceType::discrete;
    case AdapterType::integrated:
      return DeviceType::integrated;
    case AdapterType::cpu:
      return DeviceType::cpu;
    default:
      return DeviceType::other;
  }
}

DeviceInfo describe(const Context& context, std::string id, const OpenOptions& options) {
  const AdapterDescription& adapter = context.adapter();
  const bool emulated = adapter.type == AdapterType::cpu;
  DeviceInfo info;
  info.name = adapter.name;
  info.vendor = adapter.vendor;
  info.type = type_of(adapter.type);
  info.emulated = emulated;
  info.api_version = "WebGPU";
  info.driver = adapter.driver;
  if (adapter.vendor_id != 0) info.hardware = fmt::format("{:04x}:{:04x}", adapter.vendor_id, adapter.device_id);
  info.memory_bytes = adapter.memory_bytes;
  info.alignment_bytes = kAlignment;
  info.largest_binding_bytes = context.largest_binding_bytes();
  info.features = {DeviceFeature::atomics, DeviceFeature::shared_memory};
  info.prior = {.launch_us = emulated ? 500.0 : 50.0,
                .op_us = emulated ? 50.0 : 5.0,
                .flops_per_s = emulated ? 0.2e9 : 1e12,
                .bytes_per_s = emulated ? 0.5e9 : 200e9,
                .uncertainty = 0.9};
  info.id = std::move(id);
  identify(info, options.known);
  return info;
}

}  // namespace

Result<std::unique_ptr<WebGpuDevice>> WebGpuDevice::create(std::shared_ptr<Context> context, std::string id,
                                                           const OpenOptions& options) {
  DeviceInfo info = describe(*context, std::move(id), options);
  SHUNT_TRY_ASSIGN(std::unique_ptr<Writer> writer, Writer::create(context));
  return std::unique_ptr<WebGpuDevice>(new WebGpuDevice(std::move(context), std::move(writer), std::move(info)));
}

WebGpuDevice::WebGpuDevice(std::shared_ptr<Context> context, std::unique_ptr<Writer> writer, DeviceInfo info)
    : context_(std::move(context)), writer_(std::move(writer)), pipelines_(context_), info_(std::move(info)) {}

Support WebGpuDevice::supports(std::span<const OpCall> run) const { return program_support(run, limits_of(*context_)); }

Result<std::unique_ptr<Buffer>> WebGpuDevice::allocate(std::uint64_t bytes, BufferUse) {
  SHUNT_TRY(usable());
  return health_.attempt_buffer(
      bytes, [&] { return WebGpuBuffer::create(context_, bytes, kStorage | kCopySource | kCopyTarget); });
}

Event WebGpuDevice::write(const Binding& to, std::span<const std::byte> from) {
  if (Status ready = usable(); !ready) return Event(std::move(ready));
  if (!from.empty()) writer_->write(static_cast<const WebGpuBuffer&>(*to.buffer), to.offset, from);
  return Event(context_->take_stray_error());
}

Event WebGpuDevice::read(const Binding& from, std::span<std::byte> to) {
  if (Status ready = usable(); !ready || to.empty()) return Event(std::move(ready));
  const auto skipped = static_cast<std::size_t>(from.offset % 4);
  const std::uint64_t bytes = whole_words(skipped + to.size());
  auto mapped = readback(bytes);
  if (!mapped) return Event(health_.note(std::unexpected(mapped.error())));
  context_->open_scopes();
  Commands commands(*context_);
  commands.copy(static_cast<const WebGpuBuffer&>(*from.buffer).handle(), from.offset - skipped, (*mapped)->handle(), 0,
                bytes);
  commands.submit();
  auto outcome = context_->close_scopes();
  context_->await_map(outcome, (*mapped)->handle(), bytes);
  Event event(this);
  pending_.push_back({.outcome = std::move(outcome),
                      .event = event,
                      .what = fmt::format("reading {} bytes", to.size()),
                      .mapped = std::move(*mapped),
                      .skipped = skipped,
                      .to = to});
  return event;
}

Result<std::unique_ptr<Program>> WebGpuDevice::prepare(const ProgramRequest& request) {
  SHUNT_TRY(usable());
  return health_.attempt_program(request, [&] { return WebGpuProgram::create(context_, pipelines_, request); });
}

Event WebGpuDevice::submit(Program& program, const Submission& submission) {
  if (Status ready = usable(); !ready) return Event(std::move(ready));
  auto& mine = static_cast<WebGpuProgram&>(program);
  std::string what = fmt::format("program \"{}\"", mine.name());
  const Deadline deadline = deadline_of(submission);
  if (has_passed(deadline))
    return Event(health_.at(what, {Code::timed_out, "its deadline had passed before it began"}));
  Event event(this);
  pending_.push_back(
      {.outcome = mine.submit(submission), .event = event, .what = std::move(what), .deadline = deadline});
  return event;
}

bool WebGpuDevice::advance(std::chrono::nanoseconds patience) {
  if (pending_.empty()) return false;
  context_->wait(*pending_.front().outcome, until_deadline(patience));
  complete_ended(pending_,
                 [this](Pending& each) { return has_ended(each) ? std::optional(end_of(each)) : std::nullopt; });
  return true;
}

Status WebGpuDevice::usable() {
  if (Status lost = context_->lost(); !lost) return health_.note(fail_at(info_.id, std::move(lost).error()));
  return health_.get().status;
}

Result<std::unique_ptr<WebGpuBuffer>> WebGpuDevice::readback(std::uint64_t bytes) {
  if (readback_ != nullptr && readback_->bytes() >= bytes) return std::move(readback_);
  return WebGpuBuffer::create(context_, bytes, kMapRead | kCopyTarget);
}

std::chrono::nanoseconds WebGpuDevice::until_deadline(std::chrono::nanoseconds patience) const {
  for (const Pending& pending : pending_) patience = std::min(patience, patience_until(pending.deadline, patience));
  return patience;
}

bool WebGpuDevice::has_ended(const Pending& pending) const {
  if (pending.outcome->done() || !context_->lost()) return true;
  return has_passed(pending.deadline);
}

// REQUIRES: has_ended(pending).
Status WebGpuDevice::end_of(Pending& pending) {
  Status status;
  if (!pending.outcome->done() && context_->lost()) {
    status = fail(Code::timed_out, "it ran past its deadline");
  } else {
    status = context_->conclude(*pending.outcome);
    if (status && pending.mapped != nullptr) status = copy_out(pending);
  }
  if (status) return status;
  return health_.note(health_.at(pending.what, std::move(status).error()));
}

Status WebGpuDevice::copy_out(Pending& pending) {
  const Functions& call = context_->call();
  const std::size_t bytes = whole_words(pending.skipped + pending.to.size());
  const void* range = call.BufferGetConstMappedRange(pending.mapped->handle(), 0, bytes);
  if (range == nullptr) return fail(Code::internal, "what was read cannot be mapped");
  std::memcpy(pending.to.data(), static_cast<const std::byte*>(range) + pending.skipped, pending.to.size());
  call.BufferUnmap(pending.mapped->handle());
  if (pending.mapped->bytes() <= kKeptReadbackBytes) readback_ = std::move(pending.mapped);
  return {};
}

}  // namespace shunt::webgpu

namespace shunt {
namespace {

// WebGPU lists no adapters; it returns the one that best fits a request.
constexpr webgpu::AdapterChoice kChoices[] = {
    {.power = webgpu::PowerPreference::high_performance},
    {.power = webgpu::PowerPreference::low_power},
    {.fallback = true},
};

bool is_same(const webgpu::AdapterDescription& a, const webgpu::AdapterDescription& b) {
  return a.name == b.name && a.vendor_id == b.vendor_id && a.device_id == b.device_id;
}

}  // namespace

Result<BackendReport> open_webgpu(const OpenOptions& options) {
  BackendReport report{.api = "webgpu", .devices = {}};
  if (!has_shaders(ShaderLanguage::wgsl)) {
    report.stop(
        StartStage::not_built,
        "built without Node: no WGSL; install glslc, nodejs and npm, run npm ci --prefix tools/npm and build again");
    return report;
  }
  auto functions = webgpu::open_library();
  if (!functions) {
    report.stop(std::move(functions).error());
    return report;
  }
  std::vector<std::shared_ptr<webgpu::Context>> found;
  for (const webgpu::AdapterChoice& choice : kChoices) {
    auto context = webgpu::Context::create(*functions, choice);
    if (!context) {
      if (report.absent_because.empty()) report.stop(StartStage::no_device, context.error().message);
      continue;
    }
    const auto same = [&](const auto& other) { return is_same(other->adapter(), (*context)->adapter()); };
    if (std::ranges::none_of(found, same)) found.push_back(std::move(*context));
  }
  if (found.empty())
    report.stop(
        StartStage::no_device,
        fmt::format(
            "Dawn finds no adapter ({}); it needs a Vulkan driver of a GPU, or SwiftShader's: install chromium and set "
            "VK_ICD_FILENAMES=/usr/lib/chromium/vk_swiftshader_icd.json",
            report.absent_because));
  for (auto& context : found) {
    report.add(
        webgpu::WebGpuDevice::create(std::move(context), fmt::format("webgpu:{}", report.devices.size()), options));
  }
  return report;
}

}  // namespace shunt
