// Runs a GPU kernel on the CPU: the threads of a block take turns on separate stacks; the whole block waits at sync(),
// 32 threads at sync_warp(). One block at a time, on one thread of the process at a time.
#pragma once

#include <cstdint>
#include <functional>

namespace shunt {

// For the running kernel: its thread within the block, its block and how many there are, the barriers, a turn for the
// other threads, and another thread's value.
std::uint32_t lane();
std::uint64_t group();
std::uint64_t groups();
void sync();
void sync_warp();
void let_others_run();
float from_lane(float value, std::uint32_t mask);

namespace simulated {

inline constexpr std::uint32_t kBlockThreads = 64;  // of most kernels
inline constexpr std::uint32_t kMostBlockThreads = 512;

// Calls `kernel` as each thread of each block. Every other block runs its threads in reverse, so that a missing barrier
// shows.
void run_blocks(const std::function<void()>& kernel, std::uint64_t blocks, std::uint32_t threads = kBlockThreads);

}  // namespace simulated
}  // namespace shunt
