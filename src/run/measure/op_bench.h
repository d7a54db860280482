// Times one op on one device as a plan would run it: as a program of many uses of the op, one after the other.
//
// With one row, as in decode, each use reads its own weights (of experts its own experts) and state, together more than
// any cache holds, so that memory is measured. Otherwise, and if an op reads only little, all uses share their
// operands. These then stay in caches as far as they fit, as activations do in a model. Owns its memory on the device,
// which must outlive it. One thread at a time.
#pragma once

#include <memory>

#include "devices/cpu/limits.h"
#include "devices/device.h"
#include "ops/bench_case.h"
#include "run/measure/samples.h"

namespace shunt {

// Memory that several benches read and write in turn, so that it is filled only once. Must outlive them.
class BenchMemory {
 public:
  // Allocates `read_bytes` of numbers that are random in every dtype, and room for `written_bytes`. Errors: those of
  // the device.
  [[nodiscard]] static Result<std::unique_ptr<BenchMemory>> create(Device& device, std::uint64_t read_bytes,
                                                                   std::uint64_t written_bytes);

 private:
  friend class OpBench;
  std::unique_ptr<Buffer> buffer_;
  std::uint64_t read_bytes_ = 0;
  std::uint64_t written_bytes_ = 0;
  std::uint64_t next_ = 0;  // where the next bench starts to read
};

class OpBench {
 public:
  // `memory_bytes` is more than a cache holds, see cpu::beyond_cache_bytes(); 0: no memory is measured. The first run,
  // which wakes threads and touches memory, is over when it returns. If `shared` has room for everything, nothing else
  // is allocated. `kernel` is one of Device::kernels_for(), or empty for the device's choice. Errors: unsupported with
  // the device's reason; out_of_memory; those of a run.
  [[nodiscard]] static Result<std::unique_ptr<OpBench>> create(BenchCase use, Device& device,
                                                               std::uint64_t memory_bytes,
                                                               BenchMemory* shared = nullptr,
                                                               std::string_view kernel = {});

  // Seconds per use, by the device's clock.
  [[nodiscard]] Result<double> measure();

  // Uses in one program; its start is part of what they take.
  [[nodiscard]] std::uint32_t uses() const { return uses_; }

  // Prepares as many uses as `other` has, so that both spread the start over equally many. Errors: those of create().
  [[nodiscard]] Status use_as_often_as(const OpBench& other);

  [[nodiscard]] const BenchCase& use() const { return use_; }
  [[nodiscard]] const Device& device() const { return device_; }
  // The work of one use and the bytes it moves, by the op's cost rule.
  [[nodiscard]] const Cost& cost() const { return cost_; }
  [[nodiscard]] double bytes() const { return cost_.bytes(); }
  // Returns whether weights and state are read from memory.
  [[nodiscard]] bool reads_memory() const { return reads_memory_; }

 private:
  OpBench(BenchCase use, Device& device, std::string_view kernel)
      : use_(std::move(use)), operands_(use_), device_(device), kernel_(kernel) {}
  [[nodiscard]] bool rotates(const BenchInput& input) const;
  [[nodiscard]] std::uint32_t versions(const BenchInput& input) const;
  void choose_copies(std::uint64_t memory_bytes);
  [[nodiscard]] Status bind(BenchMemory* shared);
  [[nodiscard]] bool is_written(std::size_t input) const;
  [[nodiscard]] Status fill(std::size_t input);
  [[nodiscard]] Status prepare(std::uint32_t uses);

  BenchCase use_;
  BenchOperands operands_;
  Device& device_;
  std::string_view kernel_;
  Cost cost_;
  bool reads_memory_ = false;
  std::uint32_t copies_ = 1;        // of operands that rotate
  std::uint32_t parts_ = 1;         // of them, which indices select in turn
  std::uint32_t uses_ = 1;          // in one program
  std::unique_ptr<Buffer> buffer_;  // null: shared
  std::vector<Binding> inputs_;     // the first copy of each
  Binding output_;
  std::unique_ptr<Program> program_;
};

// An op's times. Shares are of what the processor read and multiplied just before, all threads, or of the peak of a
// GPU; there are none where that is unknown.
struct OpTimes {
  Samples seconds;      // of one use
  Samples bytes_per_s;  // by the cost rule
  Samples flops_per_s;  // by the cost rule
  Samples share_of_bandwidth;
  Samples share_of_peak;
  Samples instructions_per_cycle;  // of all threads, on the processor where the system counts them
};

struct LimitTimes {
  Samples read_bytes_per_s;
  Samples flops_per_s;  // all threads
  Samples flops_per_s_one_thread;
  Samples fork_join_us;
};

// One repetition: the limits, then the op.
[[nodiscard]] Status measure_beside(cpu::Limits& limits, OpBench& bench, OpTimes& times, LimitTimes& limit_times);

}  // namespace shunt
