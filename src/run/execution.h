// One run of an executable as a completion-driven state machine.
//
// A step starts when all steps that it waits for have ended, or run before it on a device that keeps their order.
// Completions arrive from any thread and are handled by whoever calls advance(), so that one thread can pump all
// devices. After the first failure, or once the run is interrupted, nothing new starts. The run is done when everything
// in flight has ended.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "run/executable.h"

namespace shunt {

class Execution {
 public:
  // `audited`: the position of the unit that is compared with the reference.
  Execution(Executable& executable, const Submission& submission, std::optional<std::uint32_t> audited);

  Execution(const Execution&) = delete;
  Execution& operator=(const Execution&) = delete;
  // Waits for what is in flight, if an exception has ended the run early.
  ~Execution();

  // Starts what can start and handles what has ended. False once the run is done.
  bool advance();
  // Pumps until done: lends this thread to devices that need one, and sleeps if none does.
  [[nodiscard]] Status wait();

 private:
  // The ways to move bytes, in the order tried: directly, or down to the host and up again.
  enum class Phase : std::uint8_t { compute, peer_copy, to_host, from_host };
  struct Completion {
    std::uint32_t step;
    Phase phase;
    Status status;
  };

  [[nodiscard]] bool is_audited(const Step& step) const;
  [[nodiscard]] bool is_timed_in_ops(std::uint32_t step) const { return timed_in_ops_[step]; }
  // Returns whether a step that waits for another one may be started once that was.
  [[nodiscard]] bool follows_in_order(std::uint32_t step, std::uint32_t other) const;
  void start_ready();
  void start(std::uint32_t step, Phase phase);
  // Notes that a step need not wait for another one any more.
  void release(std::uint32_t step);
  // The device that works on a step in this phase.
  [[nodiscard]] std::uint32_t worker_of(std::uint32_t step, Phase phase) const;
  // Returns how long to wait for one device while others may finish something too, or have.
  [[nodiscard]] std::chrono::nanoseconds patience();
  [[nodiscard]] Event launch(std::uint32_t step, Phase phase);
  // Host memory for a transfer by way of the host.
  [[nodiscard]] std::span<std::byte> staging_of(std::uint32_t step);
  void finish(Completion completion);
  void note_program(const Completion& completion);
  [[nodiscard]] const Device& device_that_failed(const Completion& completion) const;
  [[nodiscard]] std::uint64_t now_ns(std::uint32_t step) const;
  void record_transfer(std::uint32_t step) const;
  bool work_on_processors();
  void prefetch_on_processors();
  [[nodiscard]] std::span<Completion> take_completions(bool block);
  void arrive(Completion completion);

  Executable& executable_;
  Submission submission_;
  std::optional<std::uint32_t> audited_;
  std::vector<bool> timed_in_ops_;                   // per step; others may turn the recorder off meanwhile
  std::vector<std::uint32_t> waiting_for_;           // per step
  std::vector<std::vector<std::uint32_t>> waiters_;  // per step
  std::vector<std::uint64_t> started_ns_;
  std::vector<std::uint64_t> free_ns_;  // per device: since when it is free, by its clock
  std::vector<std::uint32_t> ready_;
  std::vector<std::uint32_t> starting_;  // those of ready_ that advance() is starting
  std::uint32_t in_flight_ = 0;
  std::vector<std::uint32_t> in_flight_on_;   // per device
  std::vector<bool> unwatched_;               // per device: work may have ended while this thread computed
  std::vector<std::uint32_t> on_processors_;  // steps of host CPUs, in order
  std::size_t begun_on_processors_ = 0;       // of them, those before the first that has not begun
  std::size_t prefetched_ = 0;                // of them, those before the first that is not prefetched
  std::uint32_t left_ = 0;
  Status status_;

  std::mutex mutex_;
  std::condition_variable arrived_;
  std::vector<Completion> completions_;  // this and taken_ have room for all steps
  std::vector<Completion> taken_;
};

}  // namespace shunt
