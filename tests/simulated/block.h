// Runs a GPU's kernel on the CPU: the 64 threads of a block take turns on stacks of their own, and the whole block
// waits at sync(). One block at a time, on one thread of the process at a time.
#pragma once

#include <cstdint>
#include <functional>

namespace shunt {

// Which thread of its block, and which block, is running, and the barrier: what a kernel asks while it runs.
std::uint32_t lane();
std::uint64_t group();
void sync();

namespace simulated {

inline constexpr std::uint32_t kBlockThreads = 64;

// `kernel` is called by each thread of each block. Those of every other block run backwards, so that a barrier that is
// missing shows.
void run_blocks(const std::function<void()>& kernel, std::uint64_t blocks);

}  // namespace simulated
}  // namespace shunt
