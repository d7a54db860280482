#include "models/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "devices/device.h"
#include "ops/checked.h"
#include "ops/units.h"
#include "run/brief_calibration.h"
#include "run/strategy.h"
#include "trace/recorder.h"

namespace shunt::models {
namespace {

constexpr std::uint32_t kLargestBatch = 512;

// How much of the memory that is free the cache may take by itself.
constexpr double kCacheShare = 0.8;

// The bytes that may be used of a device's memory; nothing where they are not known.
std::optional<std::uint64_t> memory_of(const Runtime& runtime, std::size_t device) {
  const auto available = runtime.handles()[device]->memory_available();
  const std::uint64_t budget = runtime.budgets()[device];
  if (available) return std::min(*available, budget);
  return budget == kNoBudget ? std::nullopt : std::optional(budget);
}

std::optional<std::uint64_t> memory_of_all(const Runtime& runtime) {
  std::map<std::string, std::uint64_t> memories;
  for (std::size_t device = 0; device < runtime.handles().size(); ++device) {
    const auto bytes = memory_of(runtime, device);
    if (!bytes) return std::nullopt;
    std::uint64_t& most = memories[runtime.handles()[device]->info().memory_resource];
    most = std::max(most, *bytes);
  }
  std::uint64_t all = 0;
  for (const auto& [name, bytes] : memories)
    all = checked_sum(all, bytes).value_or(std::numeric_limits<std::uint64_t>::max());
  return all;
}

// The tokens per sequence that fit beside the weights; nothing where the memory is not known.
std::optional<std::uint64_t> context_that_fits(const Model& model, const SessionOptions& options,
                                               std::optional<std::uint64_t> available) {
  if (!available) return std::nullopt;
  const std::uint64_t weights = model.weight_bytes();
  const double room = *available > weights ? static_cast<double>(*available - weights) * kCacheShare : 0;
  const double page =
      static_cast<double>(cache_page_bytes(model.config(), kPageTokens, options.cache_dtype)) * options.sequences;
  return static_cast<std::uint64_t>(room / page) * kPageTokens;
}

std::string count_of_sequences(std::uint32_t count) {
  return count == 1 ? "1 sequence" : fmt::format("{} sequences", count);
}

Status check_options(const SessionOptions& options) {
  if (options.sequences == 0 || options.sequences > 1024)
    return fail(Code::invalid, fmt::format("{} sequences; 1 to 1024 are possible", options.sequences));
  if (options.batch == 0 || options.batch > kLargestBatch)
    return fail(Code::invalid, fmt::format("a batch of {} tokens; 1 to {} are possible", options.batch, kLargestBatch));
  if (info_of(options.cache_dtype).kind != DTypeKind::floating)
    return fail(Code::invalid,
                fmt::format("a cache of {}; F32, F16 and BF16 are possible", name_of(options.cache_dtype)));
  return {};
}

std::span<const std::byte> bytes(const std::vector<std::int32_t>& numbers) { return std::as_bytes(std::span(numbers)); }

}  // namespace

Session::Session(const Model& model, const Runtime& runtime, const SessionOptions& options, std::uint32_t context)
    : model_(model),
      runtime_(runtime),
      options_(options),
      watch_(runtime.options().watch),
      context_(context),
      pages_per_sequence_(pages_of(context)),
      sequences_(options.sequences),
      fleet_(runtime),
      weights_(&model.weights()) {
  planner_ = std::make_unique<StepPlanner>(model_, fleet_.devices(), options_, context_);
}

Result<std::uint32_t> choose_context(const Model& model, const Runtime& runtime, const SessionOptions& options) {
  SHUNT_TRY(check_options(options));
  SHUNT_TRY(cache_pages(options.context, options.sequences));
  // All on the first device, if it holds what is asked for.
  auto fits = context_that_fits(model, options, memory_of(runtime, 0));
  if (fits && *fits < std::max(options.context, 1U)) fits = context_that_fits(model, options, memory_of_all(runtime));
  if (fits && *fits == 0)
    return fail(Code::out_of_memory,
                fmt::format("no room for a cache: the {} MiB of weights and a page of {} tokens in {} need "
                            "more than the {} MiB of memory that are free; use a smaller model or file type",
                            model.weight_bytes() >> 20U, kPageTokens, count_of_sequences(options.sequences),
                            memory_of_all(runtime).value_or(0) >> 20U));
  std::uint32_t context = options.context;
  if (context == 0)
    context = static_cast<std::uint32_t>(
        std::min<std::uint64_t>({model.config().context_length, kDefaultContext, fits.value_or(kDefaultContext)}));
  SHUNT_TRY_ASSIGN(const std::uint32_t pages, cache_pages(context, options.sequences));
  if (fits && context > *fits) {
    const auto bytes = checked_product(cache_page_bytes(model.config(), kPageTokens, options.cache_dtype), pages);
    return fail(Code::out_of_memory,
                fmt::format("a context of {} tokens in {} does not fit: its cache takes {}, and there is "
                            "room for {} tokens; choose a smaller context (option context, -c)",
                            context, count_of_sequences(options.sequences),
                            bytes ? fmt::format("{} MiB", *bytes >> 20U) : "more than 2^64 bytes", *fits));
  }
  constexpr std::uint32_t kMost = std::numeric_limits<std::int32_t>::max();  // positions are 32-bit integers
  if (context > kMost) return fail(Code::invalid, fmt::format("a context of {} tokens; at most {}", context, kMost));
  return context;
}

Result<std::unique_ptr<Session>> Session::create(const Model& model, const Runtime& runtime,
                                                 const SessionOptions& options) {
  SHUNT_TRY_ASSIGN(const std::uint32_t context, choose_context(model, runtime, options));
  std::unique_ptr<Session> session(new Session(model, runtime, options, context));
  SHUNT_TRY(check_strategy(options.strategy, session->fleet_));
  return session;
}

Status Session::check(std::span<const BatchToken> batch) const {
  if (batch.empty() || batch.size() > options_.batch)
    return fail(Code::invalid, fmt::format("a step of {} tokens; 1 to {} are possible", batch.size(), options_.batch));
  std::vector<std::uint64_t> length;
  for (const Sequence& sequence : sequences_) length.push_back(sequence.tokens.size());
  for (const BatchToken& entry : batch) {
    if (entry.sequence >= sequences_.size())
      return fail(Code::invalid, fmt::format("sequence {}; there are {}", entry.sequence, sequences_.size()));
    if (entry.token < 0 || static_cast<std::uint32_t>(entry.token) >= model_.config().vocabulary)
      return fail(Code::invalid,
                  fmt::format("token {} is outside the vocabulary of {}", entry.token, model_.config().vocabulary));
    if (++length[entry.sequence] > context_)
      return fail(
          Code::invalid,
          fmt::format("the context of {} tokens is full; start with a larger one (option context, -c)", context_));
  }
  return {};
}

void Session::reserve_pages(std::span<const BatchToken> batch) {
  std::vector<std::size_t> length;
  for (const Sequence& sequence : sequences_) length.push_back(sequence.tokens.size());
  for (const BatchToken& entry : batch) {
    Sequence& sequence = sequences_[entry.sequence];
    if (++length[entry.sequence] <= sequence.pages.size() * kPageTokens) continue;
    if (free_pages_.empty()) free_pages_.push_back(untouched_page_++);
    sequence.pages.push_back(free_pages_.back());
    free_pages_.pop_back();
  }
}

Session::StepInputs Session::inputs_of(std::span<const BatchToken> batch) const {
  StepInputs inputs;
  std::vector<std::int32_t> next;
  for (const Sequence& sequence : sequences_) next.push_back(static_cast<std::int32_t>(sequence.computed));
  for (const BatchToken& entry : batch) {
    if (entry.wants_logits) inputs.output_rows.push_back(static_cast<std::int32_t>(inputs.tokens.size()));
    inputs.tokens.push_back(entry.token);
    inputs.positions.push_back(next[entry.sequence]++);
    inputs.sequences.push_back(static_cast<std::int32_t>(entry.sequence));
  }
  return inputs;
}

void Session::prepare_for(const Work& work, const std::atomic<bool>* interrupted) {
  if (steps_ != 0) return;
  const auto costs = calibrate_for({.model = model_,
                                    .runtime = runtime_,
                                    .fleet = fleet_,
                                    .options = options_,
                                    .context = context_,
                                    .work = work,
                                    .interrupted = interrupted});
  if (!costs) return;
  fleet_.set_costs(*costs);
  begin_anew();
}

Status Session::decode(std::span<const BatchToken> batch) {
  SHUNT_TRY(check(batch));
  reserve_pages(batch);
  SHUNT_TRY(run(batch));
  for (const BatchToken& entry : batch) sequences_[entry.sequence].tokens.push_back(entry.token);
  if (fleet_.count_step())
    begin_anew();
  else if (batch.size() == 1 && review_.is_due(fleet_))
    reconsider();
  return {};
}

// Devices are not as fast as they were taken for.
void Session::reconsider() {
  const auto now_us = review_.begin();
  if (!now_us) return;
  doubt_what_runs_contradict(runtime_, fleet_);
  fleet_.correct();
  const DeviceSet set = fleet_.devices();
  auto planner = std::make_unique<StepPlanner>(model_, set, options_, context_);
  const auto gain_us = [&](const Plan& plan) {
    return *now_us - plan.predicted_us * (1 + margin_or_default(options_.margin, plan.is_measured));
  };
  const auto like = planner->one_token_as(*planner_);
  if (!like || !review_.is_worth(gain_us(*like), review_.planning_us(), steps_)) return;
  const auto other = planner->plan(1, 1);
  const std::uint32_t batch = std::min(options_.batch, context_);
  const auto prompt = planner->plan(batch, 1);
  if (!other || !prompt) return;
  double move_us = weights_us(other->plan, set);
  for (const Sequence& sequence : sequences_)
    move_us += prompt->plan.predicted_us * static_cast<double>((sequence.tokens.size() + batch - 1) / batch);
  if (!review_.is_worth(gain_us(other->plan), move_us, steps_)) return;
  fleet_.tell(fmt::format("a token takes {}; as devices turned out to be, another plan should take {}",
                          in_time(*now_us), in_time(other->plan.predicted_us)));
  begin_anew();
  planner_ = std::move(planner);
}

// With whatever devices are left.
Status Session::run(std::span<const BatchToken> batch) {
  while (true) {
    Status status = catch_up();
    if (status) status = run_once(batch);
    if (status) return {};
    SHUNT_TRY(fleet_.recover(std::move(status).error()));
    begin_anew();
  }
}

// Nothing that devices hold is used any more.
void Session::begin_anew() {
  last_run_ = nullptr;
  executables_.clear();
  weights_.clear();
  state_ = {};
  arenas_ = {};
  planner_ = std::make_unique<StepPlanner>(model_, fleet_.devices(), options_, context_);
  review_.begin_anew();
  for (Sequence& sequence : sequences_) sequence.computed = 0;
}

void Session::note_devices(const Executable& executable) {
  if (std::exchange(last_run_, &executable) == &executable) return;
  for (const Decision& decision : executable.plan().decisions) {
    const std::string& id = executable.plan().devices[decision.device].id;
    if (std::ranges::find(used_devices_, id) == used_devices_.end()) used_devices_.push_back(id);
  }
}

// Computes again what the cache has lost.
Status Session::catch_up() {
  for (std::uint32_t index = 0; index < sequences_.size(); ++index) {
    const Sequence& sequence = sequences_[index];
    while (sequence.computed < sequence.tokens.size()) {
      const std::size_t count = std::min<std::size_t>(options_.batch, sequence.tokens.size() - sequence.computed);
      std::vector<BatchToken> batch;
      for (std::size_t i = sequence.computed; i < sequence.computed + count; ++i)
        batch.push_back({.sequence = index, .token = sequence.tokens[i]});
      SHUNT_TRY(run_once(batch));
    }
  }
  return {};
}

Status Session::run_once(std::span<const BatchToken> batch) {
  SHUNT_TRY(watch_.check("a step"));
  const StepInputs inputs = inputs_of(batch);
  const auto tokens = static_cast<std::uint32_t>(inputs.tokens.size());
  const auto outputs = static_cast<std::uint32_t>(inputs.output_rows.size());
  SHUNT_TRY_ASSIGN(Executable * executable, executable_for(tokens, outputs));
  std::vector<std::int32_t> table(std::size_t{options_.sequences} * pages_per_sequence_, -1);
  for (std::size_t row = 0; row < sequences_.size(); ++row)
    std::ranges::copy(sequences_[row].pages, table.begin() + static_cast<std::ptrdiff_t>(row * pages_per_sequence_));
  const auto write = [&](std::string_view name, const std::vector<std::int32_t>& values) {
    return executable->write_input(*executable->graph().find(name), bytes(values));
  };
  SHUNT_TRY(write("tokens", inputs.tokens));
  SHUNT_TRY(write("positions", inputs.positions));
  SHUNT_TRY(write("sequences", inputs.sequences));
  SHUNT_TRY(write("pages", table));
  SHUNT_TRY(write("output_rows", inputs.output_rows));
  const Parameters parameters{
      .tokens = tokens,
      .outputs = outputs,
      .positions = static_cast<std::uint32_t>(std::ranges::max(inputs.positions)) + 1,
  };
  const Device& clock = *fleet_.devices().devices.front();
  const std::uint64_t begin_ns = clock.now_ns();
  const Submission submission{.parameters = parameters,
                              .step = steps_++,
                              .profile = options_.profile,
                              .timeout = fleet_.timeout(executable->plan().predicted_us)};
  SHUNT_TRY(executable->run(submission));
  note_devices(*executable);
  fleet_.observe(executable->plan(), executable->actual_us());
  if (tokens == 1 && !executable->actual_us().empty())
    review_.add_run(static_cast<double>(clock.now_ns() - begin_ns) * 1e-3, executable->plan().units.size());
  logits_.resize(std::size_t{outputs} * model_.config().vocabulary);
  SHUNT_TRY(executable->read_output(0, 0, std::as_writable_bytes(std::span(logits_))));
  if (!std::ranges::all_of(logits_, [](float logit) { return std::isfinite(logit); })) {
    SHUNT_TRY(suspect(*executable));
    return computes_again_ ? give_up(*executable, submission) : compute_again(batch);
  }
  SHUNT_TRY(fleet_.judge("the logits", true, executable->plan()));
  for (const BatchToken& entry : batch) ++sequences_[entry.sequence].computed;
  return {};
}

// The error of a device that may have made numbers that are not finite; ok where no other is left to compute them.
Status Session::suspect(const Executable& executable) {
  if (auto error = fleet_.suspect("the logits", executable.plan())) return std::unexpected(std::move(*error));
  return {};
}

// Once, with what the cache holds: steps whose logits nobody reads may have spoiled it.
Status Session::compute_again(std::span<const BatchToken> batch) {
  computes_again_ = true;
  begin_anew();
  Status status = catch_up();
  if (status) status = run_once(batch);
  computes_again_ = false;
  return status;
}

// The error that says which op it is. No device is to blame: all are used again.
Status Session::give_up(Executable& executable, const Submission& submission) {
  const auto found = executable.find_not_finite(submission);
  const std::string& why = found ? *found : found.error().message;
  fleet_.acquit();
  begin_anew();
  return fail(Code::internal, fmt::format("the logits are not finite, computed twice and on every device: {}", why));
}

std::span<const float> Session::logits(std::size_t index) const {
  const std::size_t columns = model_.config().vocabulary;
  if (index >= logits_.size() / columns) return {};
  return std::span(logits_).subspan(index * columns, columns);
}

Status Session::append(std::uint32_t sequence, std::span<const Token> tokens, const AfterStep& after_step) {
  if (sequence < sequences_.size() && tokens.size() > context_ - sequences_[sequence].tokens.size())
    return fail(
        Code::invalid,
        fmt::format(
            "{} tokens do not fit: the context holds {}, {} are taken; start with a larger one (option context, -c)",
            tokens.size(), context_, sequences_[sequence].tokens.size()));
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t count = std::min<std::size_t>(options_.batch, tokens.size() - done);
    std::vector<BatchToken> batch;
    for (std::size_t i = done; i < done + count; ++i)
      batch.push_back({.sequence = sequence, .token = tokens[i], .wants_logits = i + 1 == tokens.size()});
    SHUNT_TRY(decode(batch));
    done += count;
    if (tokens.size() > 1) watch_.report(ProgressKind::reading_prompt, done, tokens.size());
    if (after_step && !after_step(done)) break;
  }
  return {};
}

Status Session::append_despite_interruption(std::uint32_t sequence, Token token) {
  const auto* const interrupted = std::exchange(watch_.interrupted, nullptr);
  Status status = append(sequence, std::span(&token, 1));
  watch_.interrupted = interrupted;
  return status;
}

void Session::truncate(std::uint32_t index, std::size_t length) {
  Sequence& sequence = sequences_[index];
  if (length >= sequence.tokens.size()) return;
  sequence.tokens.resize(length);
  sequence.computed = std::min(sequence.computed, length);
  while (sequence.pages.size() > pages_of(static_cast<std::uint32_t>(length))) {
    free_pages_.push_back(sequence.pages.back());
    sequence.pages.pop_back();
  }
}

Result<Executable*> Session::executable_for(std::uint32_t tokens, std::uint32_t outputs) {
  std::unique_ptr<Executable>& executable = executables_[{std::bit_ceil(tokens), std::bit_ceil(std::max(outputs, 1U))}];
  if (executable != nullptr) return executable.get();
  SHUNT_TRY_ASSIGN(PlannedGraph step, planner_->plan(tokens, outputs));
  fleet_.note(step.plan);
  SHUNT_TRY_ASSIGN(executable, Executable::create(std::move(step.graph), std::move(step.plan),
                                                  {.devices = fleet_.devices().devices,
                                                   .weights = &weights_,
                                                   .state = &state_,
                                                   .arenas = &arenas_,
                                                   .recorder = &runtime_.recorder(),
                                                   .audits = &fleet_.audits(),
                                                   .watch = &watch_}));
  return executable.get();
}

Result<const Plan*> Session::plan_for(std::uint32_t tokens, std::uint32_t outputs) {
  SHUNT_TRY_ASSIGN(const Executable* executable, executable_for(tokens, outputs));
  return &executable->plan();
}

Session::Memory Session::memory() const {
  Memory memory{.copied_weights = weights_.copied_bytes(), .cache = state_.bytes(), .programs = arenas_.bytes()};
  for (const auto& [buckets, executable] : executables_)
    if (executable != nullptr) memory.programs += executable->scratch_bytes();
  return memory;
}

}  // namespace shunt::models
