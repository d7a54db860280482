// Runs a model over sequences of tokens: the paged cache, batches, logits.
//
// A session holds one or more sequences that share a cache of pages (sequences.h); a runner (run/runner.h) computes its
// steps. The model and the runtime must outlive it. One thread at a time.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/model.h"
#include "models/sequences.h"
#include "run/runner.h"
#include "shunt/model.h"

namespace shunt::models {

// What a session is to do.
struct Work {
  std::uint64_t prompt_tokens = 0;
  std::uint64_t generated_tokens = 0;
};

class Session final : private RunClient {
 public:
  // Errors: those of choose_context(); unsupported where a strategy prefers devices that there are none of and that is
  // strict.
  [[nodiscard]] static Result<std::unique_ptr<Session>> create(const Model& model, const Runtime& runtime,
                                                               const SessionOptions& options);

  // Before the first step: this is to come. Devices that nobody has measured are measured now, where that can pay.
  void prepare_for(const Work& work, const std::atomic<bool>* interrupted);

  // Appends tokens to their sequences in one step. Afterwards logits(i) are those of the i-th token that
  // wanted them. A device that fails is left out from then on, and what it knew is computed again elsewhere. Errors:
  // invalid for a bad token, sequence, batch size or a full context; those of a device where no other is left;
  // interrupted. Then the sequences are as before.
  [[nodiscard]] Status decode(std::span<const BatchToken> batch);
  // F32 [vocabulary], until the next decode; empty where nothing was wanted.
  [[nodiscard]] std::span<const float> logits(std::size_t index) const;

  // Appends tokens to one sequence in as many steps as it takes; the logits of the last are logits(0).
  // `after_step(tokens done)` returning false stops early. Errors: as decode; before the first step where all
  // of them do not fit the context.
  using AfterStep = std::function<bool(std::size_t done)>;
  [[nodiscard]] Status prefill(std::uint32_t sequence, std::span<const Token> tokens, const AfterStep& after_step = {});
  // One token, also where the runtime's watch says that it is interrupted.
  [[nodiscard]] Status prefill_despite_interruption(std::uint32_t sequence, Token token);

  // Forgets the tokens from `length` on.
  void truncate(std::uint32_t sequence, std::size_t length) { sequences_.truncate(sequence, length); }

  [[nodiscard]] std::span<const Token> tokens(std::uint32_t sequence) const { return sequences_.tokens(sequence); }
  // Tokens that each sequence can hold.
  [[nodiscard]] std::uint32_t context() const { return context_; }
  [[nodiscard]] const SessionOptions& options() const { return options_; }
  [[nodiscard]] const Model& model() const { return model_; }
  // The runtime's.
  [[nodiscard]] const Watch& watch() const { return watch_; }

  // The devices that have run steps, in the order in which they first did.
  [[nodiscard]] std::span<const std::string> used_devices() const { return runner_.used_devices(); }
  // The plan for a step of that many tokens and rows of logits, made if need be.
  [[nodiscard]] Result<const Plan*> plan_for(std::uint32_t tokens, std::uint32_t outputs);
  [[nodiscard]] Runner::Memory memory() const { return runner_.memory(); }

 private:
  Session(const Model& model, const Runtime& runtime, const SessionOptions& options, std::uint32_t context);

  [[nodiscard]] std::unique_ptr<BucketPlanner> planner_for(const DeviceSet& set,
                                                           std::optional<double> margin) const override;
  [[nodiscard]] std::vector<Expected> expected() const override;
  [[nodiscard]] Result<std::vector<Sample>> samples() const override;
  void forget() override { sequences_.forget_cache(); }
  [[nodiscard]] Status rebuild() override;
  [[nodiscard]] std::optional<double> rebuild_us(BucketPlanner& planner) const override;

  // Tokens of the steps that a prompt is read in, at most `most`; 0 where no work is expected.
  [[nodiscard]] std::uint32_t prompt_step(std::uint64_t most) const;
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
  std::optional<Work> work_;  // while devices may be measured for it
  std::vector<float> logits_;
  bool computes_again_ = false;  // as logits were not finite
  Runner runner_;
};

}  // namespace shunt::models
