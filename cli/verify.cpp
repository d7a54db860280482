// shunt verify: checks that the devices of this machine compute correct results.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <limits>
#include <map>
#include <ranges>
#include <set>

#include "answers.h"
#include "command.h"
#include "interrupt.h"
#include "ops/sample.h"
#include "options.h"
#include "output.h"
#include "run/opened_devices.h"
#include "run/verify/support_record.h"

namespace shunt::cli {
namespace {

struct VerifyOptions {
  std::vector<std::string> ops;
  bool full = false;
  bool quick = false;
  std::uint64_t seed = 1;
  std::string only;
  RuntimeOptions runtime;
  bool json = false;
};

SampleCase parse_case(std::string_view text) {
  SampleCase which;
  const std::string_view choices = text.substr(text.find(':') + 1);  // all of it if there is no colon
  if (choices.size() != text.size()) {
    const auto sizes = std::ranges::find(sample_sizes(), text.substr(0, text.find(':')), &SizesInfo::name);
    if (sizes == sample_sizes().end())
      refuse(fmt::format("--case: {} names no sizes; choose from {}", in_quotes(text),
                         fmt::join(sample_sizes() | std::views::transform(&SizesInfo::name), ", ")));
    which.sizes = static_cast<Sizes>(sizes - sample_sizes().begin());
  }
  const char* at = choices.data();
  const char* const end = at + choices.size();
  while (true) {
    const auto [next, error] = std::from_chars(at, end, which.choices.emplace_back());
    if (error != std::errc() || (next != end && *next != '.'))
      refuse(
          fmt::format("--case: {} is not a case as a failure prints it, such as 3.0.1 or wide:0.0.0", in_quotes(text)));
    if (next == end) return which;
    at = next + 1;
  }
}

// Refuses a case unless each of its numbers is an option of the op's sample rule.
void check_case(Op op, const SampleCase& which) {
  const std::vector<std::uint32_t> options = make_sample(op, {}, 0).options;
  if (std::ranges::equal(which.choices, options, std::less())) return;
  std::vector<std::string> ranges;
  for (const std::uint32_t count : options) ranges.push_back(fmt::format("0-{}", count - 1));
  refuse(fmt::format("--case: {} is not a case of {}, which takes {} numbers: {}", to_string(which), name_of(op),
                     options.size(), fmt::join(ranges, ", ")));
}

ConformanceOptions to_conformance(const VerifyOptions& options) {
  ConformanceOptions chosen{.ops = chosen_ops(options.ops), .full = options.full, .seed = options.seed};
  if (options.quick) chosen.sizes = {Sizes::awkward};
  if (options.only.empty()) return chosen;
  if (options.ops.size() != 1) refuse("--case: name exactly one op, whose case it is");
  chosen.only = parse_case(options.only);
  check_case(chosen.ops.front(), *chosen.only);
  return chosen;
}

std::string text_of(const CaseCounts& cases) {
  std::vector<std::string> parts;
  if (cases.failed > 0) parts.push_back(fmt::format("{} FAILED", cases.failed));
  if (cases.passed > 0) parts.push_back(fmt::format("{} correct", cases.passed));
  if (cases.declined > 0) parts.push_back(fmt::format("{} declined", cases.declined));
  if (cases.passed > 0) parts.push_back(fmt::format("error {:.1g}", cases.largest_error));
  return fmt::format("{}", fmt::join(parts, ", "));
}

// "F32, F16, all block types"
std::string text_of(const std::set<DType>& chosen) {
  const auto is_block = [](DType dtype) { return info_of(dtype).kind == DTypeKind::quantized; };
  const auto blocks = std::ranges::count(dtypes(), DTypeKind::quantized, &DTypeInfo::kind);
  const bool has_all_blocks = std::ranges::count_if(chosen, is_block) == blocks;
  std::vector<std::string_view> names;
  for (const DType dtype : chosen)
    if (!has_all_blocks || !is_block(dtype)) names.push_back(name_of(dtype));
  if (has_all_blocks) names.emplace_back("all block types");
  return fmt::format("{}", fmt::join(names, ", "));
}

// The outcome by dtype: "F32, F16; in part Q4_0; declined Q4_K".
std::string dtypes_of(const OpRecord& op) {
  std::set<DType> right;
  std::set<DType> in_part;
  std::set<DType> declined;
  std::set<DType> failed;
  for (const auto& [dtype, cases] : op.of_dtype)
    (cases.failed > 0 ? failed : cases.passed == 0 ? declined : cases.declined > 0 ? in_part : right).insert(dtype);
  std::vector<std::string> parts;
  if (!failed.empty()) parts.push_back("FAILED " + text_of(failed));
  if (!right.empty()) parts.push_back(text_of(right));
  if (!in_part.empty()) parts.push_back("in part " + text_of(in_part));
  if (!declined.empty()) parts.push_back("declined " + text_of(declined));
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::string to_text(const SupportRecord& record, const ConformanceReport& report) {
  Rows rows = {{"op", "cases", "dtypes"}};
  for (const auto& [op, counts] : record.ops)
    rows.push_back({std::string(name_of(op)), text_of(counts.all), dtypes_of(counts)});
  std::string text = in_columns(rows);
  std::map<std::string, std::uint64_t> declined;
  for (const ConformanceTally& tally : report.tallies)
    if (tally.declined > 0 && tally.device == record.device) declined[tally.reason] += tally.declined;
  for (const auto& [reason, count] : declined)
    text += fmt::format("\n{} declined {}, such as: {}\n", record.device, count, reason);
  return text;
}

std::string to_text(const ConformanceReport& report, const VerifyOptions& options, std::span<Device* const> devices) {
  std::string text;
  for (const Device* device : devices) {
    const SupportRecord record = support_record(report, *device);
    text += fmt::format("{}{}, {}\n{}", text.empty() ? "" : "\n", record.device, device->info().name,
                        to_text(record, report));
  }
  for (const KnownFailure& row : report.known)
    text += fmt::format("\nknown to fail: {} on {}: {}\n", name_of(row.op), row.device, row.reason);
  for (const KnownFailure& row : report.unexpected_passes)
    text += fmt::format("\n{} on {} {} is a known failure, but passed; remove its row from known_failures.def\n",
                        name_of(row.op), row.device, row.dtype);
  for (const ConformanceFailure& failure : report.failures)
    text += fmt::format("\n{} FAILED {}\n  {}\n  run it again: {}\n", failure.device, failure.call, failure.words,
                        again(failure, options.seed));
  return text;
}

Status verdict(const ConformanceReport& report, const VerifyOptions& options) {
  CaseCounts all;
  for (const ConformanceTally& tally : report.tallies) all.add(tally);
  if (!report.ok())
    return fail(Code::internal,
                fmt::format("{} of {} cases failed and {} known failures passed (seed {})", report.failures.size(),
                            all.passed + all.failed, report.unexpected_passes.size(), options.seed));
  note(fmt::format("{} cases correct, {} declined, seed {}", all.passed, all.declined, options.seed));
  return {};
}

Status execute(const VerifyOptions& options) {
  ConformanceOptions conformance = to_conformance(options);
  SHUNT_TRY_ASSIGN(const auto runtime, open_runtime(options.runtime));
  const std::atomic<bool>& interrupted = catch_interrupts();
  ProgressLine progress;
  conformance.progress = [&](Op op, std::uint64_t number, std::uint64_t count) {
    if (number % 64 == 0) progress.show(fmt::format("{}: case {} of {}", name_of(op), number + 1, count));
    return !interrupted;
  };
  SHUNT_TRY_ASSIGN(const ConformanceReport report, check_conformance(opened(*runtime).handles(), conformance));
  progress.clear();
  SHUNT_TRY(options.json ? print_json(cli::to_json(report, conformance, opened(*runtime).handles()))
                         : print(to_text(report, options, opened(*runtime).handles())));
  return verdict(report, options);
}

}  // namespace

Action verify(CommandLine& line) {
  auto options = std::make_shared<VerifyOptions>();
  add_ops(line, options->ops, "Ops to check");
  const Option full = line.flag(
      "--full", options->full,
      "Check every combination of dtypes, shapes and views and all large sizes of each op, instead of every pair");
  line.flag("--quick", options->quick, "Check small operands only").excludes(full);
  add_number(line, "--seed", options->seed, "Seed of the random inputs [1]", std::uint64_t{0},
             std::numeric_limits<std::uint64_t>::max());
  line.option("--case", options->only, "Check only this case of the op, as a failure prints it").value_name("CASE");
  add_runtime(line, options->runtime);
  add_json(line, options->json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
