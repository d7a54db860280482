#include "run/verify/support_record.h"

#include <fmt/format.h>

#include <algorithm>

#include "ops/arithmetic.h"

namespace shunt {
namespace {

// Returns whether only processors with some instruction set have these cases, which one record of all does not count.
bool depends_on_instructions(const ConformanceTally& tally, const DeviceInfo& device) {
  return device.is_host_cpu() && arithmetic_of(tally.dtypes) != Arithmetic::f32;
}

std::string label_of(const DeviceInfo& device) {
  if (device.is_host_cpu()) return device.id;
  return fmt::format("{} {}", device.id.substr(0, device.id.find(':')), device.name);
}

}  // namespace

void CaseCounts::add(const ConformanceTally& tally) {
  passed += tally.passed;
  declined += tally.declined;
  failed += tally.failed;
  largest_error = std::max(largest_error, tally.largest_error);
}

SupportRecord support_record(const ConformanceReport& report, const Device& device) {
  const DeviceInfo& info = device.info();
  SupportRecord record{.device = info.id, .label = label_of(info), .emulated = info.emulated};
  for (const ConformanceTally& tally : report.tallies) {
    if (tally.device != info.id || tally.sizes != Sizes::awkward) continue;
    if (tally.failed == 0 && depends_on_instructions(tally, info)) continue;
    OpRecord& op = record.ops[tally.op];
    op.all.add(tally);
    for (const DType dtype : tally.different_dtypes) op.of_dtype[dtype].add(tally);
  }
  return record;
}

Json to_json(const SupportRecord& record) {
  const auto numbers = [](const CaseCounts& cases) { return Json{cases.passed, cases.declined, cases.failed}; };
  Json ops = Json::object();
  for (const auto& [op, counts] : record.ops) {
    Json& written = ops[std::string(name_of(op))];
    written["cases"] = numbers(counts.all);
    for (const auto& [dtype, cases] : counts.of_dtype) written[std::string(name_of(dtype))] = numbers(cases);
  }
  return {{"device", record.device}, {"label", record.label}, {"emulated", record.emulated}, {"ops", std::move(ops)}};
}

}  // namespace shunt
