#include <fmt/format.h>

#include "ops/attention/attention.h"
#include "ops/shader.h"

namespace shunt {
namespace {

// Empty, or what the call has that the shader knows nothing of.
std::string plain_refusal(const OpCall& call) {
  std::string_view what;
  if (call.attributes->u32(Attr::window) != 0) what = "a window";
  if (call.attributes->f32(Attr::soft_cap) != 0) what = "a soft cap";
  if (call.has_input(6)) what = "sinks";
  return what.empty() ? std::string() : fmt::format("attention: has {}, of which the shader knows nothing", what);
}

std::string supports(const OpCall& call) {
  if (std::string reason = plain_refusal(call); !reason.empty()) return reason;
  const std::uint32_t head_dim = call.input(0).shape.columns();
  if (head_dim > kLargestGroupHead)
    return fmt::format("attention: heads of {} elements, and the shader takes {}", head_dim, kLargestGroupHead);
  return {};
}

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
