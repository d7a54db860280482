#include "plan/costs/profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <span>

#include "base/field_json.h"
#include "base/parse_json.h"
#include "devices/discovery/registry.h"
#include "ops/kernel_hash.h"

namespace shunt {
namespace {

constexpr std::string_view kFormat = "shunt calibration 2";
// In this one, ops were measured with exact numerics, and whole steps with automatic ones.
constexpr std::string_view kFirstFormat = "shunt calibration 1";

std::map<std::string, std::string, std::less<>> kernels_of(std::string_view device) {
  const auto api = std::ranges::find(api_rows(), api_of(device), &ApiRow::name);
  return kernel_hashes(api == api_rows().end() ? std::string_view() : api->kernels);
}

// Drops measurements of kernels that have changed. Whole steps were run with all kernels.
void keep_measured_kernels(DeviceProfile& device) {
  const auto now = kernels_of(device.id);
  const auto is_other = [&](const auto& entry) {
    const std::string_view family = family_of(entry.first);
    const auto before = device.kernels.find(family);
    const auto after = now.find(family);
    return before == device.kernels.end() || after == now.end() || before->second != after->second;
  };
  std::erase_if(device.refused, is_other);
  std::erase_if(device.choices, is_other);
  if (std::erase_if(device.ops, is_other) != 0) device.few_tokens_ratio = device.many_tokens_ratio = 1;
  device.kernels = now;
}

// Steps that other kernels computed than its ops say nothing about them. Processors had the same ones for all
// numerics.
void doubt_steps(DeviceProfile& device) {
  if (device.threads != 0) return;
  device.few_tokens_ratio = device.many_tokens_ratio = 1;
  device.checked_s = 0;
}

bool is_time(double us) { return std::isfinite(us) && us >= 0; }

// A number that no measurement gives would spoil every plan.
bool is_sound(const DeviceProfile& device) {
  const auto is_link = [](const LinkRates& link) {
    return is_time(link.us) && is_time(link.bytes_per_s) && is_time(link.spread);
  };
  const auto is_work = [](const Cost& cost) {
    return is_time(cost.flops) && is_time(cost.bytes_read) && is_time(cost.bytes_written);
  };
  const auto is_point = [&](const MeasuredOp& point) {
    return is_time(point.us) && point.us > 0 && is_time(point.spread) && is_work(point.cost);
  };
  const auto is_choice = [&](const KernelChoice& choice) { return is_work(choice.cost); };
  const auto is_ratio = [](double ratio) { return std::isfinite(ratio) && ratio > 0; };
  return is_ratio(device.few_tokens_ratio) && is_ratio(device.reads_beside_weights) &&
         is_ratio(device.weights_beside_reads) && is_ratio(device.many_tokens_ratio) && is_time(device.launch_us) &&
         is_time(device.wake_us) && is_time(device.op_us) && is_time(device.checked_s) && is_link(device.to_device) &&
         is_link(device.from_device) && is_link(device.from_peers) && is_link(device.weights) &&
         is_link(device.both_ways) &&
         std::ranges::all_of(device.ops,
                             [&](const auto& kind) { return std::ranges::all_of(kind.second, is_point); }) &&
         std::ranges::all_of(device.choices,
                             [&](const auto& kind) { return std::ranges::all_of(kind.second, is_choice); });
}

}  // namespace

// THE list of what is stored for each struct.
void visit_fields(field_json::FieldsOf<Cost> auto& cost, const auto& visit) {
  visit("flops", cost.flops);
  visit("bytes_read", cost.bytes_read);
  visit("bytes_written", cost.bytes_written);
}

void visit_fields(field_json::FieldsOf<MeasuredOp> auto& point, const auto& visit) {
  visit_fields(point.cost, visit);
  visit("us", point.us);
  visit("spread", point.spread);
}

void visit_fields(field_json::FieldsOf<KernelChoice> auto& choice, const auto& visit) {
  visit_fields(choice.cost, visit);
  visit("kernel", choice.kernel);
}

void visit_fields(field_json::FieldsOf<LinkRates> auto& link, const auto& visit) {
  visit("us", link.us);
  visit("bytes_per_s", link.bytes_per_s);
  visit("spread", link.spread);
}

void visit_fields(field_json::FieldsOf<DeviceProfile> auto& device, const auto& visit) {
  visit("id", device.id);
  visit("name", device.name);
  visit("driver", device.driver);
  visit("threads", device.threads);
  visit("kernels", device.kernels);
  visit("is_brief", device.is_brief);
  visit("checked_s", device.checked_s);
  visit("launch_us", device.launch_us);
  visit("wake_us", device.wake_us);
  visit("op_us", device.op_us);
  visit("few_tokens_ratio", device.few_tokens_ratio);
  visit("many_tokens_ratio", device.many_tokens_ratio);
  visit("to_device", device.to_device);
  visit("from_device", device.from_device);
  visit("from_peers", device.from_peers);
  visit("weights", device.weights);
  visit("reads_beside_weights", device.reads_beside_weights);
  visit("weights_beside_reads", device.weights_beside_reads);
  visit("both_ways", device.both_ways);
  visit("ops", device.ops);
  visit("choices", device.choices);
  visit("refused", device.refused);
  visit("confirmed", device.confirmed);
}

std::string_view family_of(std::string_view kind) {
  const auto op = std::ranges::find(ops(), kind.substr(0, kind.find(' ')), &OpInfo::name);
  return op == ops().end() ? std::string_view() : op->family;
}

double unix_seconds() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

DeviceProfile unmeasured(const DeviceInfo& device) {
  DeviceProfile profile{.id = device.id, .name = device.name, .driver = device.driver};
  profile.kernels = kernels_of(device.id);
  profile.threads = device.is_host_cpu() ? device.compute_units : 0;
  return profile;
}

bool is_valid_for(const DeviceProfile& profile, const DeviceInfo& device) {
  const DeviceProfile now = unmeasured(device);
  return profile.id == now.id && profile.name == now.name && profile.driver == now.driver &&
         profile.threads == now.threads;
}

const DeviceProfile* Profile::find(const DeviceInfo& device) const {
  const auto found =
      std::ranges::find_if(devices, [&](const DeviceProfile& profile) { return is_valid_for(profile, device); });
  return found == devices.end() ? nullptr : &*found;
}

void Profile::set(DeviceProfile profile) {
  std::erase_if(devices, [&](const DeviceProfile& other) { return other.id == profile.id; });
  devices.push_back(std::move(profile));
}

std::string to_json(const Profile& profile) {
  const Json json = json_object({{"format", kFormat}, {"devices", field_json::json_of(profile.devices)}});
  // Drivers may give names that are not UTF-8.
  return json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

Result<Profile> profile_from_json(std::string_view text) {
  auto json = parse_json(text);
  const auto has_format = [&](std::string_view format) { return json.contains("format") && json["format"] == format; };
  if (!json.is_object() || !(has_format(kFormat) || has_format(kFirstFormat)) || !json.contains("devices"))
    return fail(Code::invalid, fmt::format("its format is not \"{}\"", kFormat));
  // Fields missing in older files get defaults: not brief, no launch after a pause, no factors of whole steps, no
  // choices of kernels, no rate of peers, of weights or of reads beside them, nothing confirmed, and an unknown time
  // and build.
  for (Json& device : json["devices"])
    if (device.is_object()) {
      device.emplace("kernels", Json::object());
      device.emplace("is_brief", false);
      device.emplace("checked_s", 0.0);
      device.emplace("wake_us", 0.0);
      device.emplace("few_tokens_ratio", 1.0);
      device.emplace("many_tokens_ratio", 1.0);
      device.emplace("choices", Json::object());
      device.emplace("from_peers", field_json::json_of(LinkRates{}));
      device.emplace("weights", field_json::json_of(LinkRates{}));
      device.emplace("reads_beside_weights", 1.0);
      device.emplace("weights_beside_reads", 1.0);
      device.emplace("confirmed", Json::array());
    }
  Profile profile;
  if (!field_json::from_json(json["devices"], profile.devices))
    return fail(Code::invalid, "a field is missing or has the wrong type");
  for (DeviceProfile& device : profile.devices) {
    if (!is_sound(device)) return fail(Code::invalid, fmt::format("{} has invalid times", device.id));
    keep_measured_kernels(device);
    if (has_format(kFirstFormat)) doubt_steps(device);
  }
  return profile;
}

}  // namespace shunt
