#include "models/session.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <utility>

#include "models/step_planner.h"
#include "run/strategy.h"

namespace shunt::models {
namespace {

template <class... Arguments>
std::unexpected<Error> invalid(fmt::format_string<Arguments...> text, Arguments&&... arguments) {
  return fail(Code::invalid, fmt::format(text, std::forward<Arguments>(arguments)...));
}

}  // namespace

Session::Session(const Model& model, const Runtime& runtime, const SessionOptions& options, std::uint32_t context)
    : model_(model),
      options_(options),
      watch_(runtime.options().watch),
      context_(context),
      sequences_(options.max_sequences, pages_of(context)),
      results_(model.config().vocabulary),
      runner_(runtime, *this,
              {.weights = &model.weights(),
               .margin = options.margin,
               .profile = options.profile,
               .watch = &watch_,
               .run = "a token"}) {}

Result<std::unique_ptr<Session>> Session::create(const Model& model, const Runtime& runtime,
                                                 const SessionOptions& options) {
  SHUNT_TRY_ASSIGN(const std::uint32_t context, choose_context(model, runtime, options));
  std::unique_ptr<Session> session(new Session(model, runtime, options, context));
  SHUNT_TRY(check_strategy(options.strategy, session->runner_.device_pool()));
  return session;
}

std::unique_ptr<BucketPlanner> Session::planner_for(const DeviceSet& set, std::optional<double> margin) const {
  SessionOptions options = options_;
  options.margin = margin;
  return std::make_unique<StepPlanner>(model_, set, options, context_);
}

void Session::prepare_for(const ExpectedTokens& work, const std::atomic<bool>* interrupted) {
  if (runner_.runs() != 0 || options_.strategy != Strategy::automatic) return;
  work_ = work;
  if (runner_.measure(interrupted)) runner_.start_over();
  work_ = std::nullopt;
}

std::uint32_t Session::expected_step(std::uint64_t most) const {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>({work_->prompt_tokens, usual_step(options_), most}));
}

std::vector<RunClient::Expected> Session::expected() const {
  if (!work_) return {};
  std::vector<Expected> runs{{.bucket = kRepeated, .times = static_cast<double>(work_->generated_tokens)}};
  if (const std::uint32_t tokens = expected_step(context_); tokens != 0)
    runs.push_back({.bucket = {.tokens = tokens}, .times = static_cast<double>(work_->prompt_tokens) / tokens});
  return runs;
}

Result<std::vector<RunClient::Sample>> Session::samples() const {
  // Nearly reaches the rates of long prompts in less time; times for longer contexts are derived from these.
  constexpr std::uint64_t kPromptTokens = 64;
  constexpr std::uint32_t kContext = 1024;
  const StepPlanner steps(model_, {}, options_, std::min(context_, kContext));
  const std::uint32_t tokens = std::max(expected_step(kPromptTokens), 1U);
  std::vector<Sample> samples(2);
  SHUNT_TRY_ASSIGN(samples[0].graph, steps.graph_of(1, 1));
  samples[0].times = static_cast<double>(work_->generated_tokens);
  SHUNT_TRY_ASSIGN(samples[1].graph, steps.graph_of(tokens, 1));
  samples[1].times = static_cast<double>(work_->prompt_tokens) / tokens;
  return samples;
}

Status Session::check(std::span<const BatchToken> batch) const {
  const std::uint32_t most = options_.max_batch_tokens != 0 ? options_.max_batch_tokens : kMostStepTokens;
  if (batch.empty() || batch.size() > most)
    return invalid("a step has {} tokens; it must have 1 to {}", batch.size(), most);
  std::vector<std::uint64_t> length;
  for (std::size_t index = 0; index < sequences_.count(); ++index) length.push_back(sequences_.tokens(index).size());
  for (const BatchToken& entry : batch) {
    if (entry.sequence >= sequences_.count())
      return invalid("sequence {} is out of range; the session has {}", entry.sequence, sequences_.count());
    if (entry.token < 0 || static_cast<std::uint32_t>(entry.token) >= model_.config().vocabulary)
      return invalid("token {} is outside the vocabulary of {}", entry.token, model_.config().vocabulary);
    if (++length[entry.sequence] > context_)
      return invalid("the context of {} tokens is full; start with a larger one (option context, -c)", context_);
  }
  return {};
}

Status Session::decode(std::span<const BatchToken> batch, Results results) {
  SHUNT_TRY(check(batch));
  wanted_ = results;
  sequences_.reserve(batch);
  SHUNT_TRY(runner_.attempt([&] { return run_once(batch); }));
  sequences_.append(batch);
  runner_.finish(batch.size() == 1);
  return {};
}

// Recomputes the tokens that the cache has lost.
Status Session::rebuild() {
  for (std::uint32_t index = 0; index < sequences_.count(); ++index) {
    const std::span<const Token> tokens = sequences_.tokens(index);
    while (sequences_.computed(index) < tokens.size()) {
      const std::span<const Token> lost = tokens.subspan(sequences_.computed(index));
      std::vector<BatchToken> batch;
      for (const Token token : lost.first(prompt_step(lost.size())))
        batch.push_back({.sequence = index, .token = token});
      SHUNT_TRY(run_once(batch));
    }
  }
  return {};
}

std::optional<double> Session::rebuild_us(BucketPlanner& planner) const {
  auto& steps = static_cast<StepPlanner&>(planner);
  std::map<std::uint32_t, double> us_of;  // by tokens of a step
  const auto note = [&](std::uint32_t batch) {
    if (us_of.contains(batch)) return true;
    const auto prompt = steps.plan(batch, 1);
    if (prompt) us_of[batch] = prompt->plan.predicted_us;
    return prompt.has_value();
  };
  if (!note(std::min(usual_step(options_), context_))) return std::nullopt;  // further prompts must be possible
  double us = 0;
  for (std::size_t index = 0; index < sequences_.count(); ++index) {
    const std::size_t tokens = sequences_.tokens(index).size();
    if (tokens == 0) continue;
    const std::uint32_t batch = steps.prompt_step(tokens);
    if (!note(batch)) return std::nullopt;
    us += us_of[batch] * static_cast<double>((tokens + batch - 1) / batch);
  }
  return us;
}

Status Session::write_inputs(Executable& executable, std::span<const BatchToken> batch,
                             std::span<const std::int32_t> positions) const {
  std::vector<std::int32_t> tokens;
  std::vector<std::int32_t> sequences;
  std::vector<std::int32_t> output_rows;
  for (const BatchToken& entry : batch) {
    if (entry.wants_logits) output_rows.push_back(static_cast<std::int32_t>(tokens.size()));
    tokens.push_back(entry.token);
    sequences.push_back(static_cast<std::int32_t>(entry.sequence));
  }
  const Graph& graph = executable.graph();
  const auto write = [&](std::string_view name, std::span<const std::int32_t> values) -> Status {
    for (std::uint32_t piece = 0; piece == 0 || !values.empty(); ++piece) {
      const TensorId input = *graph.find(input_of_piece(name, piece));
      const auto count = static_cast<std::size_t>(
          std::min<std::uint64_t>(values.size(), graph.tensor(input).operand.shape.elements()));
      SHUNT_TRY(executable.write_input(input, std::as_bytes(values.first(count))));
      values = values.subspan(count);
    }
    return {};
  };
  SHUNT_TRY(write("tokens", tokens));
  SHUNT_TRY(write("positions", positions));
  SHUNT_TRY(write("sequences", sequences));
  SHUNT_TRY(write("pages", sequences_.page_table()));
  if (batch.size() > 1) {  // the cache does not travel for one token
    const auto [read_begin, read_end] = sequences_.cached_pages();
    const auto [written_begin, written_end] = sequences_.pages_of_batch(batch, positions);
    executable.set_state_in_use({.read = {read_begin, read_end}, .written = {written_begin, written_end}});
  }
  return write("output_rows", output_rows);
}

Status Session::run_once(std::span<const BatchToken> batch) {
  SHUNT_TRY(watch_.check("a step"));
  const std::vector<std::int32_t> positions = sequences_.positions_of(batch);
  const Parameters parameters{
      .tokens = static_cast<std::uint32_t>(batch.size()),
      .outputs = static_cast<std::uint32_t>(std::ranges::count_if(batch, &BatchToken::wants_logits)),
      .positions = static_cast<std::uint32_t>(std::ranges::max(positions)) + 1,
  };
  SHUNT_TRY_ASSIGN(Executable * executable, runner_.executable_for({parameters.tokens, parameters.outputs}));
  SHUNT_TRY(write_inputs(*executable, batch, positions));
  const Submission submission = runner_.next_submission(*executable, parameters);
  SHUNT_TRY(runner_.run(*executable, submission, true));
  SHUNT_TRY(results_.read(*executable, parameters.outputs, wanted_));
  if (!results_.are_finite()) {
    // suspect() blames a device that may have made them, or returns nothing if no other device is left to try.
    if (auto error = runner_.device_pool().suspect("the logits", executable->plan()))
      return std::unexpected(std::move(*error));
    return computes_again_ ? give_up(*executable, submission) : compute_again(batch);
  }
  SHUNT_TRY(runner_.device_pool().judge("the logits", true, executable->plan()));
  sequences_.add_computed(batch);
  return {};
}

// Tries once more with a rebuilt cache: steps whose logits nobody read may have corrupted it.
Status Session::compute_again(std::span<const BatchToken> batch) {
  computes_again_ = true;
  runner_.start_over();
  Status status = rebuild();
  if (status) status = run_once(batch);
  computes_again_ = false;
  return status;
}

// Returns an error that names the op. No device is to blame, so all are used again.
Status Session::give_up(Executable& executable, const Submission& submission) {
  const auto found = executable.find_not_finite(submission);
  runner_.device_pool().acquit();
  runner_.start_over();
  return fail(Code::internal, fmt::format("the logits are not finite, even when computed again on every device: {}",
                                          found ? *found : found.error().message));
}

Status Session::prefill(std::uint32_t sequence, std::span<const Token> tokens, const AfterStep& after_step,
                        Results results) {
  if (sequence < sequences_.count() && tokens.size() > context_ - sequences_.tokens(sequence).size())
    return invalid(
        "{} tokens do not fit: the context holds {}, {} are taken; start with a larger one (option context, -c)",
        tokens.size(), context_, sequences_.tokens(sequence).size());
  for (std::size_t done = 0; done < tokens.size();) {
    const std::size_t count = prompt_step(tokens.size() - done);
    std::vector<BatchToken> batch;
    for (std::size_t i = done; i < done + count; ++i)
      batch.push_back({.sequence = sequence, .token = tokens[i], .wants_logits = i + 1 == tokens.size()});
    SHUNT_TRY(decode(batch, results));
    done += count;
    if (tokens.size() > 1) watch_.report(ProgressKind::reading_prompt, done, tokens.size());
    if (after_step && !after_step(done)) break;
  }
  return {};
}

Status Session::prefill_despite_interruption(std::uint32_t sequence, Token token) {
  const auto* const interrupted = std::exchange(watch_.interrupted, nullptr);
  Status status = prefill(sequence, std::span(&token, 1));
  watch_.interrupted = interrupted;
  return status;
}

std::uint32_t Session::prompt_step(std::uint64_t left) {
  runner_.change_plans();
  return static_cast<StepPlanner&>(runner_.planner()).prompt_step(left);
}

Result<const Plan*> Session::plan_for(std::uint32_t tokens, std::uint32_t outputs) {
  SHUNT_TRY_ASSIGN(const Executable* executable, runner_.executable_for({tokens, outputs}));
  return &executable->plan();
}

}  // namespace shunt::models
