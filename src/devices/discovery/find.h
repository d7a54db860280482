// What some APIs offer, from what is known of them or by starting them. Plain functions; any thread.
#pragma once

#include <span>
#include <vector>

#include "devices/discovery/registry.h"

namespace shunt {

// One report per API, in their order. What the environment hides is not in them.
[[nodiscard]] std::vector<ApiReport> reports_of(std::span<const ApiRow* const> apis, const FindOptions& options);

// "you may not open /dev/dri/renderD128: ..." with what helps, for the first of the files that is there but closed to
// this user; empty: none is.
[[nodiscard]] std::string access_hint(std::span<const std::string_view> files);

// Takes out the devices of a vendor that the variable of the vendor's own API (CUDA_VISIBLE_DEVICES and its kin) hides
// from that API, wherever else they are offered.
void drop_hidden(std::span<ApiReport> reports);

}  // namespace shunt
