// How kernels prefetch numbers that they only need to widen.
#pragma once

namespace shunt {

#if defined(__x86_64__) || defined(__i386__)
inline const bool kPrefetchesToSecondLevel = __builtin_cpu_is("amd") != 0;
#else
inline constexpr bool kPrefetchesToSecondLevel = false;
#endif

// Prefetches a line into the first-level cache, but into the second on AMD's processors: on Zen 4 prefetches into the
// first halve the rate of loops that do little else, on Zen 1 both are equal. On Intel's Sapphire Rapids the first is
// 10 % faster.
inline void prefetch_plain(const void* line) {
  if (kPrefetchesToSecondLevel) {
    __builtin_prefetch(line, 0, 2);
  } else {
    __builtin_prefetch(line, 0, 3);
  }
}

}  // namespace shunt
