// Runs a model over sequences of tokens: the paged cache, batches, logits.
//
// A session holds one or more sequences that share a cache of pages; each page belongs to one sequence. The
// model and the runtime must outlive it. One thread at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "models/brief_calibration.h"
#include "models/model.h"
#include "models/step_planner.h"
#include "run/executable.h"
#include "run/fleet.h"
#include "run/plan_review.h"
#include "shunt/model.h"

namespace shunt::models {

// The context that a session with these options has: what was asked for, or the default.
// Errors: out_of_memory where it does not fit beside the weights.
[[nodiscard]] Result<std::uint32_t> choose_context(const Model& model, const Runtime& runtime,
                                                   const SessionOptions& options);

class Session {
 public:
  // Errors: invalid for options out of range, unsupported where a strategy likes devices that there are none of and
  // that is strict, out_of_memory where not even one page fits.
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
  [[nodiscard]] Status append(std::uint32_t sequence, std::span<const Token> tokens, const AfterStep& after_step = {});
  // One token, also where the runtime's watch says that it is interrupted.
  [[nodiscard]] Status append_despite_interruption(std::uint32_t sequence, Token token);

  // Forgets the tokens from `length` on.
  void truncate(std::uint32_t sequence, std::size_t length);

  [[nodiscard]] std::span<const Token> tokens(std::uint32_t sequence) const { return sequences_[sequence].tokens; }
  // Tokens that each sequence can hold.
  [[nodiscard]] std::uint32_t context() const { return context_; }
  [[nodiscard]] const SessionOptions& options() const { return options_; }
  [[nodiscard]] const Model& model() const { return model_; }
  // The runtime's.
  [[nodiscard]] const Watch& watch() const { return watch_; }

  // The devices that have run steps, in the order in which they first did.
  [[nodiscard]] std::span<const std::string> used_devices() const { return used_devices_; }

  // The plan for a step of that many tokens and rows of logits, made if need be.
  [[nodiscard]] Result<const Plan*> plan_for(std::uint32_t tokens, std::uint32_t outputs);

  // Memory in bytes: weights copied from the file, cache, and programs with their arenas.
  struct Memory {
    std::uint64_t copied_weights = 0;
    std::uint64_t cache = 0;
    std::uint64_t programs = 0;
  };
  [[nodiscard]] Memory memory() const;

 private:
  struct Sequence {
    std::vector<Token> tokens;
    std::size_t computed = 0;  // of them, those that the cache knows: all, unless it was lost
    std::vector<std::int32_t> pages;
  };
  struct StepInputs {
    std::vector<std::int32_t> tokens, positions, sequences, output_rows;
  };

  Session(const Model& model, const Runtime& runtime, const SessionOptions& options, std::uint32_t context);

  [[nodiscard]] Status check(std::span<const BatchToken> batch) const;
  void reserve_pages(std::span<const BatchToken> batch);
  [[nodiscard]] StepInputs inputs_of(std::span<const BatchToken> batch) const;
  [[nodiscard]] Status run(std::span<const BatchToken> batch);
  [[nodiscard]] Status run_once(std::span<const BatchToken> batch);
  [[nodiscard]] Status suspect(const Executable& executable);
  [[nodiscard]] Status compute_again(std::span<const BatchToken> batch);
  [[nodiscard]] Status give_up(Executable& executable, const Submission& submission);
  [[nodiscard]] Status catch_up();
  void begin_anew();
  void note_devices(const Executable& executable);
  void reconsider();
  [[nodiscard]] Result<Executable*> executable_for(std::uint32_t tokens, std::uint32_t outputs);

  const Model& model_;
  const Runtime& runtime_;
  SessionOptions options_;
  Watch watch_;
  std::uint32_t context_ = 0;
  std::uint32_t pages_per_sequence_ = 0;
  std::vector<Sequence> sequences_;
  std::int32_t untouched_page_ = 0;  // it and all after it were never held
  std::vector<std::int32_t> free_pages_;
  std::vector<float> logits_;
  std::uint32_t steps_ = 0;
  bool computes_again_ = false;  // as logits were not finite
  std::vector<std::string> used_devices_;
  const Executable* last_run_ = nullptr;  // whose devices are in it

  Fleet fleet_;
  PlanReview review_;  // of the plan of one token
  std::unique_ptr<StepPlanner> planner_;
  WeightStore weights_;
  StateStore state_;
  ArenaStore arenas_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::unique_ptr<Executable>> executables_;
};

}  // namespace shunt::models
