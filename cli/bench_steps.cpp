#include "bench_steps.h"

#include "base/stopwatch.h"
#include "models/sampling.h"

namespace shunt::cli {

using models::Session;

bool is_read_whole(const models::Model& model, const WeightInfo& weight) {
  return model.config().tied_output || weight.name != "token_embd.weight";
}

std::vector<Token> random_tokens(std::uint32_t count, std::uint32_t vocabulary) {
  models::SplitMix64 random(1);
  std::vector<Token> tokens;
  for (std::uint32_t i = 0; i < count; ++i) tokens.push_back(static_cast<Token>(random.next() % vocabulary));
  return tokens;
}

Result<double> time_prompt(Session& session, std::span<const Token> prompt) {
  session.truncate(0, 0);
  const Stopwatch watch;
  SHUNT_TRY(session.prefill(0, prompt, {}, Session::Results::candidates));
  return static_cast<double>(prompt.size()) / watch.seconds();
}

Result<double> time_generation(Session& session, std::span<const Token> tokens, std::uint32_t sequences) {
  std::vector<BatchToken> batch(sequences);
  const Stopwatch watch;
  for (const Token token : tokens) {
    for (std::uint32_t i = 0; i < sequences; ++i) batch[i] = {.sequence = i, .token = token, .wants_logits = true};
    SHUNT_TRY(session.decode(batch, Session::Results::candidates));
  }
  return static_cast<double>(tokens.size()) * sequences / watch.seconds();
}

}  // namespace shunt::cli
