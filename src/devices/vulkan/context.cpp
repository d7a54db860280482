#include "devices/vulkan/context.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

namespace shunt::vulkan {
namespace {

// The time that closing waits for submitted work; the end of the process waits as long again.
constexpr std::chrono::seconds kClosingPatience{2};

// Devices that were closed before their work had ended, with everything that it may still touch.
struct Abandoned {
  std::mutex mutex;
  std::vector<std::unique_ptr<Context>> contexts;
};

Abandoned& abandoned() {
  static auto& all = *new Abandoned;  // NOLINT(cppcoreguidelines-owning-memory): never freed
  return all;
}

}  // namespace

Result<std::shared_ptr<Context>> Context::create(std::shared_ptr<Instance> instance, VkPhysicalDevice physical) {
  std::shared_ptr<Context> context(new Context, close);
  context->instance_ = std::move(instance);
  context->physical_ = physical;
  SHUNT_TRY(context->start());
  return context;
}

Status Context::start() {
  const InstanceFunctions& api = instance_->functions();
  VkPhysicalDeviceProperties2 properties{};
  properties.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2;
  ids_.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES;
  properties.pNext = &ids_;
  api.GetPhysicalDeviceProperties2(physical_, &properties);
  properties_ = properties.properties;
  if (properties_.apiVersion < VK_API_VERSION_1_1)
    return fail(Code::unsupported, fmt::format("{} has Vulkan 1.0, and 1.1 is needed", properties_.deviceName));
  SHUNT_TRY(check_limits(properties_));
  page_bytes_ = static_cast<std::uint64_t>(std::max(1L, sysconf(_SC_PAGESIZE)));
  SHUNT_TRY_ASSIGN(const std::vector<QueuePlace> queues, choose_queues());
  const FeatureChain chain(*instance_, physical_, properties_);
  features_ = chain.features();
  SHUNT_TRY(make_device(chain, queues));
  const Memory::Limits limits{.most_blocks = properties_.limits.maxMemoryAllocationCount,
                              .shares_host_memory = shares_host_memory(),
                              .has_budget = features_.memory_budget};
  memory_ = std::make_unique<Memory>(*instance_, physical_, *functions_, device_, limits);
  clock_ = std::make_unique<Clock>(*instance_, physical_, *functions_, device_,
                                   Clock::Kind{.period_ns = static_cast<double>(properties_.limits.timestampPeriod),
                                               .bits = queues[0].timestamp_bits,
                                               .is_readable = features_.reads_clocks});
  SHUNT_TRY_ASSIGN(compute_, Queue::create(*functions_, device_, queues[0], features_.timeline));
  // Only a semaphore can order one queue after another.
  if (queues.size() == 1 || !features_.timeline) return {};
  SHUNT_TRY_ASSIGN(transfer_, Queue::create(*functions_, device_, queues[1], true));
  return {};
}

Result<std::vector<QueuePlace>> Context::choose_queues() const {
  const InstanceFunctions& api = instance_->functions();
  std::uint32_t count = 0;
  api.GetPhysicalDeviceQueueFamilyProperties(physical_, &count, nullptr);
  std::vector<VkQueueFamilyProperties> families(count);
  api.GetPhysicalDeviceQueueFamilyProperties(physical_, &count, families.data());
  const auto place = [&](auto family, std::uint32_t index) {
    return QueuePlace{static_cast<std::uint32_t>(family - families.begin()), index, family->timestampValidBits};
  };
  const auto computes = std::ranges::find_if(
      families, [](const VkQueueFamilyProperties& each) { return (each.queueFlags & VK_QUEUE_COMPUTE_BIT) != 0; });
  if (computes == families.end())
    return fail(Code::unsupported, fmt::format("{} has no queue that computes", properties_.deviceName));
  std::vector<QueuePlace> queues = {place(computes, 0)};
  const auto only_copies = std::ranges::find_if(families, [](const VkQueueFamilyProperties& each) {
    constexpr VkQueueFlags kSparse = VK_QUEUE_SPARSE_BINDING_BIT | VK_QUEUE_PROTECTED_BIT;
    return (each.queueFlags & ~kSparse) == VK_QUEUE_TRANSFER_BIT;
  });
  if (only_copies != families.end())
    queues.push_back(place(only_copies, 0));
  else if (computes->queueCount > 1)
    queues.push_back(place(computes, 1));
  return queues;
}

Status Context::make_device(const FeatureChain& chain, std::span<const QueuePlace> queues) {
  const float priorities[] = {1, 1};
  std::vector<VkDeviceQueueCreateInfo> infos;
  for (const QueuePlace& queue : queues) {
    if (queue.index != 0) {
      infos.back().queueCount = queue.index + 1;
      continue;
    }
    VkDeviceQueueCreateInfo& info = infos.emplace_back();
    info.sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO;
    info.queueFamilyIndex = queue.family;
    info.queueCount = 1;
    info.pQueuePriorities = priorities;
  }
  VkDeviceCreateInfo info{};
  info.sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO;
  info.pNext = chain.enabled();
  info.queueCreateInfoCount = static_cast<std::uint32_t>(infos.size());
  info.pQueueCreateInfos = infos.data();
  info.enabledExtensionCount = static_cast<std::uint32_t>(chain.extensions().size());
  info.ppEnabledExtensionNames = chain.extensions().data();
  SHUNT_TRY(check(instance_->functions().CreateDevice(physical_, &info, nullptr, &device_),
                  fmt::format("{}: vkCreateDevice", properties_.deviceName)));
  *functions_ = instance_->device_functions(device_);
  return {};
}

Context::~Context() {
  if (device_ == VK_NULL_HANDLE) return;
  static_cast<void>(functions_->DeviceWaitIdle(device_));
  for (const Release& each : to_free_) each.free();
  transfer_.reset();
  compute_.reset();
  memory_.reset();
  functions_->DestroyDevice(device_, nullptr);
}

void Context::close(Context* context) {
  std::unique_ptr<Context> closed(context);
  if (closed->ends_by(std::chrono::steady_clock::now() + kClosingPatience)) return;
  // Registered after the drivers were loaded, so it runs before their exit handlers, which take away what their own
  // threads use.
  static const int is_registered = std::atexit(close_abandoned);
  static_cast<void>(is_registered);
  const std::scoped_lock lock(abandoned().mutex);
  abandoned().contexts.push_back(std::move(closed));
}

void Context::close_abandoned() {
  const std::scoped_lock lock(abandoned().mutex);
  const auto end = std::chrono::steady_clock::now() + kClosingPatience;
  std::erase_if(abandoned().contexts, [end](const std::unique_ptr<Context>& each) { return each->ends_by(end); });
}

void Context::describe(DeviceInfo& info) {
  features_.describe(info);
  info.features.insert(DeviceFeature::timestamps, compute().place().timestamp_bits != 0);
  info.features.insert(DeviceFeature::async_transfers, has_transfer_queue());
  info.features.insert(DeviceFeature::unified_memory, shares_host_memory());
  if (imports_host_memory()) info.details.emplace_back("imports host memory");
}

Moment Context::submitted() { return {compute().submitted(), transfer_ == nullptr ? 0 : transfer_->submitted()}; }

Result<bool> Context::has_reached(const Moment& moment) {
  SHUNT_TRY_ASSIGN(const bool computed, compute_->has_reached(moment.compute));
  if (!computed || transfer_ == nullptr) return computed;
  return transfer_->has_reached(moment.transfer);
}

void Context::release(std::function<void()> free) {
  to_free_.push_back({compute_ == nullptr ? Moment{} : submitted(), std::move(free)});
  collect();
}

bool Context::ends_by(std::chrono::steady_clock::time_point end) {
  if (compute_ == nullptr) return true;
  while (true) {
    const Result<bool> is_over = has_reached(submitted());
    if (!is_over || *is_over) return true;
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void Context::collect() {
  while (!to_free_.empty()) {
    if (compute_ != nullptr && !has_reached(to_free_.front().after).value_or(false)) return;
    const std::function<void()> free = std::move(to_free_.front().free);
    to_free_.pop_front();
    free();
  }
}

void full_barrier(const DeviceFunctions& call, VkCommandBuffer commands) {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_MEMORY_READ_BIT | VK_ACCESS_MEMORY_WRITE_BIT;
  call.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, 0, 1,
                          &memory, 0, nullptr, 0, nullptr);
}

void host_barrier(const DeviceFunctions& call, VkCommandBuffer commands) {
  VkMemoryBarrier memory{};
  memory.sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER;
  memory.srcAccessMask = VK_ACCESS_MEMORY_WRITE_BIT;
  memory.dstAccessMask = VK_ACCESS_HOST_READ_BIT;
  call.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT, VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &memory, 0,
                          nullptr, 0, nullptr);
}

}  // namespace shunt::vulkan
