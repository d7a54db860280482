// Reports what some APIs offer, from the cache or by starting them. Plain functions; any thread.
#pragma once

#include <span>
#include <vector>

#include "devices/discovery/registry.h"

namespace shunt {

// Returns one report per API, in their order, without the devices that the environment hides.
[[nodiscard]] std::vector<ApiReport> reports_of(std::span<const ApiRow* const> apis, const FindOptions& options);

// Returns "you may not open /dev/dri/renderD128: ..." and what helps, for the first file that exists but is closed to
// this user; empty if there is none.
[[nodiscard]] std::string access_hint(std::span<const std::string_view> files);

// Drops devices that their vendor's own variable hides (CUDA_VISIBLE_DEVICES and the like), from every API that offers
// them.
void drop_hidden(std::span<ApiReport> reports);

}  // namespace shunt
