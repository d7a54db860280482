#include "simulated/block.h"

#include <ucontext.h>

#include <array>
#include <vector>

#include "simulated/turn.h"

namespace shunt {
namespace simulated {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10U;

struct Lane {
  Place place;
  std::vector<char> stack;
  bool running = false;
};

class Block {
 public:
  void run(const std::function<void()>& kernel, std::uint64_t group, std::uint32_t threads) {
    if (threads > kMostBlockThreads) __builtin_trap();
    kernel_ = &kernel;
    group_ = group;
    for (; started_ < threads; ++started_) {
      current_ = started_;
      start(lanes_[started_]);
    }
    for (std::uint32_t lane = 0; lane < threads; ++lane) lanes_[lane].running = true;
    for (bool left = true; left;) {
      left = false;
      for (std::uint32_t place = 0; place < threads; ++place) {
        current_ = group % 2 == 0 ? place : threads - 1 - place;
        if (!lanes_[current_].running) continue;
        turn(scheduler_, lanes_[current_].place);
        left = left || lanes_[current_].running;
      }
    }
  }

  void leave() { turn(lanes_[current_].place, scheduler_); }
  [[nodiscard]] std::uint32_t lane() const { return current_; }
  [[nodiscard]] std::uint64_t group() const { return group_; }
  [[nodiscard]] std::uint64_t groups() const { return groups_; }
  void set_groups(std::uint64_t groups) { groups_ = groups; }

  static Block& instance() {
    static Block block;
    return block;
  }

 private:
  // Runs a lane up to its first stop.
  [[gnu::noinline]] void start(Lane& lane) {
    lane.stack.resize(kStackBytes);
    if (getcontext(&begin_) != 0) __builtin_trap();
    begin_.uc_stack.ss_sp = lane.stack.data();
    begin_.uc_stack.ss_size = lane.stack.size();
    makecontext(&begin_, &Block::enter, 0);
    being_made = this;
    leap();
  }
  [[gnu::noinline]] void leap() {
    // The jump back returns into this frame, which a tail call would have released.
    if (__builtin_setjmp(scheduler_.registers) == 0 && swapcontext(&home_, &begin_) != 0) __builtin_trap();
  }

  static void enter() {
    Block& block = *being_made;
    while (true) {
      block.leave();
      (*block.kernel_)();
      block.lanes_[block.current_].running = false;
    }
  }

  inline static Block* being_made = nullptr;
  std::array<Lane, kMostBlockThreads> lanes_;
  std::uint32_t started_ = 0;
  Place scheduler_;
  ucontext_t home_{};
  ucontext_t begin_{};
  const std::function<void()>* kernel_ = nullptr;
  std::uint64_t group_ = 0;
  std::uint64_t groups_ = 0;
  std::uint32_t current_ = 0;
};

}  // namespace

void run_blocks(const std::function<void()>& kernel, std::uint64_t blocks, std::uint32_t threads) {
  Block::instance().set_groups(blocks);
  for (std::uint64_t group = 0; group < blocks; ++group) Block::instance().run(kernel, group, threads);
}

}  // namespace simulated

std::uint32_t lane() { return simulated::Block::instance().lane(); }
std::uint64_t group() { return simulated::Block::instance().group(); }
std::uint64_t groups() { return simulated::Block::instance().groups(); }
void sync() { simulated::Block::instance().leave(); }
float from_lane(float value, std::uint32_t mask) {
  static float values[simulated::kMostBlockThreads];
  values[lane()] = value;
  sync();
  const float other = values[lane() ^ mask];
  sync();
  return other;
}

}  // namespace shunt
