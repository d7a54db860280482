// Knows no times: WebAssembly does not see the machine's processors.
#include "base/system/processor_times.h"

namespace shunt {

std::optional<ProcessorTimes> processor_times(const std::filesystem::path&) { return std::nullopt; }

}  // namespace shunt
