// Few combinations of options that still put every two options of different picks together at least once
// (pairwise testing, https://www.nist.gov/publications/practical-combinatorial-testing), and all of them.
// Pure functions; equal inputs give equal answers.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shunt {

using Combination = std::vector<std::uint32_t>;  // the option of each pick

// `options[i]`, at least 1: how many options pick i has.
[[nodiscard]] std::vector<Combination> pairwise(std::span<const std::uint32_t> options);

// The next of all combinations, the last pick turning fastest. False after the last one.
[[nodiscard]] bool next_combination(Combination& combination, std::span<const std::uint32_t> options);

}  // namespace shunt
