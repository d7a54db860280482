#include "devices/vulkan/clock.h"

#include <algorithm>
#include <array>
#include <vector>

#include "trace/recorder.h"

namespace shunt::vulkan {
namespace {

// Clocks drift apart by a few millionths.
constexpr std::uint64_t kFreshNs = 100'000'000;

// The host clock that trace::now_ns() reads.
constexpr VkTimeDomainEXT kHostClock = VK_TIME_DOMAIN_CLOCK_MONOTONIC_EXT;

bool reads_both_clocks(const Instance& instance, VkPhysicalDevice physical) {
  const auto ask = instance.function<PFN_vkGetPhysicalDeviceCalibrateableTimeDomainsEXT>(
      "vkGetPhysicalDeviceCalibrateableTimeDomainsEXT");
  std::uint32_t count = 0;
  if (ask == nullptr || ask(physical, &count, nullptr) != VK_SUCCESS) return false;
  std::vector<VkTimeDomainEXT> domains(count);
  if (ask(physical, &count, domains.data()) != VK_SUCCESS) return false;
  const auto has = [&](VkTimeDomainEXT domain) { return std::ranges::find(domains, domain) != domains.end(); };
  return has(VK_TIME_DOMAIN_DEVICE_EXT) && has(kHostClock);
}

}  // namespace

Clock::Clock(const Instance& instance, VkPhysicalDevice physical, const DeviceFunctions& call, VkDevice device,
             const Kind& kind)
    : call_(call),
      device_(device),
      period_ns_(kind.period_ns),
      mask_(kind.bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << kind.bits) - 1),
      is_known_(kind.bits != 0 && kind.is_readable && call.GetCalibratedTimestampsEXT != nullptr &&
                reads_both_clocks(instance, physical)) {}

std::uint64_t Clock::between_ns(std::uint64_t first, std::uint64_t last) const {
  return static_cast<std::uint64_t>(static_cast<double>((last - first) & mask_) * period_ns_);
}

std::optional<std::uint64_t> Clock::host_ns(std::uint64_t timestamp) {
  if (!is_known_ || (trace::now_ns() - host_ns_ > kFreshNs && !read())) return std::nullopt;
  // A difference of more than half the clock's range means that the timestamp is earlier.
  const bool is_before = ((timestamp - device_time_) & mask_) > mask_ / 2;
  return is_before ? host_ns_ - between_ns(timestamp, device_time_) : host_ns_ + between_ns(device_time_, timestamp);
}

bool Clock::read() {
  std::array<VkCalibratedTimestampInfoEXT, 2> infos{};
  for (VkCalibratedTimestampInfoEXT& info : infos) info.sType = VK_STRUCTURE_TYPE_CALIBRATED_TIMESTAMP_INFO_EXT;
  infos[0].timeDomain = VK_TIME_DOMAIN_DEVICE_EXT;
  infos[1].timeDomain = kHostClock;
  std::array<std::uint64_t, 2> times{};
  std::uint64_t deviation_ns = 0;
  if (call_.GetCalibratedTimestampsEXT(device_, infos.size(), infos.data(), times.data(), &deviation_ns) != VK_SUCCESS)
    return false;
  device_time_ = times[0] & mask_;
  host_ns_ = times[1];
  return true;
}

}  // namespace shunt::vulkan
