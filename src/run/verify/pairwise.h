// Makes few combinations of options that still cover every pair of options of different picks at least once (pairwise
// testing, https://www.nist.gov/publications/practical-combinatorial-testing), or all combinations. Pure functions;
// equal inputs give equal results.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace shunt {

using Combination = std::vector<std::uint32_t>;  // the option of each pick

// `options[i]`, at least 1: the number of options of pick i.
[[nodiscard]] std::vector<Combination> pairwise(std::span<const std::uint32_t> options);

// Advances to the next of all combinations, the last pick changing fastest. False after the last one.
[[nodiscard]] bool next_combination(Combination& combination, std::span<const std::uint32_t> options);

}  // namespace shunt
