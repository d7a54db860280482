// Any words as a module of SPIR-V for a kernel: an error that says something, or what it needs of a device. The first
// byte says how many inputs the kernel has.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "ops/spirv.h"
#include "require.h"

// NOLINTNEXTLINE(readability-identifier-naming): the name that libFuzzer calls.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint32_t inputs = data[0] % 9;
  std::vector<std::uint32_t> words((size - 1) / sizeof(std::uint32_t));
  if (!words.empty()) std::memcpy(words.data(), data + 1, words.size() * sizeof(std::uint32_t));
  const auto needs = shunt::check_spirv(words, inputs);
  if (!shunt::answered(needs)) return 0;
  shunt::require(needs->group_size() > 0);
  static_cast<void>(shunt::needs_refusal(*needs, {}));
  const shunt::ShaderLimits large{.shared_bytes = 1U << 20U,
                                  .largest_group = 1024,
                                  .smallest_subgroup = 32,
                                  .has_f16 = true,
                                  .has_integer_dot = true};
  static_cast<void>(shunt::needs_refusal(*needs, large));
  return 0;
}
