// Hashes of the kernels' sources, by family and language. They tell this build's kernels from those of another, because
// measurements of one kernel do not apply to another. Plain functions; any thread.
#pragma once

#include <map>
#include <string>
#include <string_view>

namespace shunt {

// Returns the hash of each family's kernels in "cpu", "shader" or "cuda"; any other language means all three together.
[[nodiscard]] std::map<std::string, std::string, std::less<>> kernel_hashes(std::string_view language);

}  // namespace shunt
