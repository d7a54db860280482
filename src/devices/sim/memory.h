// The memory of a simulated device: a budget, and buffers that the host cannot address.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "devices/device.h"
#include "devices/sim/clock.h"
#include "devices/sim/spec.h"

namespace shunt::sim {

// Bytes taken from the memory of devices that share it. Any thread, but follow() before others.
class Use {
 public:
  std::atomic<std::uint64_t> bytes = 0;  // of buffers

  // Has another program take so many bytes instead of those before.
  void set_others(std::uint64_t bytes_of_others) { others_ = bytes_of_others; }
  // Has one more program take memory over time, by a clock that starts now.
  void follow(const std::vector<Taken>& taken, std::shared_ptr<const VirtualClock> clock);
  // Returns what other programs want to have now. More than there are: whatever becomes free.
  [[nodiscard]] std::uint64_t others() const;

 private:
  std::atomic<std::uint64_t> others_ = 0;
  std::vector<std::vector<Taken>> over_time_;  // of each program
  std::shared_ptr<const VirtualClock> clock_;  // null: there are none
  VirtualClock::Time start_{};
};
using PoolUse = std::shared_ptr<Use>;
[[nodiscard]] inline PoolUse no_use() { return std::make_shared<Use>(); }

// The budget that a device's buffers share; they may outlive the device. Any thread.
class Budget {
 public:
  Budget(const Spec& spec, PoolUse use) : device_(spec.id), bytes_(spec.memory_bytes), use_(std::move(use)) {}

  // Errors: out_of_memory, with the sizes requested and free.
  [[nodiscard]] Status take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) { use_->bytes -= bytes; }
  [[nodiscard]] std::uint64_t available() const { return left_of(use_->bytes); }
  [[nodiscard]] std::uint64_t total() const { return bytes_; }

 private:
  // Returns what others leave beside so many bytes of buffers.
  [[nodiscard]] std::uint64_t left_of(std::uint64_t used) const {
    return bytes_ - used - std::min(bytes_ - used, use_->others());
  }

  std::string device_;
  std::uint64_t bytes_;
  PoolUse use_;
};

// Scratch memory that the programs of a device share while one of them lives: as much as the largest needs.
class Scratch {
 public:
  explicit Scratch(std::shared_ptr<Budget> budget) : budget_(std::move(budget)) {}
  ~Scratch() { budget_->give_back(bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;

  // Errors: out_of_memory.
  [[nodiscard]] Status grow_to(std::uint64_t bytes);

 private:
  std::shared_ptr<Budget> budget_;
  std::uint64_t bytes_ = 0;
};

class SimBuffer final : public Buffer {
 public:
  // Zeroed; has no memory of its own if the device does not compute. Errors: out_of_memory.
  [[nodiscard]] static Result<std::unique_ptr<SimBuffer>> create(std::shared_ptr<Budget> budget, std::uint64_t bytes,
                                                                 bool real);
  ~SimBuffer() override { budget_->give_back(bytes_); }
  SimBuffer(const SimBuffer&) = delete;
  SimBuffer& operator=(const SimBuffer&) = delete;

  [[nodiscard]] std::uint64_t bytes() const override { return bytes_; }
  [[nodiscard]] std::span<std::byte> host() override { return {}; }

  // For the device itself.
  [[nodiscard]] std::span<std::byte> memory() { return {begin_, begin_ == nullptr ? 0 : bytes_}; }

 private:
  struct Free {
    void operator()(void* memory) const { std::free(memory); }
  };

  SimBuffer(std::shared_ptr<Budget> budget, std::uint64_t bytes) : budget_(std::move(budget)), bytes_(bytes) {}

  std::shared_ptr<Budget> budget_;
  std::uint64_t bytes_;
  std::unique_ptr<void, Free> owned_;
  std::byte* begin_ = nullptr;
};

// Returns where a binding of a simulated device begins; null without a buffer, or without memory behind it.
[[nodiscard]] std::byte* address_of(const Binding& binding);

}  // namespace shunt::sim
