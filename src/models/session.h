// Runs a model over sequences of tokens: the paged cache, batches, logits.
//
// A session holds one or more sequences that share a paged cache (sequences.h). A runner (run/runner.h) executes its
// steps. The model and the runtime must outlive it. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/context.h"
#include "models/decoder/architecture.h"
#include "models/model.h"
#include "models/sequences.h"
#include "models/step_results.h"
#include "run/runner.h"
#include "shunt/model.h"

namespace shunt::models {

// The work that a session should expect.
struct ExpectedTokens {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t generated_tokens = 0;
};

class Session final : private RunClient {
 public:
  // Errors: those of choose_context(); unsupported if a strict strategy prefers devices that do not exist.
  [[nodiscard]] static Result<std::unique_ptr<Session>> create(const Model& model, const Runtime& runtime,
                                                               const SessionOptions& options);

  // Announces the work before the first step. Measures devices that have not been measured yet, if that can pay off.
  void prepare_for(const ExpectedTokens& work, const std::atomic<bool>* interrupted);

  // Selects what a step reads for tokens that want logits: all of them, or only the best kCandidates, which takes less
  // time.
  using Results = StepResults::Kind;

  // Appends tokens to their sequences in one step. Afterwards logits(i) or candidates(i) belong to the i-th token that
  // wanted logits. A device that fails is quarantined, and what it held is recomputed elsewhere. Errors: invalid for a
  // bad token, sequence or batch size, or a full context; the device's error if no other device is left; interrupted.
  // On error the sequences are unchanged.
  [[nodiscard]] Status decode(std::span<const BatchToken> batch, Results results = Results::logits);
  // F32 [vocabulary], valid until the next decode; empty if none were wanted.
  [[nodiscard]] std::span<const float> logits(std::size_t index) const { return results_.logits(index); }
  // Best first, as many as candidate_count(), valid until the next decode; empty if none were wanted.
  [[nodiscard]] std::span<const ScoredToken> candidates(std::size_t index) const { return results_.candidates(index); }
  [[nodiscard]] std::uint32_t candidate_count() const { return results_.candidate_count(); }

  // Appends tokens to one sequence in as many steps as needed; what is at index 0 then belongs to the last token.
  // `after_step(tokens done)` may return false to stop early. Errors: as decode(), but before the first step if not all
  // of the tokens fit the context.
  using AfterStep = std::function<bool(std::size_t done)>;
  [[nodiscard]] Status prefill(std::uint32_t sequence, std::span<const Token> tokens, const AfterStep& after_step = {},
                               Results results = Results::logits);
  // Appends one token even if the runtime's watch is interrupted.
  [[nodiscard]] Status prefill_despite_interruption(std::uint32_t sequence, Token token);

  // Drops the tokens from `length` on.
  void truncate(std::uint32_t sequence, std::size_t length) { sequences_.truncate(sequence, length); }

  [[nodiscard]] std::span<const Token> tokens(std::uint32_t sequence) const { return sequences_.tokens(sequence); }
  // Tokens that each sequence can hold.
  [[nodiscard]] std::uint32_t context() const { return context_; }
  [[nodiscard]] const SessionOptions& options() const { return options_; }
  [[nodiscard]] const Model& model() const { return model_; }
  // The runtime's watch.
  [[nodiscard]] const Watch& watch() const { return watch_; }

  // The devices that have run steps, in the order of their first step.
  [[nodiscard]] std::span<const std::string> used_devices() const { return runner_.used_devices(); }
  // Returns how many of the next `left` tokens of a prompt prefill() reads in one step.
  [[nodiscard]] std::uint32_t prompt_step(std::uint64_t left);
  // Returns the plan for a step of that many tokens and rows of logits, and makes it if needed.
  [[nodiscard]] Result<const Plan*> plan_for(std::uint32_t tokens, std::uint32_t outputs);
  [[nodiscard]] Runner::Memory memory() const { return runner_.memory(); }
  [[nodiscard]] const WeightLoader::Loaded& loaded_weights() const { return runner_.loaded_weights(); }

 private:
  Session(const Model& model, const Runtime& runtime, const SessionOptions& options, std::uint32_t context);

  [[nodiscard]] std::unique_ptr<BucketPlanner> planner_for(const DeviceSet& set,
                                                           std::optional<double> margin) const override;
  [[nodiscard]] std::vector<Expected> expected() const override;
  [[nodiscard]] Result<std::vector<Sample>> samples() const override;
  void forget() override { sequences_.forget_cache(); }
  [[nodiscard]] Status rebuild() override;
  [[nodiscard]] std::optional<double> rebuild_us(BucketPlanner& planner) const override;

  // Tokens per step of the expected prompt, at most `most`; 0 if no work is expected.
  [[nodiscard]] std::uint32_t expected_step(std::uint64_t most) const;
  [[nodiscard]] Status check(std::span<const BatchToken> batch) const;
  [[nodiscard]] Status run_once(std::span<const BatchToken> batch);
  [[nodiscard]] Status write_inputs(Executable& executable, std::span<const BatchToken> batch,
                                    std::span<const std::int32_t> positions) const;
  [[nodiscard]] Status compute_again(std::span<const BatchToken> batch);
  [[nodiscard]] Status give_up(Executable& executable, const Submission& submission);

  const Model& model_;
  const SessionOptions options_;
  Watch watch_;
  const std::uint32_t context_;
  Sequences sequences_;
  std::optional<ExpectedTokens> work_;  // set while devices may be measured for it
  Results wanted_ = Results::logits;    // of the step that runs
  StepResults results_;
  bool computes_again_ = false;  // recomputing because logits were not finite
  Runner runner_;
};

}  // namespace shunt::models
