#include "ops/attention/attention.h"
#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

// All that the arguments describe.
std::string supports(const OpCall&) { return {}; }

std::uint64_t groups(const OpCall& call) { return call.input(0).shape.rows(); }

// A score for each position that a row could see.
std::uint64_t first_pass_words(const OpCall& call) {
  const AttentionArgs args = attention_arguments(call);
  return row_count(args.query) * args.table.sequence_pages * args.table.page_tokens;
}

// Of each tile of 64 positions: the product with a key, the top score of the group, and for each position the elements
// that an invocation sums.
std::uint64_t rounds(const OpCall& call, const ShaderLimits& limits) {
  constexpr std::uint64_t kElements = kHeadPart / kShaderGroupSize;
  const std::uint64_t positions = visible_at_most(call);
  const std::uint64_t head_dim = call.input(0).shape.columns();
  if (limits.language == ShaderLanguage::essl300) {
    const bool has_scores = first_pass_words(call) * sizeof(float) <= limits.largest_binding_bytes;
    return has_scores ? positions + head_dim : positions * (1 + head_dim);
  }
  const std::uint64_t of_tile = 1 + head_dim + kRoundsOfAGroup + 2 * kElements + kShaderGroupSize * (1 + kElements);
  return (head_dim + kHeadPart - 1) / kHeadPart * (1 + rounds_over(positions) * of_tile + 2 * kElements);
}

}  // namespace

extern const ShaderKernel attention_shader;
const ShaderKernel attention_shader{
    .supports = supports, .groups = groups, .first_pass_words = first_pass_words, .rounds = rounds};

}  // namespace shunt
