#include "simulated/block.h"

#include <ucontext.h>

#include <array>
#include <vector>

#include "simulated/turn.h"

namespace shunt {
namespace simulated {
namespace {

constexpr std::size_t kStackBytes = std::size_t{64} << 10U;
constexpr std::uint32_t kColors = 64;
constexpr std::size_t kColorBytes = 320;
constexpr std::uint32_t kWarp = 32;

// Threads that wait for each other.
struct Meeting {
  std::uint32_t members = 0;  // that still run
  std::uint32_t waiting = 0;
  std::uint64_t number = 0;

  void end_if_complete() {
    if (waiting != members) return;
    waiting = 0;
    ++number;
  }
};

struct Lane {
  Place place;
  std::vector<char> stack;
  bool running = false;
  const Meeting* awaited = nullptr;  // until its number is another
  std::uint64_t number = 0;

  [[nodiscard]] bool waits() const { return awaited != nullptr && awaited->number == number; }
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
    block_ = {.members = threads};
    warps_ = {};
    for (std::uint32_t lane = 0; lane < threads; ++lane) {
      lanes_[lane].running = true;
      ++warps_[lane / kWarp].members;
    }
    for (bool left = true; left;) {
      left = false;
      for (std::uint32_t place = 0; place < threads; ++place) {
        current_ = group % 2 == 0 ? place : threads - 1 - place;
        if (!lanes_[current_].running) continue;
        if (!lanes_[current_].waits()) turn(scheduler_, lanes_[current_].place);
        left = left || lanes_[current_].running;
      }
    }
  }

  void leave() { turn(lanes_[current_].place, scheduler_); }
  void meet_block() { meet(block_); }
  void meet_warp() { meet(warps_[current_ / kWarp]); }
  [[nodiscard]] std::uint32_t lane() const { return current_; }
  [[nodiscard]] std::uint64_t group() const { return group_; }
  [[nodiscard]] std::uint64_t groups() const { return groups_; }
  void set_groups(std::uint64_t count) { groups_ = count; }

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
    // Ends of stacks at distances of a power of two would share few lines of the cache.
    begin_.uc_stack.ss_size = lane.stack.size() - current_ % kColors * kColorBytes;
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
      block.end();
    }
  }
  // Threads that have ended are not waited for.
  void end() {
    lanes_[current_].running = false;
    for (Meeting* const meeting : {&block_, &warps_[current_ / kWarp]}) {
      --meeting->members;
      if (meeting->members != 0) meeting->end_if_complete();
    }
  }
  void meet(Meeting& meeting) {
    Lane& lane = lanes_[current_];
    lane.awaited = &meeting;
    lane.number = meeting.number;
    ++meeting.waiting;
    meeting.end_if_complete();
    if (lane.waits()) leave();
    lane.awaited = nullptr;
  }

  inline static Block* being_made = nullptr;
  std::array<Lane, kMostBlockThreads> lanes_;
  Meeting block_;
  std::array<Meeting, kMostBlockThreads / kWarp> warps_;
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
void sync() { simulated::Block::instance().meet_block(); }
void sync_warp() { simulated::Block::instance().meet_warp(); }
void let_others_run() { simulated::Block::instance().leave(); }
float from_lane(float value, std::uint32_t mask) {
  static float values[simulated::kMostBlockThreads];
  values[lane()] = value;
  sync_warp();
  const float other = values[lane() ^ mask];
  sync_warp();
  return other;
}

}  // namespace shunt
