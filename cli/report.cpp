// shunt report: summarizes a trace as a page, as text or as JSON.
#include <fmt/format.h>

#include <filesystem>

#include "base/parse_json.h"
#include "base/system/text_file.h"
#include "command.h"
#include "files.h"
#include "options.h"
#include "origin.h"
#include "output.h"
#include "plan/regret.h"
#include "report_page.h"
#include "report_verdict.h"
#include "shunt/trace.h"
#include "step_limits.h"
#include "step_times.h"
#include "trace/chrome.h"

namespace shunt::cli {
namespace {

struct ReportOptions {
  std::string trace;
  std::string page;
  bool explain = false;
  bool lines = false;
  bool json = false;
};

Json facts_of(const ReportOptions& options, const trace::Recording& recording, const trace::ExecutionSummary& summary,
              const Verdict& verdict, const std::vector<StepTimes>& steps, const std::vector<PlanRegret>& plans) {
  const auto parse = [](const std::string& text) { return parse_json(text); };
  Json facts = {{"trace", options.trace},
                {"verdict", to_json(verdict)},
                {"origin", nullptr},
                {"speeds", nullptr},
                {"limits", nullptr},
                {"steps", Json::array()},
                {"summary", parse(to_json(summary))},
                {"plans", Json::array()}};
  if (const auto origin = origin_in(recording)) facts["origin"] = to_json(*origin);
  if (const auto speeds = speeds_in(recording)) facts["speeds"] = to_json(*speeds);
  if (const auto limits = limits_in(recording)) {
    facts["limits"] = to_json(*limits);
    facts["limits"]["sentence"] = to_text(*limits);
  }
  for (const StepTimes& times : steps) facts["steps"].push_back(to_json(times));
  for (const PlanRegret& plan : plans) facts["plans"].push_back(parse(to_json(plan)));
  return facts;
}

// The steps' times, and what limits them.
std::string to_text(const std::vector<StepTimes>& steps, const std::optional<StepLimits>& limits) {
  std::string text = limits ? to_text(*limits) + "\n" : "";
  for (const StepTimes& times : steps) text += to_text(times) + "\n";
  return text;
}

std::string explain(const std::vector<PlanRegret>& plans) {
  std::string text;
  for (const PlanRegret& plan : plans) text += to_text(plan);
  return text;
}

bool is_text(const ReportOptions& options) { return !options.lines && !options.explain && !options.json; }

// The path of the page; empty if none is written.
std::string path_of_page(const ReportOptions& options) {
  if (!options.page.empty() || !is_text(options)) return options.page;
  return std::filesystem::path(options.trace).replace_extension(".html").string();
}

Status write_page(const std::string& path, Json facts, const trace::Recording& recording) {
  SHUNT_TRY(write_text_file(path, report_page(std::move(facts), recording)));
  note(fmt::format("Wrote {}; open it in a browser.", path));
  if (!has_charts()) note("The page has tables but no charts: install npm, then build shunt again (./dev build).");
  return {};
}

Status execute(const ReportOptions& options) {
  const std::string page = path_of_page(options);
  SHUNT_TRY_ASSIGN(const trace::Recording recording, trace::read_chrome_trace(options.trace));
  const auto origin = origin_in(recording);
  SHUNT_TRY_ASSIGN(const std::vector<PlanRegret> plans, regrets_of(recording, origin ? origin->named : ""));
  const trace::ExecutionSummary summary = summarize(recording);
  const Verdict verdict = verdict_of(recording, summary, plans);
  const std::vector<StepTimes> steps = step_times_of(recording, plans);
  Json facts = facts_of(options, recording, summary, verdict, steps, plans);
  if (options.lines) SHUNT_TRY(print(to_json_lines(recording)));
  if (options.explain) SHUNT_TRY(print(explain(plans)));
  if (options.json) SHUNT_TRY(print_json(facts));
  if (is_text(options)) SHUNT_TRY(print(to_text(verdict) + to_text(steps, limits_in(recording)) + to_text(summary)));
  return page.empty() ? Status() : write_page(page, std::move(facts), recording);
}

}  // namespace

Action report(CommandLine& line) {
  auto options = std::make_shared<ReportOptions>();
  line.input("TRACE", options->trace, "File written by --trace of run, run-graph, eval, bench model or bench hybrid")
      .required();
  line.option("-o,--output", options->page,
              "File of the page [beside the trace, as .html; no page with any other option]")
      .value_name("FILE");
  line.files.add_output("--output", [options] { return std::vector{path_of_page(*options)}; });
  const Option explain =
      line.flag("--explain", options->explain, "Print each op with its candidates, its times, and the regret");
  const Option lines = line.flag("--lines", options->lines, "Print each event as a line of JSON");
  const Option json = add_json(line, options->json);
  explain.excludes(lines).excludes(json);
  lines.excludes(json);
  return [options] { return execute(*options); };
}

}  // namespace shunt::cli
