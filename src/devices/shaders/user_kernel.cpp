// make_kernel() of shunt/kernel.h: turns text or words into a kernel for devices.
#include <fmt/format.h>

#include <algorithm>

#include "devices/shaders/shader_compiler.h"
#include "ops/custom/custom.h"

namespace shunt {
namespace {

constexpr std::string_view kUsualVersion = "#version 450";

// Returns where the #version directive begins, which only comments may precede; npos if there is none.
std::size_t find_version(std::string_view text) {
  std::size_t at = 0;
  while ((at = text.find_first_not_of(" \t\r\n", at)) != std::string_view::npos) {
    if (text.substr(at).starts_with("//"))
      at = text.find('\n', at);
    else if (text.substr(at).starts_with("/*"))
      at = text.find("*/", at) == std::string_view::npos ? std::string_view::npos : text.find("*/", at) + 2;
    else
      return text.substr(at).starts_with("#version") ? at : std::string_view::npos;
    if (at == std::string_view::npos) return at;
  }
  return std::string_view::npos;
}

// Inserts the prelude after the version; the caller's lines keep their numbers.
std::string with_prelude(std::string_view text) {
  std::string version(kUsualVersion);
  std::string rest(text);
  if (const std::size_t begin = find_version(text); begin != std::string_view::npos) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    version = text.substr(begin, end - begin);
    rest.erase(begin, end - begin);
  }
  return fmt::format("{}\n{}\n#line 1\n{}\n", version, kernel_prelude(), rest);
}

Result<SpirvNeeds> compile(KernelDescription& description) {
  if (!description.glsl.empty()) {
    SHUNT_TRY_ASSIGN(description.spirv, compile_glsl(with_prelude(description.glsl), description.name));
    description.glsl.clear();
  }
  if (description.spirv.empty()) return SpirvNeeds{};
  SHUNT_TRY_ASSIGN(const SpirvNeeds needs, check_spirv(description.spirv, description.inputs));
  SHUNT_TRY(validate_spirv(description.spirv));
  return needs;
}

}  // namespace

Result<std::shared_ptr<const UserKernel>> make_kernel(KernelDescription description) {
  SHUNT_TRY(check_kernel(description));
  const auto needs = compile(description);
  if (!needs) return fail_at(fmt::format("kernel \"{}\"", description.name), needs.error());
  return std::make_shared<const UserKernel>(std::move(description), *needs);
}

}  // namespace shunt
