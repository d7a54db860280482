// The compiler of GLSL and the validator of SPIR-V, found at run time: both may be absent.
//
// Plain functions; any thread.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "shunt/status.h"

namespace shunt {

// A compute shader for Vulkan 1.1, by libshaderc (SHUNT_SHADERC_LIBRARY names another file), or where that cannot be
// opened, as on Debian 12, by the program glslc. `name` stands in messages. Errors: io where neither is there, invalid
// with the compiler's lines.
[[nodiscard]] Result<std::vector<std::uint32_t>> compile_glsl(const std::string& text, const std::string& name);

// Runs the validator of SPIRV-Tools for Vulkan 1.1: from its library, from libshaderc, which holds it too, or the
// program spirv-val. Where none is there it passes everything. Errors: invalid, with what the validator says.
[[nodiscard]] Status validate_spirv(std::span<const std::uint32_t> words);

}  // namespace shunt
