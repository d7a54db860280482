#include "ops/cache/cache.h"
#include "ops/rotary/turns.h"
#include "ops/shader.h"
#include "ops/shader_work.h"

namespace shunt {
namespace {

std::string supports(const OpCall& call) { return whole_words_refusal(call, call.input(0)); }

std::uint64_t groups(const OpCall& call) {
  Operand written = call.input(1);
  written.dtype = call.input(0).dtype;
  return groups_for_words(written);
}

std::vector<std::uint32_t> constants(const OpCall& call) {
  const CacheArgs args = cache_arguments(call);
  return args.rotates != 0 ? fixed_point_turns(args.rotary) : std::vector<std::uint32_t>{0};
}

}  // namespace

extern const ShaderKernel cache_shader;
const ShaderKernel cache_shader{supports, groups, constants};

}  // namespace shunt
