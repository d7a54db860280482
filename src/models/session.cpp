#include "models/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "devices/device.h"
#include "plan/planner.h"
#include "trace/recorder.h"

namespace shunt::models {
namespace {

constexpr std::uint32_t kLargestBatch = 512;

std::uint32_t pages_of(std::uint64_t tokens) {
  return static_cast<std::uint32_t>((tokens + kPageTokens - 1) / kPageTokens);
}

// How much of the memory that is free the cache may take by itself.
constexpr double kCacheShare = 0.8;

// The bytes that may be used of a device's memory; nothing where they are not known.
std::optional<std::uint64_t> memory_of(const Runtime& runtime, std::size_t device) {
  const auto available = runtime.devices()[device]->memory_available();
  const std::uint64_t budget = runtime.budgets()[device];
  if (available) return std::min(*available, budget);
  return budget == kNoBudget ? std::nullopt : std::optional(budget);
}

// Of the first device or, where the weights are more than that has, of all together.
std::optional<std::uint64_t> memory_for(const Model& model, const Runtime& runtime) {
  const auto first = memory_of(runtime, 0);
  if (!first || *first > model.weight_bytes()) return first;
  std::map<std::string, std::uint64_t> memories;
  for (std::size_t device = 0; device < runtime.devices().size(); ++device) {
    const auto bytes = memory_of(runtime, device);
    if (!bytes) return std::nullopt;
    std::uint64_t& most = memories[runtime.devices()[device]->info().memory_resource];
    most = std::max(most, *bytes);
  }
  std::uint64_t all = 0;
  for (const auto& [name, bytes] : memories) all += bytes;
  return all;
}

// The tokens per sequence that fit beside the weights; nothing where the memory is not known.
std::optional<std::uint64_t> context_that_fits(const Model& model, const Runtime& runtime,
                                               const SessionOptions& options) {
  const auto available = memory_for(model, runtime);
  if (!available) return std::nullopt;
  const std::uint64_t weights = model.weight_bytes();
  const double room = *available > weights ? static_cast<double>(*available - weights) * kCacheShare : 0;
  const double page =
      static_cast<double>(cache_page_bytes(model.config(), kPageTokens, options.cache_dtype)) * options.sequences;
  return static_cast<std::uint64_t>(room / page) * kPageTokens;
}

// That of the first device of the kind that a strategy likes; kNone where it likes none.
// Errors: invalid where there is no such device.
Result<std::uint32_t> preferred_device(Strategy strategy, std::span<Device* const> devices) {
  if (strategy != Strategy::gpu && strategy != Strategy::cpu) return kNone;
  const auto is_liked = [&](const Device* device) {
    return device->info().is_host_cpu() == (strategy == Strategy::cpu);
  };
  const auto liked = std::ranges::find_if(devices, is_liked);
  if (liked != devices.end()) return static_cast<std::uint32_t>(liked - devices.begin());
  std::string names;
  for (const Device* device : devices) names += " " + device->info().id;
  return fail(Code::invalid,
              fmt::format("strategy {}: there is no such device among those in use:{}", name_of(strategy), names));
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
      context_(context),
      pages_per_sequence_(pages_of(context)),
      sequences_(options.sequences),
      weights_(&model.weights()) {
  for (std::uint32_t page = pages_per_sequence_ * options.sequences; page-- > 0;)
    free_pages_.push_back(static_cast<std::int32_t>(page));
}

Result<std::uint32_t> choose_context(const Model& model, const Runtime& runtime, const SessionOptions& options) {
  SHUNT_TRY(check_options(options));
  const auto fits = context_that_fits(model, runtime, options);
  if (fits && *fits == 0)
    return fail(Code::out_of_memory,
                fmt::format("no room for a cache: the {} MiB of weights and a page of {} tokens in {} need "
                            "more than the {} MiB of memory that are free; use a smaller model or file type",
                            model.weight_bytes() >> 20U, kPageTokens, count_of_sequences(options.sequences),
                            memory_for(model, runtime).value_or(0) >> 20U));
  std::uint64_t context = options.context;
  if (context == 0)
    context = std::min<std::uint64_t>({model.config().context_length, kDefaultContext, fits.value_or(kDefaultContext)});
  if (!fits || context <= *fits) return static_cast<std::uint32_t>(context);
  const std::uint64_t cache_bytes =
      cache_page_bytes(model.config(), kPageTokens, options.cache_dtype) * pages_of(context);
  return fail(Code::out_of_memory,
              fmt::format("a context of {} tokens in {} does not fit: its cache takes {} MiB, and there is "
                          "room for {} tokens; choose a smaller context (option context, -c)",
                          context, count_of_sequences(options.sequences), (cache_bytes * options.sequences) >> 20U,
                          fits.value_or(0)));
}

namespace {

// Plans the steps of a session so that they share its weights and state.
class StepPlanner {
 public:
  StepPlanner(const Model& model, const Runtime& runtime, const SessionOptions& options, std::uint32_t context)
      : model_(model), runtime_(runtime), options_(options), context_(context) {}

  Result<PlannedStep> plan(std::uint32_t tokens, std::uint32_t outputs) const {
    SHUNT_TRY_ASSIGN(Graph graph, graph_of(tokens, outputs));
    if (options_.strategy == Strategy::layers || runtime_.devices().size() == 1)
      return finish(std::move(graph), std::nullopt);
    SHUNT_TRY_ASSIGN(PlannedStep one, plan_one_token());
    if (tokens == 1 && outputs <= 1) return one;
    return finish(std::move(graph), one);
  }

 private:
  // With ever less of the devices' memory for the step of one token, until the largest step fits where that has its
  // weights too.
  static constexpr int kAttempts = 10;
  static constexpr double kLess = 0.8;

  [[nodiscard]] Result<Graph> graph_of(std::uint32_t tokens, std::uint32_t outputs) const {
    const std::uint32_t pages = pages_of(context_);
    return build_step(model_.config(), model_.weights(),
                      {.tokens = std::bit_ceil(tokens),
                       .outputs = std::bit_ceil(std::max(outputs, 1U)),
                       .sequences = options_.sequences,
                       .pages_per_sequence = pages,
                       .pages = pages * options_.sequences,
                       .page_tokens = kPageTokens,
                       .cache_dtype = options_.cache_dtype});
  }

  [[nodiscard]] Result<PlanRequest> request_for(const Graph& graph) const {
    SHUNT_TRY_ASSIGN(const std::uint32_t preferred, preferred_device(options_.strategy, runtime_.devices()));
    return PlanRequest{.graph = &graph,
                       .devices = runtime_.devices(),
                       .device_of_node = place_nodes(options_.strategy, graph, runtime_.devices().size()),
                       .preferred = preferred,
                       .fuse = options_.fuse,
                       .budget_bytes = {runtime_.budgets().begin(), runtime_.budgets().end()},
                       .margin = options_.margin};
  }

  // Where another step has the weights, if it has the same nodes.
  [[nodiscard]] Result<PlannedStep> finish(Graph graph, const std::optional<PlannedStep>& other) const {
    SHUNT_TRY_ASSIGN(PlanRequest request, request_for(graph));
    if (other && other->graph.nodes().size() == graph.nodes().size()) {
      request.device_of_node = devices_of_nodes(other->plan, other->graph);
      request.by_hand = Reason::where_weights_are;
    }
    SHUNT_TRY_ASSIGN(Plan plan, make_plan(request));
    return PlannedStep{std::move(graph), std::move(plan)};
  }

  [[nodiscard]] Result<PlannedStep> plan_one_token() const {
    double share = 1;
    for (int attempt = 1;; ++attempt) {
      SHUNT_TRY_ASSIGN(Graph graph, graph_of(1, 1));
      SHUNT_TRY_ASSIGN(PlanRequest request, request_for(graph));
      for (std::size_t device = 0; device < request.budget_bytes.size(); ++device)
        if (request.devices[device]->info().memory_pool != kHostPool && share < 1)
          request.budget_bytes[device] =
              static_cast<std::uint64_t>(static_cast<double>(request.budget_bytes[device]) * share);
      SHUNT_TRY_ASSIGN(Plan plan, make_plan(request));
      PlannedStep one{std::move(graph), std::move(plan)};
      if (std::ranges::count(runtime_.budgets(), kNoBudget) == std::ssize(runtime_.budgets())) return one;
      SHUNT_TRY_ASSIGN(Graph largest, graph_of(std::min(options_.batch, context_), 1));
      const auto fits = finish(std::move(largest), one);
      if (fits || fits.error().code != Code::out_of_memory || attempt == kAttempts) return one;
      share = attempt + 1 == kAttempts ? 0 : share * kLess;
    }
  }

  const Model& model_;
  const Runtime& runtime_;
  const SessionOptions& options_;
  std::uint32_t context_;
};

}  // namespace

Result<PlannedStep> plan_step(const Model& model, const Runtime& runtime, const SessionOptions& options,
                              std::uint32_t context, std::uint32_t tokens, std::uint32_t outputs) {
  return StepPlanner(model, runtime, options, context).plan(tokens, outputs);
}

Result<std::unique_ptr<Session>> Session::create(const Model& model, const Runtime& runtime,
                                                 const SessionOptions& options) {
  SHUNT_TRY_ASSIGN(const std::uint32_t context, choose_context(model, runtime, options));
  return std::unique_ptr<Session>(new Session(model, runtime, options, context));
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
    sequence.pages.push_back(free_pages_.back());
    free_pages_.pop_back();
  }
}

Session::StepInputs Session::inputs_of(std::span<const BatchToken> batch) const {
  StepInputs inputs;
  std::vector<std::int32_t> next;
  for (const Sequence& sequence : sequences_) next.push_back(static_cast<std::int32_t>(sequence.tokens.size()));
  for (const BatchToken& entry : batch) {
    if (entry.wants_logits) inputs.output_rows.push_back(static_cast<std::int32_t>(inputs.tokens.size()));
    inputs.tokens.push_back(entry.token);
    inputs.positions.push_back(next[entry.sequence]++);
    inputs.sequences.push_back(static_cast<std::int32_t>(entry.sequence));
  }
  return inputs;
}

Status Session::decode(std::span<const BatchToken> batch) {
  SHUNT_TRY(check(batch));
  reserve_pages(batch);
  SHUNT_TRY(run(inputs_of(batch)));
  for (const BatchToken& entry : batch) sequences_[entry.sequence].tokens.push_back(entry.token);
  return {};
}

Status Session::run(const StepInputs& inputs) {
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
  SHUNT_TRY(executable->run({.parameters = parameters, .step = steps_++, .profile = options_.profile}));
  logits_.resize(std::size_t{outputs} * model_.config().vocabulary);
  return executable->read_output(0, 0, std::as_writable_bytes(std::span(logits_)));
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
    if (after_step && !after_step(done)) break;
  }
  return {};
}

void Session::truncate(std::uint32_t index, std::size_t length) {
  Sequence& sequence = sequences_[index];
  if (length >= sequence.tokens.size()) return;
  sequence.tokens.resize(length);
  while (sequence.pages.size() > pages_of(length)) {
    free_pages_.push_back(sequence.pages.back());
    sequence.pages.pop_back();
  }
}

Result<Executable*> Session::executable_for(std::uint32_t tokens, std::uint32_t outputs) {
  std::unique_ptr<Executable>& executable = executables_[{std::bit_ceil(tokens), std::bit_ceil(std::max(outputs, 1U))}];
  if (executable != nullptr) return executable.get();
  SHUNT_TRY_ASSIGN(PlannedStep step, plan_step(model_, runtime_, options_, context_, tokens, outputs));
  SHUNT_TRY_ASSIGN(executable, Executable::create(std::move(step.graph), std::move(step.plan),
                                                  {.devices = runtime_.devices(),
                                                   .weights = &weights_,
                                                   .state = &state_,
                                                   .arenas = &arenas_,
                                                   .recorder = &runtime_.recorder()}));
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
