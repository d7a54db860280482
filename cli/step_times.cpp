#include "step_times.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

#include "base/units.h"
#include "origin.h"
#include "trace/run_times.h"

namespace shunt::cli {
namespace {

using trace::Activity;
using trace::ExecutionEvent;
using trace::Recording;
using trace::RunTimes;

// The kind of a step: what it is for, and how many rows its plan has.
struct StepKind {
  bool is_generation = false;
  std::uint32_t rows = 0;
  friend bool operator==(const StepKind&, const StepKind&) = default;
};

// The activities and the texts of the rows of a table, in turn.
struct RowsInTurn {
  std::array<Activity, trace::kActivities> order;
  std::array<std::string_view, trace::kActivities> what;
};

// The rows, by what sets the pace.
constexpr RowsInTurn kBehindProcessor = {{Activity::processor, Activity::device, Activity::weights, Activity::values},
                                         {"the processor computes", "the GPU computes, the processor waits",
                                          "both wait for weights", "both wait for values"}};
constexpr RowsInTurn kBehindGpu = {
    {Activity::device, Activity::processor, Activity::weights, Activity::values},
    {"the GPU computes", "the processor computes, the GPU waits", "both wait for weights", "both wait for values"}};
constexpr RowsInTurn kBehindLink = {
    {Activity::weights, Activity::device, Activity::processor, Activity::values},
    {"weights travel", "the GPU computes, the link waits", "the processor computes, both wait", "all wait for values"}};

// Returns what went on for the longest time.
const RowsInTurn& longest_of(const RunTimes& times) {
  const auto us_of = [&](const RowsInTurn* rows) { return times.us_of(rows->order.front()); };
  return *std::ranges::max({&kBehindProcessor, &kBehindGpu, &kBehindLink}, {}, us_of);
}

void add_rows(StepTimes& times, const RunTimes& runs, const RowsInTurn& rows, const StepLimits* limits) {
  const auto us = runs.us_in_turn(rows.order);
  if (limits == nullptr) {
    times.parts.push_back({std::string(rows.what[0]), us[0]});
  } else {
    const double tokens = times.tokens;
    times.parts = times.is_generation    ? parts_of_reading(*limits, us[0], runs.weight_bytes())
                  : &rows == &kBehindGpu ? parts_of_arithmetic(*limits, tokens, us[0])
                                         : parts_of_link(*limits, us[0], runs.weight_bytes());
    times.bound_us = times.parts.front().us;
  }
  for (std::size_t row = 1; row < us.size(); ++row) times.parts.push_back({std::string(rows.what[row]), us[row]});
  times.parts.push_back({"starting work and noticing its end", runs.idle_us()});
  // Without limits a row may be of something that the machine does not have.
  if (limits == nullptr) std::erase_if(times.parts, [](const StepPart& part) { return part.us == 0; });
}

StepTimes times_of(const StepKind& kind, const RunTimes& runs, const StepLimits* limits) {
  StepTimes times{.is_generation = kind.is_generation,
                  .tokens = kind.rows,
                  .knows_tokens = kind.rows == 1,
                  .steps = runs.runs(),
                  .us = runs.us(),
                  .predicted_us = runs.predicted_us()};
  // The rows of a plan are the tokens of its steps, rounded up to a power of two.
  if (limits != nullptr && !kind.is_generation && limits->prompt_tokens <= kind.rows &&
      limits->prompt_tokens > kind.rows / 2) {
    times.tokens = limits->prompt_tokens;
    times.knows_tokens = true;
  }
  const RowsInTurn* rows = &longest_of(runs);
  if (limits != nullptr)
    rows = kind.is_generation                              ? &kBehindProcessor
           : is_bound_by_arithmetic(*limits, times.tokens) ? &kBehindGpu
                                                           : &kBehindLink;
  add_rows(times, runs, *rows, limits);
  return times;
}

// Finds the kinds of the steps of a trace, and which runs count.
class StepKinds {
 public:
  StepKinds(const Recording& recording, std::span<const PlanRegret> plans, std::uint32_t sequences) {
    for (const PlanRegret& plan : plans) {
      const std::uint32_t rows = plan.plan.rows_of("tokens");
      if (rows == 0) continue;
      const bool all_have_results = plan.plan.rows_of("output_rows") == rows;
      const StepKind kind{.is_generation = rows == 1 || (sequences > 1 && all_have_results), .rows = rows};
      auto found = std::ranges::find(kinds_, kind);
      if (found == kinds_.end()) found = kinds_.insert(kinds_.end(), kind);
      of_plan_[plan.number] = static_cast<std::size_t>(found - kinds_.begin());
    }
    for (const ExecutionEvent& event : recording.events)
      if (const auto place = of_plan_.find(event.plan);
          event.kind == trace::Kind::run && event.predicted_us > 0 && place != of_plan_.end())
        predicted_.insert(place->second);
  }
  [[nodiscard]] const std::vector<StepKind>& all() const { return kinds_; }
  // Runs that were slowed down have no prediction, and count only if there are no others.
  [[nodiscard]] std::optional<std::size_t> of(const ExecutionEvent& run) const {
    const auto place = of_plan_.find(run.plan);
    if (place == of_plan_.end() || (run.predicted_us <= 0 && predicted_.contains(place->second))) return std::nullopt;
    return place->second;
  }

 private:
  std::vector<StepKind> kinds_;
  std::map<std::uint32_t, std::size_t> of_plan_;  // by its number
  std::set<std::size_t> predicted_;               // kinds of which some runs have a prediction
};

std::string title_of(const StepTimes& times) {
  if (times.is_generation && times.tokens == 1) return "generation, a token";
  return fmt::format("{}, {} tokens", times.is_generation ? "generation" : "prompt", times.tokens);
}

// "mean of 15 steps, 73.0 tokens/s, 66 % of the bound, predicted 12.300 ms"
std::string sentence_of(const StepTimes& times) {
  std::vector<std::string> words = {fmt::format("mean of {}", in_words(times.steps, "step"))};
  if (times.tokens_per_s() > 0) words.push_back(fmt::format("{:.1f} tokens/s", times.tokens_per_s()));
  if (times.bound_us.value_or(0) > 0 && times.us > 0)
    words.push_back(fmt::format("{} of the bound", in_percent(*times.bound_us / times.us)));
  words.push_back(times.predicted_us > 0 ? fmt::format("predicted {:.3f} ms", times.predicted_us / 1e3)
                                         : "each op was timed alone, which takes longer");
  return fmt::format("{}", fmt::join(words, ", "));
}

}  // namespace

double StepTimes::tokens_per_s() const { return knows_tokens && us > 0 ? tokens * 1e6 / us : 0; }

std::vector<StepTimes> step_times_of(const Recording& recording, std::span<const PlanRegret> plans) {
  std::vector<StepTimes> all;
  const Result<Origin> origin = origin_in(recording);
  if (!origin) return all;
  std::set<std::string, std::less<>> processors;
  for (const Origin::DeviceName& device : origin->devices)
    if (device.is_host_cpu) processors.insert(device.id);
  const StepKinds kinds(recording, plans, origin->sequences);
  const auto runs = trace::run_times_of(recording, processors, kinds.all().size(),
                                        [&](const ExecutionEvent& run) { return kinds.of(run); });
  const auto limits = limits_in(recording);
  for (std::size_t kind = 0; kind < runs.size(); ++kind)
    if (runs[kind].runs() > 0) all.push_back(times_of(kinds.all()[kind], runs[kind], limits ? &*limits : nullptr));
  std::ranges::sort(all, std::ranges::greater(),
                    [](const StepTimes& times) { return std::tuple(times.is_generation, times.tokens); });
  return all;
}

Json to_json(const StepTimes& times) {
  Json json = {{"title", title_of(times)}, {"tokens", times.tokens}, {"steps", times.steps},
               {"us", times.us},           {"parts", Json::array()}, {"sentence", sentence_of(times)}};
  for (const StepPart& part : times.parts) json["parts"].push_back({{"what", part.what}, {"us", part.us}});
  if (times.predicted_us > 0) json["predicted_us"] = times.predicted_us;
  if (times.bound_us) json["bound_us"] = *times.bound_us;
  if (times.tokens_per_s() > 0) json["tokens_per_s"] = times.tokens_per_s();
  return json;
}

std::string to_text(const StepTimes& times) {
  const auto row = [&](std::string_view what, double us) {
    return fmt::format("{:<46} {:>9.3f}  {:>6}\n", what, us / 1e3, times.us > 0 ? in_percent(us / times.us) : "");
  };
  std::string text = fmt::format("{:<46} {:>9}  {:>6}\n", title_of(times), "ms", "share");
  for (const StepPart& part : times.parts) text += row(part.what, part.us);
  return text + row("all", times.us) + sentence_of(times) + "\n";
}

}  // namespace shunt::cli
