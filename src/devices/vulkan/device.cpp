// Vulkan: any GPU with a driver, and drivers that run on the CPU.
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <deque>

#include "devices/health.h"
#include "devices/registry.h"
#include "devices/vulkan/context.h"
#include "devices/vulkan/program.h"
#include "devices/waiting.h"

namespace shunt::vulkan {
namespace {

constexpr std::uint64_t kStagingBytes = std::uint64_t{16} << 20U;

std::string_view vendor_of(std::uint32_t id) {
  switch (id) {
    case 0x1002:
      return "AMD";
    case 0x10DE:
      return "NVIDIA";
    case 0x8086:
      return "Intel";
    case 0x13B5:
      return "Arm";
    case 0x5143:
      return "Qualcomm";
    case 0x10005:
      return "Mesa";
    case 0x1AE0:
      return "Google";
    default:
      return "unknown";
  }
}

DeviceType type_of(VkPhysicalDeviceType type) {
  switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
      return DeviceType::discrete;
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
      return DeviceType::integrated;
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
      return DeviceType::virtual_gpu;
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
      return DeviceType::cpu;
    default:
      return DeviceType::other;
  }
}

DeviceInfo describe(const Context& context, std::size_t number) {
  const VkPhysicalDeviceProperties& properties = context.properties();
  const bool emulated = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  std::string uuid;
  for (const std::uint8_t byte : context.ids().deviceUUID) uuid += fmt::format("{:02x}", byte);
  DeviceInfo info;
  info.id = fmt::format("vulkan:{}", number);
  info.name = properties.deviceName;
  info.vendor = vendor_of(properties.vendorID);
  info.type = type_of(properties.deviceType);
  info.emulated = emulated;
  info.compute_resource = emulated ? "cpu" : "gpu:" + uuid;
  info.memory_pool = info.id;
  info.memory_bytes = context.memory_bytes();
  info.alignment_bytes = std::max<std::uint64_t>(64, properties.limits.minStorageBufferOffsetAlignment);
  info.largest_binding_bytes = properties.limits.maxStorageBufferRange;
  info.features = {fmt::format("Vulkan {}.{}", VK_API_VERSION_MAJOR(properties.apiVersion),
                               VK_API_VERSION_MINOR(properties.apiVersion))};
  info.prior = {.launch_us = emulated ? 200.0 : 30.0,
                .op_us = emulated ? 50.0 : 5.0,
                .flops_per_s = emulated ? 0.2e9 : 1e12,
                .bytes_per_s = emulated ? 0.5e9 : 200e9,
                .uncertainty = 0.9};
  return info;
}

class VulkanDevice final : public Device {
 public:
  static Result<std::unique_ptr<Device>> create(const std::shared_ptr<Instance>& instance, VkPhysicalDevice physical,
                                                std::size_t number) {
    SHUNT_TRY_ASSIGN(std::shared_ptr<Context> context, Context::create(instance, physical));
    SHUNT_TRY_ASSIGN(std::unique_ptr<Pipelines> pipelines, Pipelines::create(context));
    DeviceInfo info = describe(*context, number);
    return std::unique_ptr<Device>(new VulkanDevice(std::move(context), std::move(pipelines), std::move(info)));
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override { return std::nullopt; }

  [[nodiscard]] Support supports(std::span<const OpCall> run) const override {
    return dispatch_support(run, limits_of(*context_));
  }

  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse) override {
    return health_.attempt_buffer(bytes,
                                  [&] { return VulkanBuffer::create(context_, bytes, VulkanBuffer::Place::device); });
  }

  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    return Event(transfer(
        to, from.size(),
        [&](std::byte* place, std::uint64_t at, std::uint64_t bytes) { std::memcpy(place, from.data() + at, bytes); },
        Direction::to_device));
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override {
    return Event(transfer(
        from, to.size(),
        [&](std::byte* place, std::uint64_t at, std::uint64_t bytes) { std::memcpy(to.data() + at, place, bytes); },
        Direction::from_device));
  }

  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    return health_.attempt_program(request, [&] { return VulkanProgram::create(context_, *pipelines_, request); });
  }

  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    auto& mine = static_cast<VulkanProgram&>(program);
    Status started = health_.attempt(name_of(mine), [&] { return mine.submit(submission.parameters); });
    if (!started) return Event(std::move(started));
    Event event(this);
    pending_.push_back({&mine, event, deadline_of(submission)});
    return event;
  }

  bool advance() override {
    if (pending_.empty()) return false;
    Pending first = pending_.front();
    const VkFence fence = first.program->done();
    const auto patience = static_cast<std::uint64_t>(patience_until(first.deadline).count());
    const VkResult result = context_->call().WaitForFences(context_->handle(), 1, &fence, VK_TRUE, patience);
    if (result == VK_TIMEOUT && !has_passed(first.deadline)) return true;
    if (result == VK_TIMEOUT) context_->abandon();
    pending_.pop_front();
    Status ended;
    if (result != VK_SUCCESS)
      ended = health_.note(error_of(result, fmt::format("{} on {}", name_of(*first.program), info_.id)));
    // What was lost is lost for all.
    std::deque<Pending> rest;
    if (!health_.get().status) rest.swap(pending_);
    first.event.complete(std::move(ended));
    for (Pending& each : rest) each.event.complete(health_.get().status);
    return true;
  }

  [[nodiscard]] Health health() const override { return health_.get(); }

 private:
  struct Pending {
    VulkanProgram* program;
    Event event;
    Deadline deadline;
  };
  enum class Direction : std::uint8_t { to_device, from_device };

  VulkanDevice(std::shared_ptr<Context> context, std::unique_ptr<Pipelines> pipelines, DeviceInfo info)
      : context_(std::move(context)), pipelines_(std::move(pipelines)), info_(std::move(info)) {}

  static std::string name_of(const VulkanProgram& program) { return fmt::format("program \"{}\"", program.name()); }

  template <class Copy>
  Status transfer(const Binding& binding, std::uint64_t bytes, const Copy& copy, Direction direction) {
    return health_.attempt(direction == Direction::to_device ? "a write" : "a read",
                           [&] { return move(binding, bytes, copy, direction); });
  }

  // Through the mapping, or through staging memory piece by piece.
  template <class Copy>
  Status move(const Binding& binding, std::uint64_t bytes, const Copy& copy, Direction direction) {
    if (bytes == 0) return {};
    auto& buffer = static_cast<VulkanBuffer&>(*binding.buffer);
    if (!buffer.host().empty()) {
      copy(buffer.host().data() + binding.offset, 0, bytes);
      return {};
    }
    if (staging_ == nullptr) {
      SHUNT_TRY_ASSIGN(staging_, VulkanBuffer::create(context_, kStagingBytes, VulkanBuffer::Place::staging));
    }
    for (std::uint64_t at = 0; at < bytes; at += kStagingBytes) {
      const std::uint64_t piece = std::min(kStagingBytes, bytes - at);
      if (direction == Direction::to_device) copy(staging_->host().data(), at, piece);
      SHUNT_TRY(context_->run_now([&](VkCommandBuffer commands) {
        const bool out = direction == Direction::from_device;
        const VkBufferCopy region{
            .srcOffset = out ? binding.offset + at : 0, .dstOffset = out ? 0 : binding.offset + at, .size = piece};
        context_->call().CmdCopyBuffer(commands, out ? buffer.handle() : staging_->handle(),
                                       out ? staging_->handle() : buffer.handle(), 1, &region);
      }));
      if (direction == Direction::from_device) copy(staging_->host().data(), at, piece);
    }
    return {};
  }

  std::shared_ptr<Context> context_;
  std::unique_ptr<Pipelines> pipelines_;
  DeviceInfo info_;
  std::unique_ptr<VulkanBuffer> staging_;
  std::deque<Pending> pending_;
  HealthRecord health_{info_.id};
};

}  // namespace
}  // namespace shunt::vulkan

namespace shunt {

Result<BackendReport> open_vulkan(const OpenOptions&) {
  BackendReport report{.api = "vulkan"};
  if (shaders().empty()) {
    report.absent_because = "this build has no kernels for it: glslc was missing";
    return report;
  }
  auto instance = vulkan::Instance::open();
  if (!instance) {
    report.absent_because = instance.error().message;
    return report;
  }
  const vulkan::InstanceFunctions& api = (*instance)->functions();
  std::uint32_t count = 0;
  std::vector<VkPhysicalDevice> found;
  if (api.EnumeratePhysicalDevices((*instance)->handle(), &count, nullptr) == VK_SUCCESS) {
    found.resize(count);
    static_cast<void>(api.EnumeratePhysicalDevices((*instance)->handle(), &count, found.data()));
  }
  report.absent_because = "no driver offers a device; install mesa-vulkan-drivers or the vendor's driver";
  for (const VkPhysicalDevice physical : found) {
    auto device = vulkan::VulkanDevice::create(*instance, physical, report.devices.size());
    if (device)
      report.devices.push_back(std::move(*device));
    else
      report.absent_because = device.error().message;
  }
  return report;
}

}  // namespace shunt
