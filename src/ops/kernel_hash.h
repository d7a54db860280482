// What tells the kernels of this build from those of another: hashes of their sources, by family and language. What was
// measured of a kernel says nothing about another one. Plain functions; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace shunt {

// The hash of each family's kernels in a language: "cpu", "shader" or "cuda"; any other: of all three together.
[[nodiscard]] std::map<std::string, std::string, std::less<>> kernel_hashes(std::string_view language);

}  // namespace shunt
