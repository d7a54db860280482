// Compares what a device ran with its record in docs/support.json, from which docs/support.md is generated.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string>

#include "run/verify/support_record.h"

namespace shunt::test {

// Returns the record {"label", "emulated", "ops"} with the longest label that `label` starts with; null if there is
// none.
inline Json kept_record(const std::string& label) {
  std::ifstream stream(std::filesystem::path(SHUNT_TEST_DATA).parent_path().parent_path() / "docs" / "support.json");
  const Json all = Json::parse(stream, nullptr, false);
  Json best;
  std::size_t number = 0;
  for (std::size_t i = 0; i < all["devices"].size(); ++i) {
    const auto name = all["devices"][i]["label"].get<std::string>();
    if (!label.starts_with(name) || (!best.is_null() && name.size() < best["label"].get<std::string>().size()))
      continue;
    best = all["devices"][i];
    number = i;
  }
  if (best.is_null()) return best;
  best["ops"] = Json::object();
  for (const auto& [op, groups] : all["ops"].items())
    for (const Json& group : groups)  // [[devices], counts]
      if (std::ranges::any_of(group[0], [&](const Json& device) { return device == number; }))
        best["ops"][op] = group[1];
  return best;
}

// Returns whether cases of a fused row were declined because the device runs its parts instead.
inline bool is_left_to_its_parts(const ConformanceTally& tally) {
  return tally.reason.contains("do that one after the other");
}

// Compares only the ops of the report. `has_record`: whether a missing record is a failure or just printed.
inline void expect_as_recorded(const ConformanceReport& report, const Device& device, bool has_record) {
  const SupportRecord now = support_record(report, device);
  const Json kept = kept_record(now.label);
  const std::string again = "tools/support.py --record SHUNT --devices " + now.device;
  if (kept.is_null()) {
    const std::string words = "docs/support.json has no record of \"" + now.label + "\"; " + again + " makes one";
    if (has_record) ADD_FAILURE() << words;
    std::cout << words << '\n';
    return;
  }
  EXPECT_EQ(kept["emulated"], now.emulated) << now.label;
  const Json ops = to_json(now)["ops"];
  for (const auto& [op, cases] : ops.items())
    EXPECT_EQ(kept["ops"].value(op, Json()).dump(), cases.dump())
        << now.label << " runs " << op << " otherwise than docs/support.json says of "
        << kept["label"].get<std::string>() << "; if it is right now: " << again;
}

}  // namespace shunt::test
