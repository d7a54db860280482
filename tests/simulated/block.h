// Runs a GPU kernel on the CPU: the threads of a block take turns on separate stacks, and the whole block waits at
// sync(). One block at a time, on one thread of the process at a time.
#pragma once

#include <cstdint>
#include <functional>

namespace shunt {

// For the running kernel: its thread within the block, its block, how many there are, the barrier, and another thread's
// value.
std::uint32_t lane();
std::uint64_t group();
std::uint64_t groups();
void sync();
float from_lane(float value, std::uint32_t mask);

namespace simulated {

inline constexpr std::uint32_t kBlockThreads = 64;  // of most kernels
inline constexpr std::uint32_t kMostBlockThreads = 512;

// Calls `kernel` as each thread of each block. Every other block runs its threads in reverse, so that a missing barrier
// shows.
void run_blocks(const std::function<void()>& kernel, std::uint64_t blocks, std::uint32_t threads = kBlockThreads);

}  // namespace simulated
}  // namespace shunt
