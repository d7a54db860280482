// Faults that a device is told to have, so that what becomes of a program can be tried out: as text for any device of a
// machine (SHUNT_FAULTS, RuntimeOptions::faults), and as keys of a simulated machine's file.
//
// Faults, FaultTable and the functions are plain values and functions. A FaultCount may be used from any thread.
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

// X(field, kind, thing): "KIND at THING N" or "KIND after N THINGs" in a text. Things are counted from the device's
// beginning, the first having number 0; what is prepared is a program, and a write, read or copy a transfer.
#define SHUNT_FAULT_TABLE(X)                                                                   \
  X(allocation_fails, "oom", "allocation") /* it and all later ones: out_of_memory */          \
  X(lost_at_op, "lost", "op")              /* device_lost, in the middle of a program */       \
  X(hangs_at_op, "hang", "op")             /* never ends: timed_out, or device_lost */         \
  X(error_at_op, "error", "op")            /* internal, once it has ended; the device lives */ \
  X(nonfinite_at_op, "nonfinite", "op")    /* its result is NaN, and nobody says so */         \
  X(wrong_at_op, "wrong", "op")            /* from it on results have the wrong sign */        \
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

// A device's faults, and what it has done so far; it goes on counting where the device is opened anew.
class FaultCount {
 public:
  // `device`: its id, for messages.
  FaultCount(std::string device, const Faults& faults) : device_(std::move(device)), faults_(faults) {}

  // One more; errors are those of its faults.
  [[nodiscard]] Status allocation();
  [[nodiscard]] Status program();
  [[nodiscard]] Status transfer();

  // Which of a number of ops that come next have which fault, counted from the first of these.
  struct Ops {
    std::optional<std::size_t> lost, hangs, error, nonfinite;
    std::optional<std::size_t> wrong;  // it and all later ones
  };
  [[nodiscard]] Ops ops(std::size_t count);

 private:
  [[nodiscard]] Status strike(const std::optional<std::uint64_t>& lost, const std::optional<std::uint64_t>& error,
                              std::uint64_t number, std::string_view thing) const;

  std::string device_;
  Faults faults_;
  std::atomic<std::uint64_t> allocations_{0}, programs_{0}, transfers_{0}, ops_{0};
};

// Turns the sign of each number. REQUIRES: a floating dtype.
void make_wrong(DType dtype, std::span<std::byte> numbers);

// By the ids of devices.
using FaultTable = std::map<std::string, std::shared_ptr<FaultCount>, std::less<>>;

// Of "vulkan:0 lost at op 250, cuda:0 oom after 3 allocations". Errors: invalid, with what may stand there.
[[nodiscard]] Result<FaultTable> faults_from_text(std::string_view text);

}  // namespace shunt
