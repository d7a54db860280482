#include "ops/attention/attention.h"
#include "ops/shader.h"

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

}  // namespace

extern const ShaderKernel attention_shader;
const ShaderKernel attention_shader{supports, groups, nullptr, first_pass_words};

}  // namespace shunt
