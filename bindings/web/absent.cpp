// What no browser offers: device APIs, and files that stay, without which devices are not measured.
#include <initializer_list>

#include "devices/registry.h"
#include "plan/profile.h"
#include "run/brief_calibration.h"

namespace shunt {
namespace {

BackendReport absent(const char* api) {
  return {.api = api, .devices = {}, .stage = StartStage::not_built, .absent_because = "browsers do not offer it"};
}

}  // namespace

Result<BackendReport> open_cuda(const OpenOptions&) { return absent("cuda"); }
Result<BackendReport> open_hip(const OpenOptions&) { return absent("hip"); }
Result<BackendReport> open_vulkan(const OpenOptions&) { return absent("vulkan"); }
Result<BackendReport> open_metal(const OpenOptions&) { return absent("metal"); }
Result<BackendReport> open_gl(const OpenOptions&) { return absent("gl"); }
Result<BackendReport> open_gles(const OpenOptions&) { return absent("gles"); }
Result<BackendReport> open_sim(const OpenOptions&) { return absent("sim"); }

Result<std::filesystem::path> profile_path() { return fail(Code::io, "browsers keep no files"); }
Result<Profile> load_profile(const std::filesystem::path&, std::string&) { return Profile{}; }

Forecast forecast_of(const Plan&, double) { return {}; }
bool pays_to_measure(const MeasuringOptions&) { return false; }
std::optional<std::vector<DeviceCost>> measure_briefly(const Runtime&, const DevicePool&, std::span<const Workload>,
                                                       const std::atomic<bool>*) {
  return std::nullopt;
}
void doubt_what_runs_contradict(const Runtime&, DevicePool&) {}

}  // namespace shunt
