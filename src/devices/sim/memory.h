// The memory of a simulated device: a budget, and buffers that the host cannot address.
#pragma once

#include <atomic>
#include <cstdlib>
#include <memory>
#include <string>

#include "devices/device.h"
#include "devices/sim/spec.h"

namespace shunt::sim {

// Bytes taken from a memory pool, by all devices that share it.
using PoolUse = std::shared_ptr<std::atomic<std::uint64_t>>;
[[nodiscard]] inline PoolUse no_use() { return std::make_shared<std::atomic<std::uint64_t>>(0); }

// The budget that a device's buffers share; they may outlive the device. Any thread.
class Budget {
 public:
  Budget(const Spec& spec, PoolUse use) : device_(spec.id), bytes_(spec.memory_bytes), used_(std::move(use)) {}

  // Errors: out_of_memory, with the sizes requested and free.
  [[nodiscard]] Status take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) { *used_ -= bytes; }
  [[nodiscard]] std::uint64_t available() const { return bytes_ - *used_; }
  [[nodiscard]] std::uint64_t total() const { return bytes_; }

 private:
  std::string device_;
  std::uint64_t bytes_;
  PoolUse used_;
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
