// Device APIs that no browser offers.
#include "devices/backend.h"

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

}  // namespace shunt
