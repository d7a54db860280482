// The GLSL compiler and the SPIR-V validator, found at run time: both may be absent.
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

// Compiles a compute shader for Vulkan 1.1 with libshaderc (SHUNT_SHADERC_LIBRARY names another file). If that cannot
// be opened, as on Debian 12, it runs the program glslc. `name` is used in messages. Errors: io if neither is present,
// invalid with the compiler's output.
[[nodiscard]] Result<std::vector<std::uint32_t>> compile_glsl(const std::string& text, const std::string& name);

// Validates for Vulkan 1.1 with SPIRV-Tools: its library, libshaderc, which contains it too, or the program spirv-val.
// Passes everything if none is present. Errors: invalid, with the validator's message.
[[nodiscard]] Status validate_spirv(std::span<const std::uint32_t> words);

}  // namespace shunt
