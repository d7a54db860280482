// Vulkan: any GPU with a driver, and drivers that run on the CPU.
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <utility>

#include "devices/backend.h"
#include "devices/health.h"
#include "devices/identity.h"
#include "devices/pending.h"
#include "devices/vulkan/context.h"
#include "devices/vulkan/program.h"
#include "devices/waiting.h"

namespace shunt::vulkan {
namespace {

constexpr std::uint64_t kEagernessNs = 500'000;

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

DeviceInfo describe(Context& context, std::size_t number, const OpenOptions& options) {
  const VkPhysicalDeviceProperties& properties = context.properties();
  const bool emulated = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
  DeviceInfo info;
  for (const std::uint8_t byte : context.ids().deviceUUID) info.uuid += fmt::format("{:02x}", byte);
  info.id = fmt::format("vulkan:{}", number);
  info.name = properties.deviceName;
  info.vendor = vendor_of(properties.vendorID);
  info.type = type_of(properties.deviceType);
  info.emulated = emulated;
  info.hardware = fmt::format("{:04x}:{:04x}", properties.vendorID, properties.deviceID);
  info.memory_bytes = context.memory().bytes();
  info.alignment_bytes = std::max<std::uint64_t>(64, properties.limits.minStorageBufferOffsetAlignment);
  info.largest_binding_bytes = properties.limits.maxStorageBufferRange;
  info.api_version = fmt::format("Vulkan {}.{}", VK_API_VERSION_MAJOR(properties.apiVersion),
                                 VK_API_VERSION_MINOR(properties.apiVersion));
  context.describe(info);
  // A multiprocessor has 128 lanes that multiply and add at somewhat more than 1 GHz.
  const double rate = info.compute_units == 0 ? 1e12 : info.compute_units * 256e9 * 1.5;
  info.prior = {.launch_us = emulated ? 200.0 : 30.0,
                .op_us = emulated ? 50.0 : 5.0,
                .flops_per_s = emulated ? 0.2e9 : rate,
                .bytes_per_s = emulated ? 0.5e9 : 200e9,
                .uncertainty = 0.9};
  identify(info, options.known);
  return info;
}

class VulkanDevice final : public Device {
 public:
  static Result<std::unique_ptr<Device>> create(const std::shared_ptr<Instance>& instance, VkPhysicalDevice physical,
                                                std::size_t number, const OpenOptions& options) {
    SHUNT_TRY_ASSIGN(std::shared_ptr<Context> context, Context::create(instance, physical));
    SHUNT_TRY_ASSIGN(std::unique_ptr<Pipelines> pipelines, Pipelines::create(context));
    DeviceInfo info = describe(*context, number, options);
    return std::unique_ptr<Device>(
        new VulkanDevice(std::move(context), std::move(pipelines), std::move(info), options.recorder));
  }

  [[nodiscard]] const DeviceInfo& info() const override { return info_; }
  [[nodiscard]] std::optional<std::uint64_t> memory_available() const override {
    return context_->memory().available();
  }

  [[nodiscard]] Support supports(std::span<const OpCall> run) const override {
    return dispatch_support(run, limits_of(*context_));
  }

  [[nodiscard]] Result<std::unique_ptr<Buffer>> allocate(std::uint64_t bytes, BufferUse) override {
    return health_.attempt_buffer(bytes, [&]() -> Result<std::unique_ptr<VulkanBuffer>> {
      auto buffer = VulkanBuffer::create(context_, bytes, Place::device);
      if (!buffer && buffer.error().code == Code::out_of_memory) {
        SHUNT_TRY(free_what_is_over());
        buffer = VulkanBuffer::create(context_, bytes, Place::device);
      }
      if (buffer && (*buffer)->host().empty()) transfer_.clear(**buffer);
      return buffer;
    });
  }
  [[nodiscard]] Result<std::unique_ptr<Buffer>> import_host(std::span<const std::byte> memory,
                                                            std::shared_ptr<const void> owner) override {
    return health_.attempt_buffer(memory.size(),
                                  [&] { return VulkanBuffer::import(context_, memory, std::move(owner)); });
  }

  [[nodiscard]] Event write(const Binding& to, std::span<const std::byte> from) override {
    auto& buffer = static_cast<VulkanBuffer&>(*to.buffer);
    return Event(health_.attempt("a write", [&] { return transfer_.write(buffer, to.offset, from, settle()); }));
  }
  [[nodiscard]] Event read(const Binding& from, std::span<std::byte> to) override {
    auto& buffer = static_cast<VulkanBuffer&>(*from.buffer);
    auto arrivals = health_.attempt("a read", [&] { return transfer_.read(buffer, from.offset, to, settle()); });
    if (!arrivals) return Event(std::unexpected(std::move(arrivals).error()));
    if (arrivals->empty()) return Event(Status{});
    Event event(this);
    const Moment end = arrivals->back().at;
    pending_.push_back({.event = event, .end = end, .arrivals = std::move(*arrivals)});
    return event;
  }

  [[nodiscard]] Result<std::unique_ptr<Program>> prepare(const ProgramRequest& request) override {
    return health_.attempt_program(request, [&] {
      return VulkanProgram::create(context_, *pipelines_, request, ProgramTrace(request, info_.id, recorder_));
    });
  }

  [[nodiscard]] Event submit(Program& program, const Submission& submission) override {
    auto& mine = static_cast<VulkanProgram&>(program);
    context_->collect();
    const Result<Moment> end =
        health_.attempt(fmt::format("program \"{}\"", mine.name()), [&] { return mine.submit(transfer_, submission); });
    if (!end) return Event(std::unexpected(end.error()));
    Event event(this);
    pending_.push_back({.event = event, .end = *end, .program = &mine, .deadline = deadline_of(submission)});
    return event;
  }

  bool advance(std::chrono::nanoseconds patience) override {
    if (pending_.empty()) return false;
    work_on_pending(patience);
    return true;
  }

  [[nodiscard]] Health health() const override { return health_.get(); }

 private:
  // A submission or a read.
  struct Pending {
    Event event;
    Moment end;
    VulkanProgram* program = nullptr;
    Deadline deadline{};
    std::vector<Arrival> arrivals{};

    [[nodiscard]] std::string what() const {
      return program != nullptr ? fmt::format("program \"{}\"", program->name()) : "a read";
    }
  };

  VulkanDevice(std::shared_ptr<Context> context, std::unique_ptr<Pipelines> pipelines, DeviceInfo info,
               trace::Recorder* recorder)
      : context_(std::move(context)),
        pipelines_(std::move(pipelines)),
        info_(std::move(info)),
        recorder_(recorder),
        transfer_(context_) {}

  [[nodiscard]] Point point_of(const Moment& moment) {
    if (moment.transfer != 0) return {&context_->transfer(), moment.transfer};
    return {&context_->compute(), moment.compute};
  }

  // At most until the next deadline.
  [[nodiscard]] std::uint64_t patience_ns(std::chrono::nanoseconds patience) const {
    for (const Pending& each : pending_) patience = std::min(patience, patience_until(each.deadline, patience));
    return static_cast<std::uint64_t>(patience.count());
  }

  // Waits for the first pending work of each queue.
  Status wait_for_pending(std::chrono::nanoseconds most) {
    std::vector<Point> points;
    for (const Pending& each : pending_) {
      const Point point = point_of(each.end);
      if (std::ranges::find(points, point.queue, &Point::queue) == points.end()) points.push_back(point);
    }
    const std::uint64_t patience = patience_ns(most);
    // A GPU is usually done before the system would wake a thread; a driver on the CPU needs the processor itself.
    if (!info_.emulated) {
      SHUNT_TRY_ASSIGN(const bool over, Queue::poll_for_any(points, std::min(patience, kEagernessNs)));
      if (over) return {};
    }
    SHUNT_TRY(Queue::wait_for_any(points, patience));
    return {};
  }

  // Waits a while, then completes what has ended or is late.
  void work_on_pending(std::chrono::nanoseconds patience) {
    Status waited = wait_for_pending(patience);
    if (!waited) waited = health_.lose(health_.at(pending_.front().what(), std::move(waited).error()));
    complete_ended(pending_, [this](Pending& each) { return end_of(each); });
  }

  // Returns nullopt if the work has not ended. A lost device fails all that is pending.
  std::optional<Status> end_of(Pending& pending) {
    Status status = health_.get().status;
    if (status) {
      const Result<bool> over = context_->has_reached(pending.end);
      if (over && !*over && !has_passed(pending.deadline)) return std::nullopt;
      if (!over) {
        status = health_.lose(health_.at(pending.what(), over.error()));
      } else if (!*over) {
        status = health_.lose(health_.at(pending.what(), {Code::timed_out, "it still ran at its deadline"}));
      } else {
        for (Arrival& arrival : pending.arrivals) transfer_.finish(std::move(arrival));
      }
    }
    if (pending.program != nullptr) pending.program->finish(status);
    context_->collect();
    return status;
  }

  // Waits within a call; pending work may turn out to be late meanwhile.
  [[nodiscard]] Settle settle() {
    return [this](const Moment& moment) -> Status {
      for (const Moment& part : {Moment{.compute = moment.compute}, Moment{.transfer = moment.transfer}})
        while (true) {
          SHUNT_TRY_ASSIGN(const bool over, context_->has_reached(part));
          if (over) break;
          const Point point = point_of(part);
          SHUNT_TRY(Queue::wait_for_any({&point, 1}, patience_ns(kPatience)));
          if (std::ranges::any_of(pending_, [](const Pending& each) { return has_passed(each.deadline); }))
            work_on_pending(kPatience);
          SHUNT_TRY(health_.get().status);
        }
      return {};
    };
  }

  // Frees the memory of destroyed buffers that copies were still to use.
  Status free_what_is_over() {
    SHUNT_TRY(transfer_.flush());
    SHUNT_TRY(settle()(context_->submitted()));
    context_->collect();
    context_->memory().trim();
    return {};
  }

  std::shared_ptr<Context> context_;
  std::unique_ptr<Pipelines> pipelines_;
  DeviceInfo info_;
  trace::Recorder* recorder_;
  Transfer transfer_;
  std::deque<Pending> pending_;
  HealthRecord health_{info_.id};
};

}  // namespace
}  // namespace shunt::vulkan

namespace shunt {

Result<BackendReport> open_vulkan(const OpenOptions& options) {
  BackendReport report{.api = "vulkan", .devices = {}};
  if (shaders().empty()) {
    report.stop(StartStage::not_built, "this build has no kernels for it: glslc was missing");
    return report;
  }
  auto instance = vulkan::Instance::open();
  if (!instance) {
    report.stop(std::move(instance).error());
    return report;
  }
  const vulkan::InstanceFunctions& api = (*instance)->functions();
  std::uint32_t count = 0;
  std::vector<VkPhysicalDevice> found;
  if (api.EnumeratePhysicalDevices((*instance)->handle(), &count, nullptr) == VK_SUCCESS) {
    found.resize(count);
    static_cast<void>(api.EnumeratePhysicalDevices((*instance)->handle(), &count, found.data()));
  }
  report.stop(StartStage::no_device, "no driver offers a device; install mesa-vulkan-drivers or the vendor's driver");
  for (const VkPhysicalDevice physical : found) {
    report.add(vulkan::VulkanDevice::create(*instance, physical, report.devices.size(), options));
  }
  return report;
}

}  // namespace shunt
