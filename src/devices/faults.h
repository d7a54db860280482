// Faults injected into devices, to test how failures are handled: given as text for any device (SHUNT_FAULTS,
// RuntimeOptions::faults), or as keys of a simulated machine's file.
//
// Faults and FaultTable are plain values, and the functions are plain. A FaultCount is safe from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "shunt/status.h"
#include "shunt/tensor.h"

namespace shunt {

// X(field, kind, thing): "KIND at THING N" or "KIND after N THINGs" as text. Things are counted from 0 over the
// device's lifetime. A program is counted when it is prepared; a transfer is a write, a read or a copy.
#define SHUNT_FAULT_TABLE(X)                                                                   \
  X(allocation_fails, "oom", "allocation") /* this and all later ones: out_of_memory */        \
  X(lost_at_op, "lost", "op")              /* device_lost, in the middle of a program */       \
  X(hangs_at_op, "hang", "op")             /* never ends: timed_out, or device_lost */         \
  X(error_at_op, "error", "op")            /* internal, after it ended; the device survives */ \
  X(nonfinite_at_op, "nonfinite", "op")    /* its result is NaN, without an error */           \
  X(wrong_at_op, "wrong", "op")            /* results from this op on have the wrong sign */   \
  X(lost_at_program, "lost", "program")                                                        \
  X(error_at_program, "error", "program")                                                      \
  X(lost_at_transfer, "lost", "transfer")                                                      \
  X(error_at_transfer, "error", "transfer")

struct Faults {
#define SHUNT_FAULT(field, kind, thing) std::optional<std::uint64_t> field;
  SHUNT_FAULT_TABLE(SHUNT_FAULT)
#undef SHUNT_FAULT
};

// Calls visit(key, kind, thing, field) for each row.
template <class AnyFaults, class Visit>
void visit_faults(AnyFaults& faults, const Visit& visit) {
#define SHUNT_FAULT(field, kind, thing) visit(#field, std::string_view(kind), std::string_view(thing), faults.field);
  SHUNT_FAULT_TABLE(SHUNT_FAULT)
#undef SHUNT_FAULT
}

// A device's injected faults, and counts of what it has done. Counting continues when the device is reopened.
class FaultCount {
 public:
  // `device`: its id, for messages.
  FaultCount(std::string device, const Faults& faults) : device_(std::move(device)), faults_(faults) {}

  // Counts one more; returns the injected error, if any.
  [[nodiscard]] Status allocation();
  [[nodiscard]] Status program();
  [[nodiscard]] Status transfer();

  // The faults of the next `count` ops, as positions among these.
  struct Ops {
    std::optional<std::size_t> lost, hangs, error, nonfinite;
    std::optional<std::size_t> wrong;  // this op and all later ones
  };
  [[nodiscard]] Ops ops(std::size_t count);

 private:
  [[nodiscard]] Status strike(const std::optional<std::uint64_t>& lost, const std::optional<std::uint64_t>& error,
                              std::uint64_t number, std::string_view thing) const;

  std::string device_;
  Faults faults_;
  std::atomic<std::uint64_t> allocations_{0}, programs_{0}, transfers_{0}, ops_{0};
};

// Negates each number. REQUIRES: a floating dtype.
void make_wrong(DType dtype, std::span<std::byte> numbers);

// Fault counts by device id.
using FaultTable = std::map<std::string, std::shared_ptr<FaultCount>, std::less<>>;

// Parses "vulkan:0 lost at op 250, cuda:0 oom after 3 allocations". Errors: invalid, with the accepted forms.
[[nodiscard]] Result<FaultTable> faults_from_text(std::string_view text);

}  // namespace shunt
